"""The configs that every experiment has: data, task, trainer, runtime, and the experiment itself.

A task of your own subclasses `TaskConfig` and, for its input, `DataConfig`:

    @dataclasses.dataclass
    class FlowerTask(cfg.TaskConfig):
        model: FlowerModel = dataclasses.field(default_factory=FlowerModel)
        train_data: FlowerData = dataclasses.field(
            default_factory=lambda: FlowerData(is_training=True))
"""

import dataclasses
import math
import os
from collections.abc import Iterator
from typing import Annotated, ClassVar, Optional, Sequence, Union

from hortus import hyperparams, optimization
from hortus.hyperparams.bounds import (
    AnyInt,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    PositiveLong,
    Seed,
    also,
    ge,
    le,
)

ENGINES = ("tensorflow", "jax")
STRATEGIES = (
    "off",
    "one_device",
    "mirrored",
    "multi_worker_mirrored",
    "parameter_server",
    "tpu",
)
MIXED_PRECISION_DTYPES = ("float32", "float16", "bfloat16", "mixed_float16", "mixed_bfloat16")
COMPARISONS = ("higher", "lower")


@dataclasses.dataclass
class DataConfig(hyperparams.Config):
    """Where the examples come from and how they are read."""

    input_path: Union[str, Sequence[str], hyperparams.Config] = ""
    """Files to read: a path or pattern, several of them (a list, or one string with commas), or a
    mapping of named paths for a weighted mix. Leave it empty to read `tfds_name`."""
    tfds_name: Union[str, hyperparams.Config] = ""
    """TensorFlow Datasets name, such as `coco/2017`, or a mapping of names for a weighted mix."""
    tfds_split: str = ""
    """Split of the TensorFlow Datasets set: `train`, `validation`, `train[:80%]`."""
    global_batch_size: Annotated[int, ge(0), le(1_000_000)] = 0
    """Examples per step over all replicas and hosts together."""
    is_training: Optional[bool] = None
    """True shuffles, repeats without end and augments; False reads each example once, in order."""
    drop_remainder: bool = True
    """Whether a last batch that is not full is left out."""
    shuffle_buffer_size: NonNegativeInt = 100
    """Examples held in memory to shuffle from, when training."""
    cache: bool = False
    """Whether decoded examples stay in memory after the first pass. The set has to fit."""
    cycle_length: Optional[PositiveInt] = None
    """Files read at the same time; null lets the pipeline choose."""
    block_length: PositiveInt = 1
    """Examples taken from one file before the next one's turn."""
    ram_budget: Optional[PositiveLong] = None
    """Upper bound in bytes for the pipeline's buffers; null for the default of tf.data."""
    deterministic: Optional[bool] = None
    """Whether the order of examples is the same in each run; null: only when not training."""
    sharding: bool = True
    """Whether several hosts read different files; False lets each host read all of them."""
    enable_tf_data_service: bool = False
    """Whether examples are prepared by a tf.data service at `tf_data_service_address`."""
    tf_data_service_address: Optional[str] = None
    """Address of the tf.data service, `grpc://host:port`."""
    tf_data_service_job_name: Optional[str] = None
    """Name of the job on the tf.data service; jobs of one name share one pass over the data."""
    tfds_data_dir: str = ""
    """Folder of the prepared TensorFlow Datasets; empty for their default."""
    tfds_as_supervised: bool = False
    """Whether the set gives (input, label) pairs instead of dictionaries."""
    tfds_skip_decoding_feature: str = ""
    """Names of features, with commas, that stay encoded so that the parser decodes them itself."""
    enable_shared_tf_data_service_between_parallel_trainers: bool = False
    """Whether parallel runs share the work of one tf.data service; each needs a `trainer_id`."""
    apply_tf_data_service_before_batching: bool = False
    """Whether the tf.data service hands out single examples, batched here."""
    trainer_id: Optional[str] = None
    """Name of this run among those that share a tf.data service."""
    seed: Optional[Seed] = None
    """Seed of shuffling and augmentation; null takes `runtime.seed`, or a new one in each run."""
    prefetch_buffer_size: Optional[Annotated[NonNegativeInt, also(-1)]] = None
    """Batches prepared ahead of the step; null lets the pipeline choose."""
    autotune_algorithm: Optional[str] = None
    """How tf.data tunes itself: `default`, `hill_climb`, `gradient_descent`, `max_parallelism` or
    `stage_based`."""
    skip_bad_records: bool = False
    """Whether an unreadable image or record is skipped and counted instead of stopping the run."""

    def check(self) -> Iterator[str]:
        shared = self.enable_shared_tf_data_service_between_parallel_trainers
        if shared and not self.trainer_id:
            yield "enable_shared_tf_data_service_between_parallel_trainers needs a trainer_id"


