"""What every backbone must do, checked in one place.

    def test_contract(tmp_path):
        config = Backbone({"type": "resnet", "resnet": {"model_id": 10}})
        testing.backbones.check(config, tmp_path)

A check that fails raises an AssertionError that says what was expected.
"""

import contextlib
import json
import pathlib
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
from keras import ops

from hortus.vision.configs import common
from hortus.vision.modeling.backbones import factory

_GRADIENT_STEPS = 8


def check(
    backbone_config: Any,
    folder: pathlib.Path,
    *,
    sizes: tuple[int, int] = (64, 96),
    norm_activation_config: Any = None,
) -> None:
    """Runs all checks on the backbone that a config builds.

    Args:
        backbone_config: a `Backbone` config. Something in it must act in training only: batch
            normalisation, dropout or stochastic depth.
        folder: where a model may be saved.
        sizes: two sides of square images; the checks that need one size take the first.
        norm_activation_config: a `NormActivation` config; its default otherwise.
    """
    norm_activation_config = norm_activation_config or common.NormActivation()
    keras.utils.set_random_seed(0)  # a small layer can be dead by chance

    def build(size: int) -> keras.Model:
        specs = keras.layers.InputSpec(shape=(None, size, size, 3))
        return factory.build_backbone(
            specs, backbone_config, norm_activation_config, keras.regularizers.L2(1e-4)
        )

    size, other_size = sizes
    images = np.random.RandomState(0).uniform(-1.0, 1.0, (2, size, size, 3)).astype("float32")
    model = build(size)
    check_shapes(model, size)
    check_shapes(build(other_size), other_size)
    check_names(model, build(size))
    check_config_round_trip(model)
    check_file_round_trip(model, images, folder)
    check_training_differs(model, images)
    check_frozen(model, images)
    check_gradients(model, images)
    with mixed_bfloat16():
        check_mixed_precision(build(size), images)


