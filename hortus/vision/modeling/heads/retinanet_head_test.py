import keras
import numpy as np
import pytest

from hortus.vision.configs.heads import AttributeHead
from hortus.vision.modeling.heads import RetinaNetHead

SHAPES = {"3": (None, 4, 4, 6), "4": (None, 2, 2, 6)}


def build(*attributes, **settings):
    head = RetinaNetHead(
        3,
        4,
        num_classes=5,
        num_anchors_per_location=2,
        num_convs=1,
        num_filters=6,
        attribute_heads=attributes,
        name="head",
        **settings,
    )
    head.build(SHAPES)
    return head


def test_everything_is_background_at_first():
    scores, boxes, _ = build()({level: np.ones((1, *s[1:])) for level, s in SHAPES.items()})
    for level in SHAPES:
        # Kernels of deviation 1e-5 move the logits by some 1e-4.
        np.testing.assert_allclose(keras.ops.sigmoid(scores[level]), 0.01, rtol=0.01)
        np.testing.assert_allclose(boxes[level], 0.0, atol=1e-3)


def test_levels_share_kernels_but_not_statistics():
    paths = [weight.path for weight in build().weights]
    assert [path for path in paths if "class_tower" in path and "kernel" in path] == [
        "head/class_tower/conv1/shared/kernel"
    ]
    assert sum("class_tower" in path and "moving_mean" in path for path in paths) == 2
    separate = [weight.path for weight in build(share_level_convs=False).weights]
    assert "head/class_tower/conv1/level4/kernel" in separate


def test_kernels_differ_from_each_other():
    head = build()
    kernels = [head.towers[name].convs[0].convs["shared"].kernel for name in ("class", "box")]
    assert not np.allclose(*map(keras.ops.convert_to_numpy, kernels))


def test_attributes_may_be_configs():
    head = build(AttributeHead(name="depth", size=3))
    assert head.compute_output_shape(SHAPES)[2] == {
        "depth": {"3": (None, 4, 4, 6), "4": (None, 2, 2, 6)}
    }


def test_attributes_of_a_tower_share_it():
    shared = build({"name": "a", "prediction_tower_name": "t"}, {"name": "b", "size": 2})
    both = build(
        {"name": "a", "prediction_tower_name": "t", "num_convs": 2},
        {"name": "b", "prediction_tower_name": "t"},
    )
    assert set(shared.towers) == {"class", "box", "attribute_t", "attribute_b"}
    assert set(both.towers) == {"class", "box", "attribute_t"}
    assert both.towers["attribute_t"].num_convs == 2


def test_classifying_attributes_can_use_the_class_tower():
    kind = {"name": "kind", "type": "classification", "size": 3}
    head = build(kind, {"name": "depth"}, share_classification_heads=True)
    assert set(head.towers) == {"class", "box", "attribute_depth"}


@pytest.mark.parametrize(
    ("attributes", "settings", "message"),
    [
        ([{"name": "a"}, {"name": "a"}], {}, "two attribute heads"),
        ([{"name": "a", "type": "guess"}], {}, "must be one of"),
        ([{"size": 1}], {}, "has a name"),
        ([{"name": "a", "length": 1}], {}, "length"),
        (
            [
                {"name": "a", "prediction_tower_name": "t"},
                {"name": "b", "prediction_tower_name": "t", "num_filters": 7},
            ],
            {},
            "must agree",
        ),
        (
            [{"name": "a", "type": "classification", "prediction_tower_name": "t"}],
            {"share_classification_heads": True},
            "leave out one",
        ),
    ],
)
def test_mistakes_are_told(attributes, settings, message):
    with pytest.raises(ValueError, match=message):
        build(*attributes, **settings)


def test_levels_of_different_anchors_cannot_share():
    with pytest.raises(ValueError, match="share_levels"):
        RetinaNetHead(3, 4, 5, {"3": 1, "4": 2})
