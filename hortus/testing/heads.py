"""What every head must do, checked in one place.

    def test_contract(tmp_path):
        features = {"3": np.zeros((2, 8, 8, 4), "float32")}
        testing.heads.check(lambda: MyHead(5, name="head"), features, tmp_path)

A check that fails raises an AssertionError that says what was expected.
"""

import json
import pathlib
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops

from hortus.testing import backbones
from hortus.testing.open_sizes import call_with_open_sizes


def check(
    make: Callable[[], keras.layers.Layer],
    inputs: Any,
    folder: pathlib.Path,
    *,
    other_inputs: Any = None,
) -> None:
    """Runs all checks on a head.

    Args:
        make: makes it, always the same, with a name and with a kernel regularizer. Something in it
            must act in training only.
        inputs: what it is called with: an array, or a nested structure of arrays.
        folder: where a model may be saved.
        other_inputs: the same with other heights and widths, for heads that take any.
    """
    check_built_by_shapes(make(), inputs)
    head = built(make, inputs)
    if other_inputs is not None:
        check_any_size(head, other_inputs)
    check_names(head, built(make, inputs))
    check_config_round_trip(head, inputs)
    check_file_round_trip(head, inputs, folder)
    check_training_differs(head, inputs)
    check_gradients(head, inputs)
    with backbones.mixed_bfloat16():
        check_mixed_precision(built(make, inputs), inputs)


def built(make: Callable[[], keras.layers.Layer], inputs: Any) -> keras.layers.Layer:
    """A head with variables for such inputs, the number of examples left open."""
    head = make()
    head.build(_shapes(inputs))
    return head


def evaluate(head: keras.layers.Layer, inputs: Any) -> Any:
    """What a built head, or a functional model, returns outside of training.

    On JAX it is compiled as a whole, which is quicker than each operation by itself.
    """
    if backbones.eager():
        return head(inputs, training=False)
    return _model(head, inputs).predict_on_batch(keras.tree.flatten(inputs))


def check_built_by_shapes(head: keras.layers.Layer, inputs: Any) -> None:
    """All variables are there once shapes are known, and the head says what comes out."""
    head.build(_shapes(inputs))
    before = [w.path for w in head.weights]
    assert before, "build made no variables"
    outputs = head(inputs)
    assert [w.path for w in head.weights] == before, "the first call made further variables"
    expected = head.compute_output_shape(_shapes(inputs))
    found = _shapes(outputs)
    assert _plain(expected) == _plain(found), f"expected {expected}, got {found}"


def check_any_size(head: keras.layers.Layer, inputs: Any) -> None:
    """A head that was built for one size takes another, also where that is known late only."""
    outputs = head(inputs)
    assert _plain(head.compute_output_shape(_shapes(inputs))) == _plain(_shapes(outputs))
    _assert_same(call_with_open_sizes(head, inputs), outputs)


def check_names(head: keras.layers.Layer, again: keras.layers.Layer) -> None:
    """Variables have unique names, the same in each head of the kind."""
    paths = [w.path for w in head.weights]
    assert len(set(paths)) == len(paths), "two variables have the same path"
    assert paths == [w.path for w in again.weights], "names change from one head to the next"


def check_config_round_trip(head: keras.layers.Layer, inputs: Any) -> None:
    """`from_config(get_config())` makes the same head; the config is JSON."""
    config = json.loads(json.dumps(head.get_config()))
    again = type(head).from_config(config)
    again.build(_shapes(inputs))
    assert json.loads(json.dumps(again.get_config())) == config
    assert _signature(again) == _signature(head)
    assert head.losses, "nothing is regularised"
    assert len(again.losses) == len(head.losses), "regularizers were lost"


def check_file_round_trip(head: keras.layers.Layer, inputs: Any, folder: pathlib.Path) -> None:
    """A `.keras` file of a model with this head gives the same model back."""
    model = _model(head, inputs)
    path = folder / "head.keras"
    model.save(path)
    again = keras.saving.load_model(path)
    flat = keras.tree.flatten(inputs)
    _assert_same(again(flat, training=False), model(flat, training=False))


