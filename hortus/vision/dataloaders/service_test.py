import numpy as np
import pytest
import tensorflow as tf

from hortus.vision.configs import common
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.dataloaders.input_reader import InputReader


def make(number_files, **settings):
    params = common.DataConfig(
        {
            "input_path": number_files,
            "global_batch_size": 10,
            "is_training": False,
            "enable_tf_data_service": True,
            **settings,
        }
    )
    decode = lambda record: tf.strings.to_number(record, tf.int64)  # noqa: E731
    return InputReader(params, decoder_fn=decode, parser_fn=lambda number: number)


@pytest.mark.parametrize("before_batching", [False, True])
def test_a_service_prepares_every_example(number_files, before_batching):
    service = tf.data.experimental.service
    dispatcher = service.DispatchServer(service.DispatcherConfig(port=0))
    address = dispatcher.target.split("://")[1]
    worker = service.WorkerServer(service.WorkerConfig(dispatcher_address=address))
    dataset = make(
        number_files,
        tf_data_service_address=dispatcher.target,
        tf_data_service_job_name="numbers",
        apply_tf_data_service_before_batching=before_batching,
    ).read()
    numbers = np.concatenate(list(dataset.as_numpy_iterator()))
    assert sorted(numbers) == list(range(100))
    del worker, dispatcher


def test_what_a_service_needs_is_told(number_files):
    with pytest.raises(DataError, match="needs tf_data_service_address"):
        make(number_files).read()
    with pytest.raises(DataError, match="skip_bad_records cannot count"):
        make(
            number_files, tf_data_service_address="grpc://localhost:1", skip_bad_records=True
        ).read()