def check_shapes(model: keras.Model, size: int) -> None:
    """Features are keyed by level as a string; `output_specs` and reality agree."""
    outputs = model(np.zeros((1, size, size, 3), "float32"))
    assert isinstance(outputs, dict) and all(isinstance(level, str) for level in outputs)
    assert set(model.output_specs) <= set(outputs)
    for level, spec in model.output_specs.items():
        assert spec[0] is None and tuple(spec[1:]) == tuple(outputs[level].shape[1:]), (
            f"level {level}: output_specs say {spec}, the output is {outputs[level].shape}"
        )
        if level.isdigit():
            side = -(-size // 2 ** int(level))
            assert spec[1:3] == (side, side), f"level {level} of {size} px has shape {spec}"


def check_names(model: keras.Model, again: keras.Model) -> None:
    """Variables have unique names, the same in each model of the kind."""
    paths = [v.path for v in model.variables if "seed_generator" not in v.path]
    others = [v.path for v in again.variables if "seed_generator" not in v.path]
    assert len(set(paths)) == len(paths), "two variables have the same path"
    changed = [f"{a} -> {b}" for a, b in zip(paths, others, strict=True) if a != b]
    assert not changed, f"names change from one model to the next: {changed[:5]}"


def check_config_round_trip(model: keras.Model) -> None:
    """`from_config(get_config())` makes the same model; the config is JSON."""
    config = json.loads(json.dumps(model.get_config()))
    again = type(model).from_config(config)
    assert json.loads(json.dumps(again.get_config())) == config
    assert _signature(again) == _signature(model)
    assert len(again.losses) == len(model.losses), "regularizers were lost"


def check_file_round_trip(model: keras.Model, images: np.ndarray, folder: pathlib.Path) -> None:
    """A `.keras` file gives the same model back."""
    path = folder / "backbone.keras"
    model.save(path)
    again = keras.saving.load_model(path)
    assert type(again) is type(model)
    assert _signature(again) == _signature(model)
    assert_same(again(images, training=False), model(images, training=False))


def check_training_differs(model: keras.Model, images: np.ndarray) -> None:
    """`training` has an effect, and moves every moving statistic."""
    before = [value_of(w) for w in model.non_trainable_weights]
    trained = model(images, training=True)
    for weight, old in zip(model.non_trainable_weights, before, strict=True):
        assert not np.array_equal(value_of(weight), old), (
            f"{weight.path} stays the same in training"
        )
    evaluated = model(images, training=False)
    assert any(
        not np.allclose(ops.convert_to_numpy(trained[level]), ops.convert_to_numpy(x))
        for level, x in evaluated.items()
    ), "training makes no difference"


def check_frozen(model: keras.Model, images: np.ndarray) -> None:
    """Frozen, a model keeps its statistics in training and normalises by them."""
    if not model.non_trainable_weights:
        return
    model.trainable = False
    before = [value_of(w) for w in model.weights]
    model(images, training=True)
    for weight, old in zip(model.weights, before, strict=True):
        np.testing.assert_array_equal(
            value_of(weight), old, err_msg=f"{weight.path} moves though frozen"
        )
    model.trainable = True


def check_gradients(model: keras.Model, images: np.ndarray) -> None:
    """Gradient descent changes every trainable weight.

    In a few steps, as stochastic depth may leave out a block for all examples of one.
    """
    random = np.random.RandomState(1)
    features = keras.tree.flatten(model.output)
    pooled = [ops.mean(x, axis=tuple(range(1, len(x.shape) - 1))) for x in features]
    trained = keras.Model(model.input, keras.layers.Concatenate()(pooled))
    # Lion steps by the sign of the gradient, so that a small one shows beside a large weight.
    trained.compile(keras.optimizers.Lion(1e-3), "mse", run_eagerly=eager())
    before = [value_of(w) for w in model.trainable_weights]
    targets = random.normal(size=(len(images), trained.output.shape[-1]))
    missed = ["all"]
    for _ in range(_GRADIENT_STEPS):
        trained.train_on_batch(images, targets.astype("float32"))
        missed = [
            weight.path
            for weight, old in zip(model.trainable_weights, before, strict=True)
            if np.array_equal(value_of(weight), old)
        ]
        if not missed:
            break
    assert not missed, f"no gradient reaches {missed[:5]}"


def check_mixed_precision(model: keras.Model, images: np.ndarray) -> None:
    """With bfloat16, features are bfloat16 and finite, and weights stay float32."""
    for level, output in model(images, training=True).items():
        assert keras.backend.standardize_dtype(output.dtype) == "bfloat16", level
        assert bool(ops.all(ops.isfinite(ops.cast(output, "float32")))), level
    assert {keras.backend.standardize_dtype(w.dtype) for w in model.weights} == {"float32"}
    again = type(model).from_config(model.get_config())
    assert again.output.keys() == model.output.keys()
    assert _dtypes(again) == _dtypes(model), "the precision was lost in the config"


@contextlib.contextmanager
def mixed_bfloat16() -> Iterator[None]:
    """Layers made inside compute in bfloat16."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


def set_known_weights(model: keras.Model) -> None:
    """Gives each weight values that depend on its shape and the last part of its name only.

    With them, two implementations of a network can be compared by their outputs.
    """
    for weight in model.weights:
        weight.assign(_known_values(weight.name, tuple(weight.shape)))


def _known_values(name: str, shape: tuple[int, ...]) -> np.ndarray:
    k = np.arange(int(np.prod(shape)), dtype="float64") % 9973
    if name == "gamma":
        values = 1 + 0.1 * np.cos(k)
    elif name == "beta":
        values = 0.1 * np.sin(k + 1)
    elif name == "moving_mean":
        values = 0.1 * np.cos(2 * k)
    elif name == "moving_variance":
        values = 1 + 0.5 * np.sin(k) ** 2
    elif "bias" in name:
        values = 0.01 * np.cos(k)
    elif "kernel" in name or len(shape) >= 2:
        depthwise = len(shape) == 4 and shape[-1] == 1
        fan = np.prod(shape[:2] if depthwise else shape[:-1])
        values = np.sqrt(2 / fan) * np.sqrt(2) * np.cos(0.37 * k**2 + k)
    else:
        values = 0.1 * np.cos(k)
    return values.reshape(shape).astype("float32")


def value_of(variable: keras.Variable) -> np.ndarray:
    """A copy of what a variable holds."""
    return np.array(ops.convert_to_numpy(variable))


def _signature(model: keras.Model) -> list[tuple[str, tuple[int, ...], bool]]:
    return [(w.path, tuple(w.shape), w.trainable) for w in model.weights]


def _dtypes(model: keras.Model) -> dict[str, str]:
    return {level: keras.backend.standardize_dtype(x.dtype) for level, x in model.output.items()}


def assert_same(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """Two dicts of features are equal, but for rounding."""
    assert ours.keys() == theirs.keys()
    for level in ours:
        a, b = ops.convert_to_numpy(ours[level]), ops.convert_to_numpy(theirs[level])
        # The same operations on the same numbers, but threads may add up in another order.
        np.testing.assert_allclose(a, b, atol=1e-5 * np.abs(b).max(), err_msg=f"level {level}")


def eager() -> bool:
    """Whether one step of a test had better not be compiled."""
    # Tracing a model for one step takes TensorFlow longer than running it; JAX is the other way.
    return keras.backend.backend() == "tensorflow"
