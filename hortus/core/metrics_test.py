import keras
import numpy as np
from keras import ops

from hortus.core import metrics


class OldStyle:
    """A metric in plain Python, in the old spelling."""

    name = "old"

    def __init__(self):
        self.values = [1]

    def reset_states(self):
        self.values = []

    def result(self):
        return {"count": len(self.values)}


def test_metrics_of_any_style_are_reset():
    mean, old = keras.metrics.Mean(), OldStyle()
    mean.update_state([1.0, 3.0])
    assert metrics.result(mean) == 2.0
    for metric in metrics.flat({"a": [mean]}, old):
        metrics.reset(metric)
    assert (metrics.result(mean), metrics.result(old)) == (0.0, {"count": 0})


def test_plain_has_numbers_for_scalars_and_arrays_for_the_rest():
    logs = {
        "scalar": ops.convert_to_tensor(2.5),
        "variable": keras.Variable(3, dtype="int32"),
        "vector": [ops.convert_to_tensor([1.0, 2.0])],
        "text": "kept",
    }
    plain = metrics.plain(logs)
    assert type(plain["scalar"]) is float and plain["scalar"] == 2.5
    assert type(plain["variable"]) is int and plain["variable"] == 3
    assert isinstance(plain["vector"][0], np.ndarray) and plain["vector"][0].tolist() == [1.0, 2.0]
    assert plain["text"] == "kept"
    assert metrics.to_float(logs["variable"]) == 3.0


def test_a_mean_of_losses_equals_that_of_keras():
    ours, keras_own = metrics.LossMean(), keras.metrics.Mean()
    for metric in (ours, keras_own):
        metric.update_state(2.0)
        metric.update_state(ops.convert_to_tensor(4.0))
        metric.update_state(6.0, sample_weight=2.0)
        metric.update_state([1.0, 2.0])
    assert metrics.result(ours) == metrics.result(keras_own) == 3.5
