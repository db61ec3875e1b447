"""Records of images with boxes -> dicts of tensors, the image still encoded.

image                     scalar string
source_id                 int64; -1 where the record has none
height, width             int32, in pixels; 0 where the record does not tell
groundtruth_boxes         float32 [n, 4] of ymin, xmin, ymax, xmax, as shares of the image size
groundtruth_classes       int64 [n], from 1
groundtruth_area          float32 [n], in pixels; -1 where the record does not tell
groundtruth_is_crowd      bool [n]
groundtruth_is_difficult  bool [n]
groundtruth_attributes    a dict of int64 [n, 1], where attributes are asked for
groundtruth_masks         string [n], run-lengths, see `mask_codes`, where masks are asked for
"""

import csv
from collections.abc import Callable, Sequence
from typing import Any, Optional

import tensorflow as tf

from hortus.vision.configs import common
from hortus.vision.dataloaders import decoder, preprocess
from hortus.vision.dataloaders.detection import mask_codes
from hortus.vision.dataloaders.detection.classes import COCO_IDS
from hortus.vision.dataloaders.errors import DataError

MASK_FILES, MASK_CODES = "image/object/mask", "image/object/mask/rle"
_EDGES = ("ymin", "xmin", "ymax", "xmax")
_FURTHEST_SHARE = 2.0
"""No box in shares of the image size reaches so far: such numbers are pixels."""


class TfExampleDecoder(decoder.Decoder):
    """Decodes a `tf.train.Example` whose classes are numbers.

    Args:
      regenerate_source_id: whether images are numbered by a hash of their bytes.
      attribute_names: per-object attributes to read, `image/object/attribute/<name>`.
      include_masks: whether masks are read: `image/object/mask`, PNG files of the whole image, or
        `image/object/mask/rle`, COCO's compressed run-lengths, which are quicker and count where a
        record has both.
      mask_threshold: pixels of PNG files above it belong to the object.
    """

    def __init__(
        self,
        regenerate_source_id: bool = False,
        attribute_names: Sequence[str] = (),
        include_masks: bool = False,
        mask_threshold: float = 0.0,
    ):
        self._regenerate_source_id = regenerate_source_id
        self._include_masks, self._mask_threshold = include_masks, mask_threshold
        self._attribute_names = tuple(attribute_names)
        self._features: dict[str, Any] = {
            "image/encoded": tf.io.FixedLenFeature([], tf.string),
            "image/source_id": tf.io.FixedLenFeature([], tf.string, ""),
            "image/height": tf.io.FixedLenFeature([], tf.int64, 0),
            "image/width": tf.io.FixedLenFeature([], tf.int64, 0),
            "image/object/area": tf.io.RaggedFeature(tf.float32),
            "image/object/is_crowd": tf.io.RaggedFeature(tf.int64),
            "image/object/difficult": tf.io.RaggedFeature(tf.int64),
        }
        for edge in _EDGES:
            self._features[f"image/object/bbox/{edge}"] = tf.io.RaggedFeature(tf.float32)
        for name in self._attribute_names:
            self._features[f"image/object/attribute/{name}"] = tf.io.RaggedFeature(tf.int64)
        if include_masks:
            self._features[MASK_FILES] = tf.io.RaggedFeature(tf.string)
            self._features[MASK_CODES] = tf.io.RaggedFeature(tf.string)
        self._features |= self._class_features()

    def _class_features(self) -> dict[str, Any]:
        return {"image/object/class/label": tf.io.RaggedFeature(tf.int64)}

    def _classes(self, features: dict[str, tf.Tensor]) -> tf.Tensor:
        return features["image/object/class/label"]

    @tf.autograph.experimental.do_not_convert
    def decode(self, serialized_example: tf.Tensor) -> dict[str, Any]:
        features = tf.io.parse_single_example(serialized_example, self._features)
        image = features["image/encoded"]
        size = tf.stack([features["image/height"], features["image/width"]])
        size = tf.cast(tf.maximum(size, 0), tf.int32)
        boxes = tf.stack([features[f"image/object/bbox/{edge}"] for edge in _EDGES], axis=-1)
        boxes = checked_shares(boxes)
        count = tf.shape(boxes)[0]

        def flags(key: str) -> tf.Tensor:
            return _or_fill(features[key], count, 0) != 0

        source_id = preprocess.process_source_id(features["image/source_id"])
        if self._regenerate_source_id:
            source_id = tf.strings.to_hash_bucket_fast(image, 2**63 - 1)
        example: dict[str, Any] = {
            "image": image,
            "source_id": source_id,
            "height": size[0],
            "width": size[1],
            "groundtruth_boxes": boxes,
            "groundtruth_classes": self._classes(features),
            "groundtruth_area": _or_fill(features["image/object/area"], count, -1),
            "groundtruth_is_crowd": flags("image/object/is_crowd"),
            "groundtruth_is_difficult": flags("image/object/difficult"),
        }
        if self._attribute_names:
            example["groundtruth_attributes"] = {
                name: features[f"image/object/attribute/{name}"][:, tf.newaxis]
                for name in self._attribute_names
            }
        if self._include_masks:
            example["groundtruth_masks"] = self._masks(features, count)
        return example

    def _masks(self, features: dict[str, tf.Tensor], count: tf.Tensor) -> tf.Tensor:
        codes, files = features[MASK_CODES], features[MASK_FILES]
        has_codes = tf.size(codes) == count
        text = "a record must have a mask for each of its objects; objects and masks:"
        fits = has_codes | (tf.size(files) == count)
        check = tf.debugging.Assert(fits, [text, count, "and", tf.size(files), f"({MASK_FILES})"])
        with tf.control_dependencies([check]):
            masks = tf.cond(
                has_codes,
                lambda: codes,
                lambda: mask_codes.encode_pngs(files, self._mask_threshold),
            )
        return tf.ensure_shape(masks, [None])