@dataclasses.dataclass
class RuntimeConfig(hyperparams.Config):
    """Which devices a run uses, and how."""

    engine: str = "tensorflow"
    """Backend that computes: `tensorflow` or `jax`. The variable KERAS_BACKEND, when it is set, has
    to say the same."""
    distribution_strategy: str = "mirrored"
    """`off`, `one_device`, `mirrored` (all devices of this host), `multi_worker_mirrored` (several
    hosts), `tpu` or `parameter_server`."""
    enable_xla: bool = False
    """Whether the step is compiled with XLA. The JAX engine always does so."""
    gpu_thread_mode: Optional[str] = hyperparams.inert(
        None, "set the variable TF_GPU_THREAD_MODE, which TensorFlow reads when it loads"
    )
    """TensorFlow's GPU thread pool: `global`, `gpu_private` or `gpu_shared`."""
    dataset_num_private_threads: Optional[NonNegativeInt] = hyperparams.inert(
        None, "tf.data shares the threads of the process, as many as there are CPUs"
    )
    """Threads of the input pipeline; null shares those of the process."""
    per_gpu_thread_count: NonNegativeInt = hyperparams.inert(
        0, "set the variable TF_GPU_THREAD_COUNT, which TensorFlow reads when it loads"
    )
    """Threads per GPU under `gpu_thread_mode: gpu_private`; 0 for TensorFlow's default."""
    tpu: Optional[str] = None
    """TPU name or address, with `distribution_strategy: tpu`."""
    num_gpus: Annotated[NonNegativeInt, also(-1)] = 0
    """GPUs to use on this host; -1 for all. With 0, `mirrored` runs on the CPU."""
    worker_hosts: Optional[str] = None
    """Addresses `host:port` of all hosts, with commas, where TF_CONFIG does not tell them."""
    task_index: Annotated[NonNegativeInt, also(-1)] = -1
    """Place of this host in `worker_hosts`, from 0."""
    all_reduce_alg: Optional[str] = None
    """How TensorFlow sums gradients: `nccl` or `hierarchical_copy` on one host, `ring` or `nccl`
    over several; null for its choice."""
    num_packs: NonNegativeInt = 1
    """Gradient packs per all-reduce on one host."""
    mixed_precision_dtype: Optional[str] = None
    """Type of activations: `float16` (with loss scaling), `bfloat16`, or `float32` (null)."""
    loss_scale: Optional[Union[PositiveFloat, str]] = None
    """With float16: `dynamic` (also null) or a fixed factor."""
    run_eagerly: bool = False
    """Whether steps run without compilation, to debug them."""
    fast_kernels: bool = True
    """Whether training takes faster ways than TensorFlow's own, in float32 on a CPU, which round
    differently: 3x3 convolutions of many channels by Winograd's algorithm, to about 1e-5 of the
    largest output; others, and 1x1 ones, by matrix products, together with the batch normalisation
    after them; activations and focal losses compiled by XLA."""
    batchnorm_spatial_persistent: bool = hyperparams.inert(
        False, "cuDNN chooses its batch normalisation kernel itself"
    )
    tpu_enable_xla_dynamic_padder: Optional[bool] = hyperparams.inert(
        None, "TPUs are driven by the JAX engine, which has no dynamic padder"
    )
    num_cores_per_replica: PositiveInt = hyperparams.inert(1, "a replica is one device here")
    default_shard_dim: AnyInt = hyperparams.inert(-1, "a replica is one device here")
    use_tpu_mp_strategy: bool = hyperparams.inert(False, "a replica is one device here")
    virtual_cpu_devices: Annotated[int, ge(0), le(1024)] = 0
    """Splits the CPU into this many devices, so that several replicas can be tried on a laptop; 0
    leaves it whole."""
    seed: Optional[Seed] = None
    """Seed of initial weights, dropout, shuffling and augmentation; null draws a new one."""
    deterministic: bool = False
    """Whether a run can be repeated bit for bit on the same machine, also across a restart. Slower;
    `seed` counts as 0 when it is null."""

    def check(self) -> Iterator[str]:
        yield from _one_of("engine", self.engine, ENGINES)
        yield from _one_of("distribution_strategy", self.distribution_strategy.lower(), STRATEGIES)
        if self.mixed_precision_dtype is not None:
            yield from _one_of(
                "mixed_precision_dtype", self.mixed_precision_dtype, MIXED_PRECISION_DTYPES
            )
        if isinstance(self.loss_scale, str) and self.loss_scale != "dynamic":
            yield f"loss_scale must be 'dynamic' or a number, got {self.loss_scale!r}"


