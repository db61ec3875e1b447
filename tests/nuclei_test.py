"""Real instance data, read in two ways: nuclei as polygons and as exact run-lengths."""

import numpy as np

from hortus.testing import shared_file
from hortus.vision.configs import maskrcnn
from hortus.vision.dataloaders.detection import coco_files
from hortus.vision.dataloaders.detection import reader as detection_input
from hortus.vision.ops.segmentations import decode_bitmap, measure_codes


def test_polygons_and_run_lengths_of_nuclei_agree():
    folder = shared_file("datasets/inst_nuclei")
    for split, images, objects in (("train", 77, 2471), ("val", 19, 557)):
        drawn, exact = (
            coco_files.read_coco(str(folder / f"{split}{kind}.json"), include_masks=True)
            for kind in ("", "_rle")
        )
        for data in (drawn, exact):
            assert (len(data), len(data.masks)) == (images, objects)
            assert not data.mask_problems
        np.testing.assert_array_equal(drawn.boxes, exact.boxes)
        sizes = exact.sizes[exact.images_of_objects]
        areas, boxes = measure_codes(exact.masks, sizes)
        # What the file says of its masks is true of the run-lengths to the last pixel.
        np.testing.assert_array_equal(areas, exact.areas)
        np.testing.assert_array_equal(boxes, exact.boxes)
        ious = []
        for code, other, size in zip(drawn.masks, exact.masks, sizes.tolist(), strict=True):
            first, second = (decode_bitmap(each, *size) > 0 for each in (code, other))
            ious.append((first & second).sum() / (first | second).sum())
        # A polygon cannot tell a hole, nor parts that touch in a corner: few nuclei have any.
        assert np.mean(ious) > 0.999 and np.min(ious) > 0.95


def test_batches_of_nuclei_are_the_same_both_ways():
    folder = shared_file("datasets/inst_nuclei")
    model = maskrcnn.MaskRCNN(num_classes=2, input_size=[256, 256, 3])
    batches = []
    for kind in ("", "_rle"):
        params = maskrcnn.DataConfig(
            input_path=str(folder / f"val{kind}.json"),
            file_type="coco",
            global_batch_size=4,
            dtype="float32",
            drop_remainder=False,
            parser=maskrcnn.Parser(mask_crop_size=28),
        )
        batches.append(next(iter(detection_input.build_dataset(params, model))))
    (images, drawn), (other_images, exact) = batches
    np.testing.assert_array_equal(images, other_images)
    np.testing.assert_array_equal(drawn["boxes"], exact["boxes"])
    rows = exact["classes"].numpy() > 0
    first, second = (labels["masks"].numpy()[rows] > 0 for labels in (drawn, exact))
    ious = (first & second).sum(axis=(1, 2)) / (first | second).sum(axis=(1, 2))
    assert np.mean(ious) > 0.999
