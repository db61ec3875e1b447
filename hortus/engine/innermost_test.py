import keras

from hortus.engine.innermost import innermost
from hortus.engine.loss_scale import LossScaleOptimizer
from hortus.optimization.optimizer_wrapper import OptimizerWrapper


def test_all_wrappers_are_taken_off():
    inner = keras.optimizers.SGD(0.5)
    optimizer = OptimizerWrapper(LossScaleOptimizer(OptimizerWrapper(inner)))
    assert innermost(optimizer) is inner
    assert innermost(inner) is inner