def check_training_differs(head: keras.layers.Layer, inputs: Any) -> None:
    """`training` has an effect, and moves every moving statistic unless the head is frozen."""
    weights = head.non_trainable_weights
    before = [backbones.value_of(w) for w in weights]
    trained = keras.tree.flatten(head(inputs, training=True))
    for weight, old in zip(weights, before, strict=True):
        assert not np.array_equal(backbones.value_of(weight), old), f"{weight.path} stays the same"
    evaluated = keras.tree.flatten(head(inputs, training=False))
    assert any(
        not np.allclose(ops.convert_to_numpy(a), ops.convert_to_numpy(b), rtol=1e-3, atol=0)
        for a, b in zip(trained, evaluated, strict=True)
    ), "training makes no difference"
    head.trainable = False
    before = [backbones.value_of(w) for w in head.weights]
    head(inputs, training=True)
    for weight, old in zip(head.weights, before, strict=True):
        assert np.array_equal(backbones.value_of(weight), old), f"{weight.path} moves though frozen"
    head.trainable = True


def check_gradients(head: keras.layers.Layer, inputs: Any) -> None:
    """One step of gradient descent changes every trainable weight."""
    model = _model(head, inputs)
    pooled = [
        ops.mean(x, axis=tuple(range(1, len(x.shape) - 1))) if len(x.shape) > 2 else x
        for x in model.outputs
    ]
    trained = keras.Model(model.inputs, keras.layers.Concatenate()([*pooled, pooled[0]]))
    # Large steps, so that a small gradient shows beside a large weight.
    trained.compile(keras.optimizers.SGD(1e3), "mse", run_eagerly=backbones.eager())
    before = [backbones.value_of(w) for w in head.trainable_weights]
    flat = keras.tree.flatten(inputs)
    targets = np.random.RandomState(1).normal(size=(len(flat[0]), trained.output.shape[-1]))
    trained.train_on_batch(flat, targets.astype("float32"))
    missed = [
        weight.path
        for weight, old in zip(head.trainable_weights, before, strict=True)
        if np.array_equal(backbones.value_of(weight), old)
    ]
    assert not missed, f"no gradient reaches {missed[:5]}"


def check_mixed_precision(head: keras.layers.Layer, inputs: Any) -> None:
    """With bfloat16, predictions are bfloat16 and finite, and weights stay float32."""
    for output in keras.tree.flatten(head(inputs, training=True)):
        assert keras.backend.standardize_dtype(output.dtype) == "bfloat16"
        assert bool(ops.all(ops.isfinite(ops.cast(output, "float32"))))
    assert {keras.backend.standardize_dtype(w.dtype) for w in head.weights} == {"float32"}


def _shapes(values: Any) -> Any:
    """Shapes of a structure of arrays, the number of examples left open."""
    return keras.tree.map_structure(lambda x: (None, *x.shape[1:]), values)


def _plain(shapes: Any) -> Any:
    """Shapes with dicts and tuples only, to compare."""
    if isinstance(shapes, dict):
        return {key: _plain(value) for key, value in shapes.items()}
    if isinstance(shapes, (list, tuple)):
        return tuple(_plain(value) for value in shapes)
    return shapes


def _signature(head: keras.layers.Layer) -> list[tuple[str, tuple[int, ...], bool]]:
    return [(w.path, tuple(w.shape), w.trainable) for w in head.weights]


def _model(head: keras.layers.Layer, inputs: Any) -> keras.Model:
    """From the inputs, as a flat list, to the outputs."""
    flat = [keras.Input(x.shape[1:], dtype=str(x.dtype)) for x in keras.tree.flatten(inputs)]
    return keras.Model(flat, head(keras.tree.pack_sequence_as(inputs, flat)))


def _assert_same(ours: Any, theirs: Any) -> None:
    pairs = zip(keras.tree.flatten(ours), keras.tree.flatten(theirs), strict=True)
    named = {str(index): pair for index, pair in enumerate(pairs)}
    backbones.assert_same(
        {key: pair[0] for key, pair in named.items()}, {key: pair[1] for key, pair in named.items()}
    )