@dataclasses.dataclass
class EarlyStoppingConfig(hyperparams.Config):
    """Ends training when an evaluation metric no longer improves."""

    patience: NonNegativeInt = 0
    """Evaluations in a row without a better value before training stops; 0 never stops."""
    metric: str = ""
    """Metric to watch, `|` between the parts of a nested one; empty takes
    `trainer.best_checkpoint_eval_metric`."""
    metric_comp: str = ""
    """`higher` or `lower` is better; empty takes `trainer.best_checkpoint_metric_comp`."""
    min_delta: NonNegativeFloat = 0.0
    """How much better a value has to be in order to count."""

    def check(self) -> Iterator[str]:
        yield from _one_of("metric_comp", self.metric_comp, ("", *COMPARISONS))


@dataclasses.dataclass
class TrainerConfig(hyperparams.Config):
    """How long to train, and how often to look at the result."""

    optimizer_config: optimization.OptimizationConfig = dataclasses.field(
        default_factory=optimization.OptimizationConfig
    )
    """Optimizer, learning rate, warmup and moving average."""
    train_tf_while_loop: bool = hyperparams.inert(True, "the engine chooses its own loop")
    train_tf_function: bool = True
    """Whether training is compiled; False is `runtime.run_eagerly` for training alone."""
    eval_tf_function: bool = True
    """Whether evaluation is compiled; False is `runtime.run_eagerly` for evaluation alone."""
    eval_tf_while_loop: bool = hyperparams.inert(False, "the engine chooses its own loop")
    allow_tpu_summary: bool = hyperparams.inert(
        False, "summaries are written by the host, on every device alike"
    )
    steps_per_loop: PositiveInt = 1000
    """Steps that run in one call before metrics, summaries and actions get their turn."""
    summary_interval: NonNegativeInt = 1000
    """Steps between two summaries; a multiple of `steps_per_loop`. 0 writes one after each loop."""
    checkpoint_interval: NonNegativeInt = 1000
    """Steps between two checkpoints; 0 writes one at the end only."""
    max_to_keep: NonNegativeInt = 5
    """Newest checkpoints to keep; 0 keeps all."""
    continuous_eval_timeout: NonNegativeInt = 60 * 60
    """Seconds that continuous evaluation waits for a new checkpoint before it ends."""
    train_steps: NonNegativeInt = 0
    """Steps to train in all, so that training ends at this step: those before a restart count,
    those that a recovery has undone do not. 0 trains nothing."""
    validation_steps: Annotated[PositiveInt, also(-1)] = -1
    """Batches per evaluation; -1 for the whole set."""
    validation_interval: NonNegativeInt = 1000
    """Steps between two evaluations; 0 evaluates at the end only."""
    best_checkpoint_export_subdir: str = ""
    """Folder in the model directory for the best checkpoint; empty keeps none."""
    best_checkpoint_eval_metric: str = ""
    """Metric that decides which checkpoint is best, `|` between the parts of a nested one."""
    best_checkpoint_metric_comp: str = "higher"
    """`higher` or `lower` is better."""
    loss_upper_bound: PositiveFloat = 1e6
    """A training loss above this counts as diverged, like NaN."""
    recovery_begin_steps: NonNegativeInt = 0
    """Steps before which a diverged loss is let pass."""
    recovery_max_trials: Annotated[NonNegativeInt, also(-1)] = 0
    """Returns to the last checkpoint after a diverged loss before giving up; -1 never looks."""
    validation_summary_subdir: str = "validation"
    """Folder in the model directory for the summaries of evaluations."""
    allow_subdirs_outside: bool = False
    """Whether the folders above may be absolute paths, or lead out of the model directory by `..`;
    what is there can be overwritten then."""
    preemption_on_demand_checkpoint: bool = True
    """Whether a checkpoint is written when the machine is about to be taken away."""
    gradient_accumulation_steps: PositiveInt = 1
    """Parts that each batch is split into to save memory; their gradients make one update."""
    fast_dev_run: Union[bool, NonNegativeInt] = False
    """Runs this many steps of training and of evaluation and stops, to see whether everything
    works; True means 3."""
    overfit_batches: NonNegativeInt = 0
    """Trains on the first so many batches again and again, to see whether the model can learn at
    all; 0 uses all of the data."""
    sanity_validation_steps: NonNegativeInt = 2
    """Evaluation batches to run before the first step, so that a fault in evaluation shows at once;
    0 for none."""
    max_time: Optional[Union[PositiveFloat, str]] = None
    """Longest time to train, as seconds or `hours:minutes:seconds`; then checkpoint and stop."""
    early_stopping: Optional[EarlyStoppingConfig] = dataclasses.field(
        default_factory=EarlyStoppingConfig
    )
    """Ends training when a metric no longer improves; off until `patience` is set."""
    train_actions: list[str] = dataclasses.field(default_factory=list)
    """Names of registered actions to do after each training loop; see `hortus list actions`."""
    eval_actions: list[str] = dataclasses.field(default_factory=list)
    """Names of registered actions to do after each evaluation."""
    summary: Optional[str] = None
    """Name of the registered summary manager, see `hortus list summaries`; null for the usual
    one."""

    @property
    def max_seconds(self) -> Optional[float]:
        """`max_time` in seconds, or None without a limit."""
        return None if self.max_time is None else _seconds(self.max_time)

    def check(self) -> Iterator[str]:
        for name in ("best_checkpoint_export_subdir", "validation_summary_subdir"):
            folder = getattr(self, name)
            leaves = os.path.isabs(folder) or os.path.normpath(folder).split(os.sep)[0] == os.pardir
            if leaves and not self.allow_subdirs_outside:
                yield (
                    f"{name} must be a folder inside of the model directory, got {folder!r}; if it "
                    "is meant to be elsewhere, set trainer.allow_subdirs_outside to true"
                )
        yield from _one_of(
            "best_checkpoint_metric_comp", self.best_checkpoint_metric_comp, COMPARISONS
        )
        try:
            seconds = self.max_seconds
        except ValueError as error:
            yield str(error)
        else:
            if seconds is not None and not 0 < seconds < math.inf:
                yield f"max_time must be more than nothing, got {self.max_time!r}"


