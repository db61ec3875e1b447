"""Checkpoints of TensorFlow with the structure of the existing system's, loaded into Keras models.

The existing system's Functional models save their layers as `layer_with_weights-<n>`, and what
subclassed layers hold under the names of their attributes.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf

from hortus.core.checkpoints import errors, values
from hortus.core.checkpoints.modules import load_modules


def module(**parts):
    """A TensorFlow object with attributes, of which underscores stand for dashes in units."""
    made = tf.Module()
    for name, part in parts.items():
        setattr(made, name.replace("unit_", "layer_with_weights-"), part)
    return made


def variable(*shape):
    variable.count += 1
    return tf.Variable(np.random.default_rng(variable.count).standard_normal(shape, "float32"))


variable.count = 0


def conv(*shape, bias=False, kernel="kernel"):
    return module(**{kernel: variable(*shape)}, **({"bias": variable(shape[-1])} if bias else {}))


def norm(size):
    names = ("gamma", "beta", "moving_mean", "moving_variance")
    return module(**{name: variable(size) for name in names})


class Block(keras.layers.Layer):
    """Two convolutions of one shape, as attributes that are called as in the existing system."""

    def __init__(self, first="_conv1", second="_conv2"):
        super().__init__()
        setattr(self, first, keras.layers.Conv2D(4, 3, padding="same", use_bias=False))
        self._norm1 = keras.layers.BatchNormalization()
        setattr(self, second, keras.layers.Conv2D(4, 3, padding="same", use_bias=False))
        self.parts = (first, second)

    def build(self, shape):
        for name in self.parts:
            getattr(self, name).build((None, None, None, 4))
        self._norm1.build((None, None, None, 4))

    def call(self, x):
        first, second = self.parts
        return getattr(self, second)(self._norm1(getattr(self, first)(x)))


def backbone(*blocks):
    inputs = keras.Input((8, 8, 3))
    x = keras.layers.Conv2D(4, 3, use_bias=False, padding="same")(inputs)
    x = keras.layers.BatchNormalization()(x)
    for block in blocks or (Block(), Block()):
        x = block(x)
    return keras.Model(inputs, keras.layers.ReLU()(x))


class Classifier(keras.Model):
    def __init__(self, parts, classes=5):
        inputs = keras.Input((8, 8, 3))
        head = keras.layers.Dense(classes)
        super().__init__(inputs, head(parts(inputs)))
        self.backbone, self.head = parts, head

    @property
    def checkpoint_items(self):
        return {"backbone": self.backbone, "head": self.head}


def old_block():
    return module(_conv1=conv(3, 3, 4, 4), _norm1=norm(4), _conv2=conv(3, 3, 4, 4))


def old_backbone():
    return module(unit_0=conv(3, 3, 3, 4), unit_1=norm(4), unit_2=old_block(), unit_3=old_block())


def same(layer_weight, old_variable):
    return values.read(layer_weight).tolist() == old_variable.numpy().tolist()


def unit(old, index):
    return getattr(old, f"layer_with_weights-{index}")


def save(tmp_path, **items):
    checkpoint = tf.train.Checkpoint(**items, global_step=tf.Variable(3, dtype=tf.int64))
    return checkpoint.write(str(tmp_path / "ckpt-3"))


def check_backbone(parts, old):
    layers = [layer for layer in parts.layers if layer.weights]
    assert same(layers[0].kernel, unit(old, 0).kernel)
    assert same(layers[1].moving_variance, unit(old, 1).moving_variance)
    for index in (2, 3):
        block, theirs = layers[index], unit(old, index)
        assert same(block._conv1.kernel, theirs._conv1.kernel)
        assert same(block._conv2.kernel, theirs._conv2.kernel)
        assert same(block._norm1.beta, theirs._norm1.beta)


def test_graph_layers_in_order_and_attributes_by_name(tmp_path):
    old, model = old_backbone(), Classifier(backbone())
    report = load_modules(model, save(tmp_path, backbone=old), "backbone")
    check_backbone(model.backbone, old)
    assert len(report.loaded) == len(model.backbone.weights)
    assert all(row.by_order for row in report.loaded)
    assert report.loaded[0].file_shape == report.loaded[0].shape


def test_the_whole_model_by_attributes(tmp_path):
    old = module(_backbone=old_backbone(), _head=conv(4, 5, bias=True))
    model = Classifier(backbone())
    load_modules(model, save(tmp_path, model=old, optimizer=module(rate=tf.Variable(0.1))))
    check_backbone(model.backbone, old._backbone)
    assert same(model.head.kernel, old._head.kernel)


def test_a_module_within_the_model(tmp_path):
    old = module(_backbone=old_backbone())
    model = Classifier(backbone())
    load_modules(model, save(tmp_path, model=old), ["backbone"])
    check_backbone(model.backbone, old._backbone)


def test_other_classes_are_skipped(tmp_path):
    old = module(backbone=old_backbone(), head=conv(4, 9, bias=True))
    model = Classifier(backbone(), classes=5)
    report = load_modules(model, save(tmp_path, model=old))
    check_backbone(model.backbone, old.backbone)
    skipped = {row.name: (row.shape, row.file_shape) for row in report.skipped}
    assert skipped == {"head/kernel": ((4, 5), (4, 9)), "head/bias": ((5,), (9,))}


def test_what_the_model_lacks_is_reported(tmp_path):
    old = old_backbone()
    old.extra = variable(2)
    report = load_modules(Classifier(backbone()), save(tmp_path, backbone=old), "backbone")
    assert [(row.name, row.file_shape) for row in report.unused] == [("backbone/extra", (2,))]


def test_two_alike_under_other_names_are_not_guessed(tmp_path):
    model = Classifier(backbone(Block("_a", "_b"), Block("_a", "_b")))
    before = [values.read(w).tolist() for w in model.weights]
    with pytest.raises(errors.CheckpointError) as caught:
        load_modules(model, save(tmp_path, backbone=old_backbone()), "backbone")
    message = str(caught.value)
    assert "4 of 17 weights found no value" in message
    assert "backbone/layers/block-0/a/kernel (3, 3, 4, 4)" in message
    assert "layer_with_weights-2/_conv1/kernel (3, 3, 4, 4)" in message
    assert [values.read(w).tolist() for w in model.weights] == before


def test_one_under_another_name_is_found_by_its_shape(tmp_path):
    model = Classifier(backbone(Block("_other", "_conv2"), Block("_other", "_conv2")))
    old = old_backbone()
    load_modules(model, save(tmp_path, backbone=old), "backbone")
    block = [layer for layer in model.backbone.layers if layer.weights][3]
    assert same(block._other.kernel, unit(old, 3)._conv1.kernel)
    assert same(block._conv2.kernel, unit(old, 3)._conv2.kernel)


def test_blocks_of_the_checkpoint_that_the_model_lays_flat(tmp_path):
    old = module(
        unit_0=module(_depthwise=conv(3, 3, 4, 1, kernel="depthwise_kernel"), _norm=norm(4)),
        unit_1=module(_pointwise=conv(1, 1, 4, 6, bias=True)),
    )
    inputs = keras.Input((8, 8, 4))
    x = keras.layers.DepthwiseConv2D(3, use_bias=False)(inputs)
    x = keras.layers.BatchNormalization()(x)
    model = keras.Model(inputs, keras.layers.Conv2D(6, 1)(x))
    load_modules(model, save(tmp_path, model=old))
    layers = model.layers
    assert same(layers[1].kernel, unit(old, 0)._depthwise.depthwise_kernel)
    assert same(layers[2].gamma, unit(old, 0)._norm.gamma)
    assert same(layers[3].bias, unit(old, 1)._pointwise.bias)


def test_another_number_of_layers_is_an_error(tmp_path):
    model = Classifier(backbone(Block()))
    with pytest.raises(errors.CheckpointError, match=r"cannot match backbone"):
        load_modules(model, save(tmp_path, backbone=old_backbone()), "backbone")


def test_lists_by_index(tmp_path):
    class Towers(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.towers = [keras.layers.Dense(3), keras.layers.Dense(3)]

        def build(self, shape):
            for tower in self.towers:
                tower.build(shape)

    layer = Towers()
    layer.build((None, 3))
    old = module(_towers=[conv(3, 3, bias=True), conv(3, 3, bias=True)])
    report = load_modules(layer, save(tmp_path, model=old))
    for ours, theirs in zip(layer.towers, old._towers, strict=True):
        assert same(ours.kernel, theirs.kernel)
    assert not any(row.by_order for row in report.loaded)


class Head(keras.layers.Layer):
    """Two lists, or two nested objects, of layers that look alike."""

    def __init__(self, make):
        super().__init__()
        self.scores, self.boxes = make(), make()

    def build(self, shape):
        for part in (self.scores, self.boxes):
            for layer in part if isinstance(part, list) else [part.inner]:
                layer.build(shape)


class Nested(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.inner = keras.layers.Dense(3)


@pytest.mark.parametrize("kind", ["lists", "nested"])
def test_alike_in_lists_or_deeper_are_not_guessed_either(tmp_path, kind):
    # The checkpoint names the boxes first: by order, scores would get the weights of boxes.
    if kind == "lists":
        head = Head(lambda: [keras.layers.Dense(3)])
        old = module(_regressor=[conv(3, 3, bias=True)], _classifier=[conv(3, 3, bias=True)])
    else:
        head = Head(Nested)
        old = module(
            _regressor=module(dense=conv(3, 3, bias=True)),
            _classifier=module(dense=conv(3, 3, bias=True)),
        )
    head.build((None, 3))
    with pytest.raises(errors.CheckpointError, match="4 of 4 weights found no value"):
        load_modules(head, save(tmp_path, model=old))


def test_layers_of_branches_are_not_taken_by_depth(tmp_path):
    first, second = conv(3, 3, 3, 3), conv(3, 3, 3, 3)
    # As Keras would count them: the layer that was made later is listed first.
    with tf.name_scope("conv2d_2"):
        first.kernel = tf.Variable(tf.ones((3, 3, 3, 3)), name="kernel")
    with tf.name_scope("conv2d_1"):
        second.kernel = tf.Variable(tf.zeros((3, 3, 3, 3)), name="kernel")
    inputs = keras.Input((8, 8, 3))
    a = keras.layers.Conv2D(3, 3, use_bias=False)(inputs)
    b = keras.layers.Conv2D(3, 3, use_bias=False)(inputs)
    model = keras.Model(inputs, [a, b])
    path = save(tmp_path, model=module(unit_0=first, unit_1=second))
    with pytest.raises(errors.CheckpointError, match="2 of 2 weights found no value"):
        load_modules(model, path)


def test_a_missing_module_is_told(tmp_path):
    path = save(tmp_path, decoder=module(x=variable(1)))
    with pytest.raises(errors.CheckpointError, match=r"holds no backbone.*decoder"):
        load_modules(Classifier(backbone()), path, "backbone")


def test_a_folder_of_tensorflow_checkpoints(tmp_path):
    old, model = old_backbone(), Classifier(backbone())
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(backbone=old), str(tmp_path / "a"), 2)
    manager.save(1)
    unit(old, 0).kernel.assign_add(tf.ones_like(unit(old, 0).kernel))
    manager.save(2)
    (tmp_path / "a").rename(tmp_path / "moved")
    load_modules(model, tmp_path / "moved", "backbone")
    check_backbone(model.backbone, old)


def test_a_checkpoint_of_names_alone_is_refused(tmp_path):
    tf.raw_ops.SaveV2(
        prefix=str(tmp_path / "a"),
        tensor_names=["x"],
        shape_and_slices=[""],
        tensors=[tf.constant(1.0)],
    )
    with pytest.raises(errors.CheckpointError, match="without an object graph"):
        load_modules(Classifier(backbone()), tmp_path / "a")
