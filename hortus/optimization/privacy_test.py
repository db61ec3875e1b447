import keras
import numpy as np
from keras import ops

from hortus.optimization.gradient_transformation import GradientTransformation
from hortus.optimization.privacy import PrivateGradients


def variables():
    return [keras.Variable(np.zeros((100, 10), "float32")), keras.Variable(np.zeros(10, "float32"))]


def grads(scale):
    generator = np.random.RandomState(0)
    return [
        ops.convert_to_tensor(scale * generator.normal(size=s).astype("float32"))
        for s in ((100, 10), (10,))
    ]


def test_long_gradients_are_shortened_together():
    transform = PrivateGradients(clipping_norm=1.0, noise_multiplier=0.0)
    before, trained = grads(5.0), variables()
    after = [np.asarray(g) for g, _ in transform(list(zip(before, trained, strict=True)))]
    norm = np.sqrt(sum((g**2).sum() for g in after))
    np.testing.assert_allclose(norm, 1.0, rtol=1e-5)  # float32 sums of a thousand squares
    ratio = after[0] / np.asarray(before[0])
    np.testing.assert_allclose(ratio, ratio[0, 0], rtol=1e-5)


def test_short_gradients_stay():
    transform = PrivateGradients(clipping_norm=1e8, noise_multiplier=0.0)
    before, trained = grads(1.0), variables()
    for (after, _), grad in zip(
        transform(list(zip(before, trained, strict=True))), before, strict=True
    ):
        np.testing.assert_array_equal(np.asarray(after), np.asarray(grad))


def test_noise_has_its_deviation_and_differs_from_step_to_step():
    transform = PrivateGradients(clipping_norm=2.0, noise_multiplier=0.5, seed=3)
    pairs = [(ops.zeros((100, 100)), keras.Variable(np.zeros((100, 100), "float32")))]
    first, second = (np.asarray(transform(pairs)[0][0]) for _ in range(2))
    # 10,000 draws: the deviation is known to about 0.7 %
    np.testing.assert_allclose(first.std(), 1.0, rtol=0.05)
    assert not np.array_equal(first, second)


def test_missing_gradients_stay_missing_and_the_noise_is_part_of_the_optimizer():
    transform = PrivateGradients(1.0, 0.1)
    trained = variables()
    optimizer = GradientTransformation(keras.optimizers.SGD(0.1), [transform])
    optimizer.build(trained)
    assert any(v is transform.variables[0] for v in optimizer.variables)
    result = transform([(None, trained[0]), (ops.ones(10), trained[1])])
    assert result[0][0] is None and result[1][0] is not None


def test_round_trip():
    transform = PrivateGradients(2.0, 0.5, seed=1)
    assert (
        PrivateGradients.from_config(transform.get_config()).get_config() == transform.get_config()
    )