@dataclasses.dataclass
class DifferentialPrivacyConfig(hyperparams.Config):
    """Clips the gradient of each batch, and adds Gaussian noise to it.

    The gradient is that of the whole batch, not of single examples, and nobody keeps account of the
    privacy spent: this hampers reading examples out of the weights, and guarantees nothing. With
    the defaults it does next to nothing: no noise, and a norm that no gradient reaches.
    """

    clipping_norm: PositiveFloat = 100000000.0
    """Longest gradient of a batch, in the L2 norm of all its parts together; shorten it to the norm
    that gradients of the task have."""
    noise_multiplier: NonNegativeFloat = 0.0
    """Standard deviation of the noise, in units of `clipping_norm`; 0 adds none."""


@dataclasses.dataclass
class TaskConfig(hyperparams.Config):
    """What is learned: the model, its data, and where its first weights come from."""

    task_module: ClassVar[str] = ""
    # The module that registers the task for this config. It is imported when the task is wanted, so
    # that a task is known to be there without loading it; subclasses share it unless they have one.

    init_checkpoint: str = ""
    """Checkpoint, or folder of checkpoints, that the first weights come from."""
    init_checkpoint_averages: bool = False
    """Whether to take the moving averages of weights that a checkpoint of the Model Garden keeps
    beside them, where it was trained with any."""
    model: Optional[hyperparams.Config] = None
    """The model."""
    train_data: DataConfig = dataclasses.field(default_factory=DataConfig)
    """Examples to train on."""
    validation_data: DataConfig = dataclasses.field(default_factory=DataConfig)
    """Examples to evaluate on."""
    name: Optional[str] = None
    """Name of the task in logs."""
    differential_privacy_config: Optional[DifferentialPrivacyConfig] = None
    """Clips the gradient of each batch and adds noise to it; null for neither. Its own defaults add
    no noise, and no setting of it gives a guarantee per example."""
    allow_image_summary: bool = False
    """Whether evaluation writes pictures for TensorBoard, where the task can draw."""
    extra_metrics: list[str] = dataclasses.field(default_factory=list)
    """Registered metrics to measure beside those of the task; see `hortus list metrics`."""

    def check_for_run(self, experiment: "ExperimentConfig", mode: str) -> Iterator[str]:
        """Yields what a run lacks and `check` lets pass, as it may still be set; override it.

        A message starts with the path of a field: `task.model.num_classes must be set`.

        Args:
            experiment: the config that this one is part of.
            mode: one of `hortus.core.flags.MODES`; `"train" in mode` for those that train, and
                all others than `train` evaluate.
        """
        yield from ()


