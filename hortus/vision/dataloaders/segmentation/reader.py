"""Input of semantic segmentation: records, or images with masks -> (image, labels)."""

from collections.abc import Sequence
from typing import Any, Optional

import tensorflow as tf

from hortus.vision.configs import semantic_segmentation as configs
from hortus.vision.dataloaders import augment, decoder, file_types, parser, preprocess
from hortus.vision.dataloaders.dataset_info import DatasetInfo
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.dataloaders.input_reader import InputReader
from hortus.vision.dataloaders.randomness import Rng
from hortus.vision.dataloaders.segmentation import mask_files
from hortus.vision.dataloaders.segmentation.mask_png import decode_mask, decode_segment_ids
from hortus.vision.dataloaders.segmentation.tfds import tfds_input
from hortus.vision.dataloaders.sources.base import Source
from hortus.vision.dataloaders.sources.factory import by_name
from hortus.vision.dataloaders.sources.record_files import COMPRESSIONS

MASK_KEY = "image/segmentation/class/encoded"
"""Record field with the mask, a PNG of class numbers."""

Labels = dict[str, tf.Tensor]


class Decoder(decoder.Decoder):
    """A serialised `tf.train.Example` -> its image, further dense features and mask, all encoded.

    Args:
      feature_names: fields with the encoded image and what is stacked behind it.
    """

    def __init__(self, feature_names: Sequence[str] = ("image/encoded",)):
        self._features = {
            key: tf.io.FixedLenFeature([], tf.string) for key in (*feature_names, MASK_KEY)
        }

    @tf.autograph.experimental.do_not_convert
    def decode(self, serialized_example: tf.Tensor) -> dict[str, tf.Tensor]:
        return tf.io.parse_single_example(serialized_example, self._features)


