"""Preparing examples on other machines, by a tf.data service."""

import tensorflow as tf

from hortus.core import config_definitions as cfg
from hortus.vision.dataloaders.errors import DataError


def distribute(
    dataset: tf.data.Dataset, params: cfg.DataConfig, is_batched: bool
) -> tf.data.Dataset:
    """Hands a pipeline to the service, at the stage that the settings name.

    Called for single examples and for batches; does nothing at the stage that is not meant, nor
    without a service. The position of a pipeline that runs elsewhere cannot be saved.
    """
    if not params.enable_tf_data_service:
        return dataset
    if params.apply_tf_data_service_before_batching == is_batched:
        return dataset
    if not params.tf_data_service_address:
        raise DataError("enable_tf_data_service needs tf_data_service_address, grpc://host:port")
    if params.skip_bad_records:
        raise DataError(
            "skip_bad_records cannot count what a tf.data service leaves out: turn one of them off"
        )
    sharing = {}
    if params.enable_shared_tf_data_service_between_parallel_trainers:
        sharing["cross_trainer_cache"] = tf.data.experimental.service.CrossTrainerCache(
            trainer_id=params.trainer_id
        )
    return dataset.apply(
        tf.data.experimental.service.distribute(
            # Workers share the passes among them, and in evaluation the examples of the one pass.
            tf.data.experimental.service.ShardingPolicy.DYNAMIC,
            service=params.tf_data_service_address,
            job_name=params.tf_data_service_job_name,
            **sharing,
        )
    )
