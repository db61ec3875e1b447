import keras
import numpy as np
import pytest
import tensorflow as tf

from hortus import engine as engines


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="of the TensorFlow engine")
@pytest.mark.parametrize("size", [8, 10])
def test_the_end_of_the_data_counts_nothing(size):
    """A metric whose count does not depend on the batch must not be updated beyond the last one."""
    engine = engines.for_strategy(engines.current_strategy())
    metric = keras.metrics.Mean()
    drop = size % 4 == 0  # then all batches have the same size, known when the step is traced
    dataset = tf.data.Dataset.from_tensor_slices(np.ones([size, 3], "float32"))
    dataset = dataset.batch(4, drop_remainder=drop)
    traces = []

    def step(iterator):
        batch = next(iterator)
        traces.append(1)
        metric.update_state(keras.ops.sum(batch, axis=1))
        return {"sum": keras.ops.sum(batch)}

    compiled = engine.eval_step(step, [])
    for _ in range(2):
        metric.reset_state()
        feed = engine.feed(dataset, is_training=False)
        for _ in range(-(-size // 4)):
            compiled(feed)
        with pytest.raises(StopIteration):
            compiled(feed)
        assert float(metric.count) == size
        assert float(metric.result()) == 3.0
    assert len(traces) == 1
