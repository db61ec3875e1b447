import pytest
import tensorflow as tf

from hortus.engine.tensorflow import placement


def seen_inside(**options):
    found = []

    @tf.function(autograph=False, **options)
    def function(x):
        found.append((placement.runs_on_cpu(x), placement.is_compiled_by_xla()))
        return x

    function.get_concrete_function(tf.TensorSpec([2], tf.float32))
    return found[0]


def test_float32_runs_on_the_cpu_but_not_under_xla():
    assert placement.runs_on_cpu(tf.zeros([2]))
    assert seen_inside() == (True, False)
    assert seen_inside(jit_compile=True) == (False, True)


@pytest.mark.parametrize("dtype", [tf.bfloat16, tf.float16, tf.float64])
def test_other_types_are_left_to_tensorflow(dtype):
    assert not placement.runs_on_cpu(tf.zeros([2], dtype))


def test_with_a_gpu_nothing_runs_on_the_cpu(monkeypatch):
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: ["GPU:0"])
    assert not placement.runs_on_cpu(tf.zeros([2]))