class TfExampleDecoderLabelMap(TfExampleDecoder):
    """Decodes a `tf.train.Example` whose classes are names.

    Args:
      label_map: a CSV file with a name and its class number in each line.
      regenerate_source_id: whether images are numbered by a hash of their bytes.
      include_masks: see `TfExampleDecoder`.
      mask_threshold: see `TfExampleDecoder`.
    """

    def __init__(
        self,
        label_map: str,
        regenerate_source_id: bool = False,
        include_masks: bool = False,
        mask_threshold: float = 0.0,
    ):
        super().__init__(regenerate_source_id, (), include_masks, mask_threshold)
        self.numbers = read_label_map(label_map)
        self._label_map = label_map
        self._table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(
                list(self.numbers), list(self.numbers.values()), tf.string, tf.int64
            ),
            default_value=-1,
        )

    def _class_features(self) -> dict[str, Any]:
        return {"image/object/class/text": tf.io.RaggedFeature(tf.string)}

    def _classes(self, features: dict[str, tf.Tensor]) -> tf.Tensor:
        names = features["image/object/class/text"]
        numbers = self._table.lookup(names)
        text = f"a class is not in {self._label_map}:"
        check = tf.debugging.Assert(tf.reduce_all(numbers >= 0), [text, names])
        with tf.control_dependencies([check]):
            return tf.identity(numbers)


def build_decoder(config: common.DataDecoder, include_masks: bool = False) -> TfExampleDecoder:
    """The decoder that a config describes."""
    if config.type == "label_map_decoder":
        settings = config.label_map_decoder
        return TfExampleDecoderLabelMap(
            settings.label_map,
            settings.regenerate_source_id,
            include_masks,
            settings.mask_binarize_threshold or 0.0,
        )
    if config.type == "simple_decoder":
        simple = config.simple_decoder
        return TfExampleDecoder(
            simple.regenerate_source_id,
            simple.attribute_names,
            include_masks,
            simple.mask_binarize_threshold or 0.0,
        )
    raise DataError(
        f"decoder.type must be simple_decoder or label_map_decoder, got {config.type!r}"
    )


def read_label_map(path: str) -> dict[str, int]:
    """Class numbers by name, from a CSV file of `name,number`."""
    try:
        with tf.io.gfile.GFile(path) as file:
            rows = [row for row in csv.reader(file) if row]
        numbers = {row[0].strip(): int(row[1]) for row in rows}
    except tf.errors.OpError as error:
        raise DataError(f"label_map {path}: cannot be read: {error.message}") from None
    except (ValueError, IndexError):
        raise DataError(f"label_map {path}: expected `class name,number` in each line") from None
    if not numbers:
        raise DataError(f"label_map {path}: there are no classes in it")
    return numbers


