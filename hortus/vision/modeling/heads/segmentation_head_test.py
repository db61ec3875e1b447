import numpy as np
import pytest

from hortus.vision.modeling.heads import SegmentationHead

FEATURES = {"3": np.ones((1, 4, 6, 5), "float32"), "4": np.ones((1, 2, 3, 5), "float32")}


def test_a_decoder_may_give_one_map():
    head = SegmentationHead(4, 3, num_convs=0)
    assert tuple(head((FEATURES, FEATURES["3"])).shape) == (1, 4, 6, 4)


def test_activation_of_the_output():
    head = SegmentationHead(4, 3, num_convs=0, logit_activation="softmax")
    outputs = np.asarray(head((FEATURES, FEATURES)))
    # Sums of four float32 numbers.
    np.testing.assert_allclose(outputs.sum(axis=-1), 1.0, atol=1e-6)


def test_a_level_that_is_not_there():
    with pytest.raises(ValueError, match="level 5 of the decoder, which has levels 3, 4"):
        SegmentationHead(4, 5)((FEATURES, FEATURES))
    with pytest.raises(ValueError, match="level 2 of the backbone"):
        SegmentationHead(4, 3, feature_fusion="deeplabv3plus")((FEATURES, FEATURES))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"feature_fusion": "deeplab"}, "feature_fusion must be one of"),
        ({"feature_fusion": "panoptic_fpn_fusion"}, "needs decoder_min_level"),
        (
            {
                "feature_fusion": "panoptic_fpn_fusion",
                "decoder_min_level": 2,
                "decoder_max_level": 5,
            },
            "level must equal decoder_min_level",
        ),
        (
            {
                "feature_fusion": "panoptic_fpn_fusion",
                "decoder_min_level": 3,
                "decoder_max_level": 5,
                "num_filters": 48,
            },
            "multiple of 32",
        ),
    ],
)
def test_mistakes_are_told(settings, message):
    with pytest.raises(ValueError, match=message):
        SegmentationHead(4, 3, **settings)
