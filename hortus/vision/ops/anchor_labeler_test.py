import numpy as np
import pytest
from keras import ops

from hortus.testing import reference_dir
from hortus.vision.ops import anchor_labeler, anchors

RETINANET = anchors.AnchorGenerator(3, 7, 3, (0.5, 1.0, 2.0), 4.0)
PROPOSALS = anchors.AnchorGenerator(2, 6, 1, (0.5, 1.0, 2.0), 8.0)
SIZE = (256, 256)


@pytest.fixture(scope="module")
def golden():
    return np.load(reference_dir() / "golden/anchor_labels.npz")


def padded(values, fill=-1):
    """Two images: the objects with padding, and padding alone."""
    rows = np.full((2, len(values) + 3, *values.shape[1:]), fill, values.dtype)
    rows[0, : len(values)] = values
    return rows


def check_levels(golden, prefix, labels, generator, size):
    levels = generator(SIZE)
    values = ops.reshape(labels[0], (-1, size))
    for level, value in anchors.split_levels(values, levels).items():
        expected = golden[f"{prefix}/level{level}"]
        # float32 rounding of codes up to 120
        np.testing.assert_allclose(ops.convert_to_numpy(value), expected, rtol=2e-6, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("m0.5_u0.5", (0.5, 0.5)),
        ("m0.5_u0.4", (0.5, 0.4)),
        ("m0.5_u0.4_coder10_10_5_5", (0.5, 0.4, (10.0, 10.0, 5.0, 5.0))),
        ("m0.5_u0.4_attr_weights", (0.5, 0.4)),
    ],
)
def test_anchor_labels_equal_reference(golden, compiled, name, arguments):
    objects = [padded(golden["gt_boxes"]), padded(golden["gt_labels"])]
    if "attr" in name:
        objects += [{"color": padded(golden["gt_attr_color"])}, padded(golden["gt_weights"])]
    label = compiled(anchor_labeler.AnchorLabeler(*arguments).__call__)
    labels = label(RETINANET.boxes(SIZE), *objects)
    prefix = f"AnchorLabeler/{name}"
    check_levels(golden, f"{prefix}/cls_targets", labels.classes, RETINANET, 1)
    check_levels(golden, f"{prefix}/box_targets", labels.boxes, RETINANET, 4)
    for ours, theirs in (("class_weights", "cls_weights"), ("box_weights", "box_weights")):
        weights = ops.convert_to_numpy(getattr(labels, ours))
        np.testing.assert_array_equal(weights[0], golden[f"{prefix}/{theirs}"])
    if "attr" in name:
        check_levels(golden, f"{prefix}/attr_color", labels.attributes["color"], RETINANET, 2)


def test_an_image_without_objects_is_background(golden, compiled):
    label = compiled(anchor_labeler.AnchorLabeler().__call__)
    labels = label(RETINANET.boxes(SIZE), padded(golden["gt_boxes"]), padded(golden["gt_labels"]))
    classes, weights = np.array(labels.classes)[1], np.array(labels.class_weights)[1]
    assert np.unique(classes) == golden["AnchorLabeler/no_gt/cls_targets_unique"]
    assert weights.sum() == golden["AnchorLabeler/no_gt/cls_weights_sum"]
    assert np.array(labels.box_weights)[1].sum() == 0
    assert np.isfinite(ops.convert_to_numpy(labels.boxes)).all()


def test_proposal_labels_equal_reference(golden, compiled):
    label = anchor_labeler.ProposalLabeler(0.7, 0.3, batch_size=10**6, foreground_fraction=0.5)
    run = compiled(lambda *boxes: label(*boxes, seed=0))  # all are sampled, whatever the seed
    labels = run(PROPOSALS.boxes(SIZE), padded(golden["gt_boxes"]))
    prefix = "RpnAnchorLabeler/all_sampled_batch1e6"
    check_levels(golden, f"{prefix}/score_targets", labels.scores, PROPOSALS, 1)
    check_levels(golden, f"{prefix}/box_targets", labels.boxes, PROPOSALS, 4)


def test_proposal_labels_are_sampled(golden, compiled):
    label = anchor_labeler.ProposalLabeler(batch_size=256)
    boxes = PROPOSALS.boxes(SIZE), padded(golden["gt_boxes"])

    def draw(seed):
        run = compiled(lambda *boxes: label(*boxes, seed=seed).scores)
        return np.array(run(*boxes))

    scores = draw(1)
    counts = [[(image == value).sum() for value in (-1, 0, 1)] for image in scores]
    assert counts[0] == golden["RpnAnchorLabeler/b256_fg0.5/counts_-1_0_1"].tolist()
    assert counts[1][1:] == [256, 0]
    np.testing.assert_array_equal(draw(1), scores)
    assert not np.array_equal(draw(2), scores)