@dataclasses.dataclass
class ExperimentConfig(hyperparams.Config):
    """Everything that one run needs to know."""

    task: TaskConfig = dataclasses.field(default_factory=TaskConfig)
    """What is learned, from which data."""
    trainer: TrainerConfig = dataclasses.field(default_factory=TrainerConfig)
    """How long, with which optimizer."""
    runtime: RuntimeConfig = dataclasses.field(default_factory=RuntimeConfig)
    """On which devices."""

    def validate_for_run(self, mode: str = "train_and_eval") -> None:
        """Checks as `validate` does, and also that nothing is missing for a run in this mode.

        Raises:
            ConfigError: values contradict each other, or one has to be set.
        """
        self.validate()
        messages = [*self.task.check_for_run(self, mode), *self._lacks(mode)]
        hyperparams.raise_problems([self._complaint_at(message) for message in messages])

    def _lacks(self, mode: str) -> Iterator[str]:
        if "train" not in mode:
            return
        trainer, size = self.trainer, self.task.train_data.global_batch_size
        if size % trainer.gradient_accumulation_steps:
            yield (
                "trainer.gradient_accumulation_steps must divide the examples of a batch (of "
                f"task.train_data.global_batch_size, {size}) into equal parts, got "
                f"{trainer.gradient_accumulation_steps}"
            )
        stopping = trainer.early_stopping
        is_nameless = stopping is not None and not (
            stopping.metric or trainer.best_checkpoint_eval_metric
        )
        if stopping is not None and stopping.patience and is_nameless and mode != "train":
            yield "trainer.early_stopping.metric must name the metric that early stopping watches"

    def _complaint_at(self, message: str) -> hyperparams.Problem:
        """A message that starts with a path, with the place where that value was set."""
        path, _, text = message.partition(" ")
        origin = self.origin(path)
        where = str(origin) if origin.is_explicit else None
        return hyperparams.Problem(
            hyperparams.parse_path(path) or (path,), text, where, hyperparams.RestrictionError
        )


def _one_of(name: str, value: str, choices: Sequence[str]) -> Iterator[str]:
    if value not in choices:
        shown = ", ".join(repr(choice) for choice in choices)
        yield f"{name} must be one of {shown}; got {value!r}"


def _seconds(duration: Union[float, str]) -> float:
    """Seconds of a number, or of '90', '2:30' (minutes) or '1:02:30' (hours)."""
    if not isinstance(duration, str):
        return float(duration)
    try:
        parts = [float(part) for part in duration.split(":")]
    except ValueError:
        parts = []
    if not 1 <= len(parts) <= 3 or any(part < 0 for part in parts):
        raise ValueError(f"max_time must be seconds or hours:minutes:seconds, got {duration!r}")
    total = 0.0
    for part in parts:
        total = total * 60 + part
    return total
