"""Which part of the data a host's input pipeline reads."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class InputContext:
    """Handed to `Task.build_inputs`; has the face of `tf.distribute.InputContext`.

    One pipeline feeds all replicas of a host: the engine cuts its batches. So for a pipeline there
    are as many "replicas" as there are pipelines, and the usual
    `input_context.get_per_replica_batch_size(global_batch_size)` gives what it has to deliver.
    """

    num_input_pipelines: int = 1
    input_pipeline_id: int = 0

    @property
    def num_replicas_in_sync(self) -> int:
        return self.num_input_pipelines

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """Examples per batch of this pipeline."""
        if global_batch_size % self.num_input_pipelines:
            raise ValueError(
                f"global_batch_size {global_batch_size} cannot be shared evenly by "
                f"{self.num_input_pipelines} hosts"
            )
        return global_batch_size // self.num_input_pipelines