class Parser(parser.Parser):
    """An encoded image and its encoded mask -> the image and the labels of a batch.

    Labels are a dict of `masks`, int32 [height, width, 1], class numbers; `valid_masks`, bool, the
    pixels that count; and `image_info`, float32 [4, 2], see `preprocess`.

    Args:
      output_size: height and width that images are resized to; None leaves them as they are, for
        evaluation.
      num_classes: classes of the model; a mask with others is an error. 0 for any.
      ignore_label: number of pixels that do not count; padding has it too.
      params: which crops and augmentations to apply, and of which type images are.
    """

    def __init__(
        self,
        output_size: Optional[Sequence[int]],
        num_classes: int,
        ignore_label: int,
        params: configs.DataConfig,
    ):
        self.output_size = None if output_size is None else tuple(output_size)
        self.num_classes = num_classes
        self.ignore_label = ignore_label
        self.params = params
        self._features = [params.image_feature, *params.additional_dense_features]
        self._augmentation = _colour_policy(params.aug_policy) if params.aug_policy else None

    # ---- training ---------------------------------------------------------------------------

    @tf.autograph.experimental.do_not_convert
    def _parse_train_data(
        self, decoded_tensors: dict[str, tf.Tensor], seed: tf.Tensor
    ) -> tuple[tf.Tensor, Labels]:
        params, rng = self.params, Rng(seed)
        image = self._image(decoded_tensors, rng)
        mask = _of_same_size(self.class_mask(decoded_tensors), image)
        if params.aug_rand_hflip:
            image, _, masks = preprocess.random_horizontal_flip(
                image, masks=mask[None], seed=rng.seed()
            )
            assert masks is not None  # as it was given
            mask = masks[0]
        assert self.output_size is not None
        window = list(params.crop_size) or self.output_size
        image, info = preprocess.resize_and_crop_image(
            image,
            self.output_size,
            window,
            params.aug_scale_min,
            params.aug_scale_max,
            seed=rng.seed(),
            keep_aspect_ratio=params.preserve_aspect_ratio,
            centered_crop=params.centered_crop,
            crop_size=params.crop_size or None,
        )
        mask = self._like_image(mask, info, window, params.centered_crop)
        return tf.cast(image, params.dtype), self._labels(mask, info)

    def _like_image(
        self, mask: tf.Tensor, info: tf.Tensor, size: Sequence[int], centered_crop: bool = False
    ) -> tf.Tensor:
        """Brings the mask to where the resized and cropped image is; around it, nothing counts."""
        # Padding is 0, so that for a moment the classes begin with 1.
        moved = preprocess.resize_and_crop_masks(
            mask[None] + 1, info[2], size, info[3], centered_crop
        )
        moved = moved[0] - 1
        return tf.where(moved < 0, self.ignore_label, moved)

    # ---- evaluation -------------------------------------------------------------------------

    @tf.autograph.experimental.do_not_convert
    def _parse_eval_data(self, decoded_tensors: dict[str, tf.Tensor]) -> tuple[tf.Tensor, Labels]:
        params = self.params
        image = self._image(decoded_tensors)
        mask = _of_same_size(self.class_mask(decoded_tensors), image)
        image, info = self._resized(image)
        if not params.resize_eval_groundtruth:
            mask = self._padded(mask, params.groundtruth_padded_size)
        elif self.output_size is not None:
            mask = self._like_image(mask, info, self.output_size)
        return image, self._labels(mask, info)

    def inference_image(self, decoded_tensors: dict[str, tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor]:
        """The image as evaluation and prediction see it, and its image info."""
        return self._resized(self._image(decoded_tensors))

    def inference_pixels(self, images: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The same of pixels, uint8 [batch, height, width, channels]: images of one size."""
        return preprocess.resize_images(self._resized, _normalized(images, self._features[0]))

    def _resized(self, image: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        if self.output_size is None:
            size = tf.cast(tf.shape(image)[:2], tf.float32)
            info = tf.stack([size, size, tf.ones([2]), tf.zeros([2])])
        else:
            image, info = preprocess.resize_and_crop_image(
                image,
                self.output_size,
                self.output_size,
                keep_aspect_ratio=self.params.preserve_aspect_ratio,
            )
        return tf.cast(image, self.params.dtype), info

    def _padded(self, mask: tf.Tensor, size: Sequence[int]) -> tf.Tensor:
        missing = tf.constant(list(size)) - tf.shape(mask)[:2]
        what = f"the mask is larger than groundtruth_padded_size, {list(size)}: height and width"
        fits = tf.debugging.Assert(tf.reduce_all(missing >= 0), [what, tf.shape(mask)[:2]])
        with tf.control_dependencies([fits]):
            paddings = [[0, missing[0]], [0, missing[1]], [0, 0]]
            mask = tf.pad(mask, paddings, constant_values=self.ignore_label)
        return tf.ensure_shape(mask, [*size, 1])

    # ---- both -------------------------------------------------------------------------------

    def _image(self, decoded_tensors: dict[str, tf.Tensor], rng: Optional[Rng] = None) -> tf.Tensor:
        """The normalised image, and what is stacked behind it; colours change with `rng` only."""
        parts = []
        for number, feature in enumerate(self._features):
            part = preprocess.decode_image(
                decoded_tensors[feature.feature_name], feature.num_channels
            )
            if number == 0 and rng is not None:
                part = self._recoloured(part, rng)
            parts.append(_normalized(part, feature))
        return parts[0] if len(parts) == 1 else tf.concat(parts, axis=-1)

    def _recoloured(self, image: tf.Tensor, rng: Rng) -> tf.Tensor:
        strength = self.params.color_jitter
        if strength:
            image = preprocess.color_jitter(image, strength, strength, strength, seed=rng.seed())
        if self._augmentation is not None:
            image = self._augmentation.distort(image, seed=rng.seed())
        return image

    def class_mask(self, decoded_tensors: dict[str, tf.Tensor]) -> tf.Tensor:
        """Class numbers, int32 [height, width, 1]."""
        encoded = decoded_tensors[MASK_KEY]
        if mask_files.SEGMENT_IDS in decoded_tensors:
            mask = self._classes_of_segments(decode_segment_ids(encoded), decoded_tensors)
        else:
            mask = decode_mask(encoded)
            if "classes" in decoded_tensors:
                mask = tf.gather(decoded_tensors["classes"], mask)
        if not self.num_classes:
            return mask
        outside = (mask < 0) | ((mask >= self.num_classes) & (mask != self.ignore_label))
        found = tf.unique(tf.boolean_mask(mask, outside))[0]
        what = (
            f"the mask has numbers that are no class: the model's are 0 to {self.num_classes - 1}, "
            f"and {self.ignore_label} does not count. Found"
        )
        with tf.control_dependencies([tf.debugging.Assert(tf.size(found) == 0, [what, found])]):
            return tf.identity(mask)

    def _classes_of_segments(
        self, ids: tf.Tensor, decoded_tensors: dict[str, tf.Tensor]
    ) -> tf.Tensor:
        known = decoded_tensors[mask_files.SEGMENT_IDS]
        classes = decoded_tensors[mask_files.SEGMENT_CLASSES]
        order = tf.argsort(known)
        # A number beyond all others is found where there is none, so that a place always exists.
        known = tf.concat([tf.gather(known, order), [tf.int32.max]], axis=0)
        classes = tf.concat([tf.gather(classes, order), [self.ignore_label]], axis=0)
        places = tf.searchsorted(known, tf.reshape(ids, [-1]))
        found = tf.where(
            tf.gather(known, places) == tf.reshape(ids, [-1]),
            tf.gather(classes, places),
            self.ignore_label,
        )
        return tf.reshape(found, tf.shape(ids))

    def _labels(self, mask: tf.Tensor, info: tf.Tensor) -> Labels:
        return {
            "masks": mask,
            "valid_masks": mask != self.ignore_label,
            "image_info": info,
        }


def _colour_policy(name: str) -> augment.AutoAugment:
    policy = augment.AutoAugment(name)
    moving = [
        operation
        for operation in policy.operation_names
        if operation.startswith(("Rotate", "Shear", "Translate", "Cutout", "Flip"))
        or "BBox" in operation
    ]
    if moving:
        raise DataError(
            f"aug_policy {name} moves pixels by {', '.join(moving)}, and the masks would stay; "
            "take one that changes colours only, such as panoptic_deeplab_policy"
        )
    return policy


def _normalized(image: tf.Tensor, feature: configs.DenseFeatureConfig) -> tf.Tensor:
    mean, stddev = ([value / 255 for value in x] for x in (feature.mean, feature.stddev))
    return preprocess.normalize_image(image, mean, stddev)


def _of_same_size(mask: tf.Tensor, image: tf.Tensor) -> tf.Tensor:
    sizes = [tf.shape(each)[:2] for each in (mask, image)]
    what = "the mask and the image have different heights and widths:"
    check = tf.debugging.Assert(tf.reduce_all(sizes[0] == sizes[1]), [what, *sizes])
    with tf.control_dependencies([check]):
        return tf.identity(mask)


def describe(params: configs.DataConfig) -> DatasetInfo:
    """What the files tell of a data set, without reading it."""
    if not params.input_path and not params.tfds_name:
        return DatasetInfo()
    return build_reader(params, (1, 1), 0).info


def build_reader(
    params: configs.DataConfig,
    input_size: Sequence[Optional[int]],
    num_classes: int,
    ignore_label: int = 255,
) -> InputReader:
    """The reader of batches (images, labels); see `Parser` for what they hold.

    Images are normalised [batch, height, width, channels] of the config's type. In evaluation,
    where neither `params.output_size` nor the model has a size, they keep their own, and are padded
    to the largest of the batch.

    Args:
      params: what to read and how.
      input_size: height and width of the model's input; either may be None. It counts where
        `params.output_size` is not set.
      num_classes: classes of the model; others in a mask are an error. 0 for any.
      ignore_label: number of pixels that do not count.
    """
    known = file_types.names(file_types.SEGMENTATION)
    if params.file_type not in known:
        raise DataError(
            f"file_type {params.file_type!r} is not for segmentation; expected one of "
            f"{', '.join(known)}"
        )
    if not params.input_path and not params.tfds_name:
        raise DataError("input_path is empty: where is the data?")
    size = _output_size(params, input_size)
    parse = Parser(size, num_classes, ignore_label, params).parse_fn(bool(params.is_training))
    options: dict[str, Any] = {"parser_fn": parse}
    if size is None:
        options["transform_and_batch_fn"] = _PaddedBatches(params, ignore_label)
    if params.tfds_name:
        params, decode = tfds_input(params, params.image_feature.feature_name, MASK_KEY)
        return InputReader(params, decoder_fn=decode, **options)
    if params.file_type in COMPRESSIONS:
        features = [params.image_feature, *params.additional_dense_features]
        decode = Decoder([feature.feature_name for feature in features]).decode
        return InputReader(params, decoder_fn=decode, **options)
    return InputReader(
        params, sources=_mask_file_sources(params, num_classes, ignore_label), **options
    )


def _output_size(
    params: configs.DataConfig, input_size: Sequence[Optional[int]]
) -> Optional[tuple[int, ...]]:
    if params.output_size:
        return tuple(params.output_size)
    if None not in input_size and len(input_size) == 2:
        return tuple(side for side in input_size if side is not None)
    if params.is_training:
        raise DataError(
            "train_data.output_size is not set, and the model takes images of any size: which size "
            "shall they have in training?"
        )
    return None


class _PaddedBatches:
    """Makes batches of images of different sizes."""

    def __init__(self, params: configs.DataConfig, ignore_label: int):
        self.params, self.ignore_label = params, ignore_label

    def __call__(self, dataset: tf.data.Dataset, input_context: Optional[Any]) -> tf.data.Dataset:
        size = self.params.global_batch_size
        if size < 1:
            raise DataError("global_batch_size is not set: how many examples make a step?")
        if input_context is not None:
            size = input_context.get_per_replica_batch_size(size)
        image, labels = dataset.element_spec
        values = {key: tf.zeros([], spec.dtype) for key, spec in labels.items()}
        values["masks"] = tf.constant(self.ignore_label, labels["masks"].dtype)
        return dataset.padded_batch(
            size,
            padding_values=(tf.zeros([], image.dtype), values),
            drop_remainder=self.params.drop_remainder,
        )


@file_types.register_segmentation_files("masks")
def _read_masks(
    input_path: Any, params: configs.DataConfig, mask_path: Any
) -> mask_files.MaskedImages:
    """A folder of images beside a folder of masks."""
    return mask_files.read_mask_folders(input_path, mask_path)


@file_types.register_segmentation_files("coco_panoptic")
def _read_coco_panoptic(
    input_path: Any, params: configs.DataConfig, mask_path: Any
) -> mask_files.MaskedImages:
    """COCO's panoptic format: images, masks and a JSON file."""
    return mask_files.read_coco_panoptic(
        input_path, mask_path, params.annotation_file, params.allow_paths_outside
    )


def _mask_file_sources(
    params: configs.DataConfig, num_classes: int, ignore_label: int
) -> dict[str, Source]:
    """The sources of folders; those of a mix have their classes in common."""
    if params.additional_dense_features:
        raise DataError(
            f"additional_dense_features are fields of records, which file_type {params.file_type} "
            "has not"
        )
    mask_paths = by_name(params.mask_path)
    read = file_types.SEGMENTATION[params.file_type]
    sets = {
        name: read(path, params, mask_paths.get(name))
        for name, path in by_name(params.input_path).items()
    }
    names = {images.class_names for images in sets.values() if images.class_names}
    if len(names) > 1:
        raise DataError(f"the data sets {', '.join(sets)} have different classes")
    for images in sets.values():
        if num_classes and len(images.class_names) > num_classes:
            raise DataError(
                f"{len(images.class_names)} classes in the data "
                f"({', '.join(images.class_names[:10])}), but the model has {num_classes}: set "
                f"task.model.num_classes={len(images.class_names)}"
            )
        if num_classes and images.ignore_label not in (None, ignore_label):
            raise DataError(
                f"{mask_files.CLASSES_FILE} says that pixels of {images.ignore_label} do not "
                f"count: set task.losses.ignore_label={images.ignore_label}"
            )
    return {
        name: images.as_source(params.image_feature.feature_name, MASK_KEY)
        for name, images in sets.items()
    }