def tfds_decoder(
    name: str, num_classes: int, include_masks: bool = False
) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Brings the features of a set of TensorFlow Datasets under the keys of this module.

    Their labels count from 0, ours from 1. Those of COCO get their original ids where the model
    has classes for them, see `classes.number_classes`.

    Masks are those of `objects`: `rle`, COCO's compressed run-lengths, or `mask`, bitmaps of the
    whole image; or those of a panoptic set, `panoptic_objects` in `panoptic_image`, of which only
    COCO's 80 classes of things are objects.
    """
    uses_coco_ids = keeps_coco_ids(name, num_classes)

    def decode(features: dict[str, Any]) -> dict[str, Any]:
        objects = features["objects"] if "objects" in features else _things(features)
        boxes = checked_shares(tf.cast(objects["bbox"], tf.float32))
        count = tf.shape(boxes)[0]
        labels = tf.cast(objects["label"], tf.int64)
        classes = (
            tf.gather(tf.constant(COCO_IDS, tf.int64), labels) if uses_coco_ids else labels + 1
        )
        areas = objects.get("area", tf.fill([count], -1))
        source_id = features.get("image/id", features.get("image/filename", tf.constant("")))
        example = {
            "image": features["image"],
            "source_id": preprocess.process_source_id(tf.convert_to_tensor(source_id)),
            "height": tf.constant(0),
            "width": tf.constant(0),
            "groundtruth_boxes": boxes,
            "groundtruth_classes": classes,
            "groundtruth_area": tf.cast(areas, tf.float32),
            "groundtruth_is_crowd": _flags(objects.get("is_crowd"), count),
            "groundtruth_is_difficult": _flags(objects.get("is_difficult"), count),
        }
        if include_masks:
            example["groundtruth_masks"] = _tfds_masks(name, features, objects)
        return example

    return decode


def _things(features: dict[str, Any]) -> dict[str, tf.Tensor]:
    """The objects of COCO's panoptic set, without what cannot be counted, as sky and grass."""
    objects = features["panoptic_objects"]
    rows = tf.where(objects["label"] < len(COCO_IDS))[:, 0]
    return {key: tf.gather(values, rows) for key, values in objects.items()}


def _tfds_masks(name: str, features: dict[str, Any], objects: dict[str, tf.Tensor]) -> tf.Tensor:
    if "rle" in objects:
        return objects["rle"]
    if "mask" in objects:
        bitmaps = objects["mask"]
        numbers = tf.range(tf.shape(bitmaps)[0])
        return mask_codes.encode_each(lambda number: bitmaps[number, ..., 0], numbers)
    if "panoptic_image" in features:
        colours = tf.cast(features["panoptic_image"], tf.int32)
        labels = tf.reduce_sum(colours * [1, 256, 65536], axis=-1)
        return mask_codes.encode_numbers(labels, objects["id"])
    raise DataError(
        f"{name} has no masks: its objects have {', '.join(sorted(objects))}, where rle or mask is "
        "expected. COCO has masks as coco/2017_panoptic; for a model of boxes alone set "
        "task.model.include_mask=false"
    )


def keeps_coco_ids(tfds_name: str, num_classes: int) -> bool:
    """Whether the labels of this set of TensorFlow Datasets become COCO's original ids."""
    return tfds_name.split("/")[0] == "coco" and num_classes > COCO_IDS[-1]


def checked_shares(boxes: tf.Tensor) -> tf.Tensor:
    """The boxes, once it is clear that they are shares of the image size."""
    text = "boxes must be shares of the image size, 0 to 1, but these look like pixels:"
    are_shares = tf.reduce_all(tf.abs(boxes) < _FURTHEST_SHARE)
    with tf.control_dependencies([tf.debugging.Assert(are_shares, [text, boxes])]):
        return tf.identity(boxes)


def _or_fill(values: tf.Tensor, count: tf.Tensor, fill: int) -> tf.Tensor:
    """The values of a feature, unless the record has none while it has objects."""
    filled = tf.fill([count], tf.cast(fill, values.dtype))
    result = tf.cond(tf.shape(values)[0] == count, lambda: values, lambda: filled)
    result.set_shape([None])
    return result


def _flags(values: Optional[tf.Tensor], count: tf.Tensor) -> tf.Tensor:
    return tf.zeros([count], tf.bool) if values is None else tf.cast(values, tf.bool)
