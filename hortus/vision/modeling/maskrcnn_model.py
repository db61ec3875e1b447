"""Faster, Mask and Cascade R-CNN: detectors that look at an image and then at its regions."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import keras
from keras import ops

from hortus.vision.modeling.layers.configurable import Configurable
from hortus.vision.modeling.layers.detection.mask_sampler import MaskSampler
from hortus.vision.modeling.layers.detection.region_detection_generator import DetectionGenerator
from hortus.vision.modeling.layers.detection.roi_aligner import MultilevelROIAligner
from hortus.vision.modeling.layers.detection.roi_generator import MultilevelROIGenerator
from hortus.vision.modeling.layers.detection.roi_sampler import ROISampler, SampledROIs
from hortus.vision.ops import box_coder
from hortus.vision.ops import boxes as box_ops
from hortus.vision.ops.anchors import AnchorGenerator

BOX_CODER_WEIGHTS = (10.0, 10.0, 5.0, 5.0)
"""Scales of the codes of the first stage of a cascade. Boxes change less from stage to stage: the
second one has twice, the third one three times as much (Cai and Vasconcelos 2017)."""


class _Stage(NamedTuple):
    """What a stage looked at, and what it said."""

    rois: Any
    """float32 (batch, regions, 4), in pixels."""
    classes: Any
    """Logits (batch, regions, classes)."""
    boxes: Any
    """Codes (batch, regions, classes * 4 or 4)."""
    weights: tuple[float, ...]
    """Scales of the codes."""
    outputs: dict[str, Any]
    """What the model returns of it."""


@keras.saving.register_keras_serializable(package="Hortus")
class MaskRCNNModel(Configurable, keras.Model):
    """Maps images (batch, height, width, channels) to objects, and to their masks.

    All variables exist once it is made.

    Args:
        backbone: a model from images to features by level, with `output_specs`.
        decoder: a model from those to features of `min_level` to `max_level`, with `output_specs`;
            None where the backbone has these levels itself.
        rpn_head: a layer from features by level to objectness and boxes of the anchors.
        detection_head: a layer from features of regions to classes and boxes, or one for each stage
            of a cascade.
        roi_generator: a layer from scored anchors to regions.
        roi_sampler: a layer that chooses regions to learn from, or one for each stage.
        roi_aligner: a layer from regions to their features.
        detection_generator: a layer from classes and boxes to detections.
        mask_head: a layer from features of regions and their classes to masks; None for none, then
            the next two are not needed.
        mask_sampler: a layer that chooses regions whose masks to learn.
        mask_roi_aligner: a layer from regions to their features, for the masks.
        cascade_class_ensemble: average the logits of all stages outside of training.
        min_level: finest level that is searched.
        max_level: coarsest level that is searched.
        num_scales: sizes of the anchors of each level, spread over one octave.
        aspect_ratios: width / height of the anchors of each size.
        anchor_size: side of the smallest square anchor, in places of its level.
        outer_boxes_scale: masks are drawn in boxes that are larger by this factor; 1 or more.
        seed: of the choice of anchors to learn from; None for one drawn at random.
        **kwargs: of `keras.Model`.
    """

    def __init__(
        self,
        backbone: keras.Model,
        decoder: keras.Model | None,
        rpn_head: keras.layers.Layer,
        detection_head: keras.layers.Layer | Sequence[keras.layers.Layer],
        roi_generator: MultilevelROIGenerator,
        roi_sampler: ROISampler | Sequence[ROISampler],
        roi_aligner: MultilevelROIAligner,
        detection_generator: DetectionGenerator,
        mask_head: keras.layers.Layer | None = None,
        mask_sampler: MaskSampler | None = None,
        mask_roi_aligner: MultilevelROIAligner | None = None,
        cascade_class_ensemble: bool = False,
        min_level: int = 2,
        max_level: int = 6,
        num_scales: int = 1,
        aspect_ratios: Sequence[float] = (0.5, 1.0, 2.0),
        anchor_size: float = 8.0,
        outer_boxes_scale: float = 1.0,
        seed: int | None = None,
        **kwargs: Any,
    ):
        # The layers cast images by themselves; sizes and anchors must keep their precision.
        super().__init__(**{"autocast": False, **kwargs})
        self.backbone = backbone
        self.decoder = decoder
        self.rpn_head = rpn_head
        self.detection_head = _as_list(detection_head)
        self.roi_generator = roi_generator
        self.roi_sampler = _as_list(roi_sampler)
        self.roi_aligner = roi_aligner
        self.detection_generator = detection_generator
        self.mask_head = mask_head
        self.mask_sampler = mask_sampler
        self.mask_roi_aligner = mask_roi_aligner
        self.cascade_class_ensemble = cascade_class_ensemble
        self.min_level = min_level
        self.max_level = max_level
        self.num_scales = num_scales
        self.aspect_ratios = tuple(aspect_ratios)
        self.anchor_size = anchor_size
        self.outer_boxes_scale = outer_boxes_scale
        self.seed = seed
        self.anchor_seed = keras.random.SeedGenerator(seed)
        """Of the choice of anchors to learn from. The task chooses; the state is the model's, so
        that it is saved with it."""
        if len(self.detection_head) != len(self.roi_sampler):
            raise ValueError(
                "a cascade has one detection head and one sampler for each stage, got "
                f"{len(self.detection_head)} and {len(self.roi_sampler)}"
            )
        if mask_head is not None and None in (mask_sampler, mask_roi_aligner):
            raise ValueError("a mask_head needs a mask_sampler and a mask_roi_aligner too")
        self._build_heads()
        self.built = True

    def _build_heads(self) -> None:
        specs = self.backbone.output_specs if self.decoder is None else self.decoder.output_specs
        searched = self._searched(specs)
        channels = searched[str(self.min_level)][-1]
        if not self.rpn_head.built:
            self.rpn_head.build(searched)
        size = self.roi_aligner.crop_size
        for head in self.detection_head:
            if not head.built:
                head.build((None, None, size, size, channels))
        if self.mask_head is not None and not self.mask_head.built:
            size = self.mask_roi_aligner.crop_size  # type: ignore[union-attr]
            self.mask_head.build(((None, None, size, size, channels), (None, None)))

    @property
    def anchors(self) -> AnchorGenerator:
        """Makes the anchors of an image."""
        return AnchorGenerator(
            self.min_level, self.max_level, self.num_scales, self.aspect_ratios, self.anchor_size
        )

    @property
    def checkpoint_items(self) -> dict[str, Any]:
        """What can be loaded from a checkpoint by itself; `detection_head` is one per stage."""
        names = ("backbone", "decoder", "detection_head", "mask_head", "rpn_head")
        items = {name: getattr(self, name) for name in names}
        return {name: item for name, item in items.items() if item is not None}

    def call(
        self,
        images: Any,
        image_shape: Any = None,
        anchor_boxes: Mapping[str, Any] | None = None,
        gt_boxes: Any = None,
        gt_classes: Any = None,
        gt_masks: Any = None,
        gt_is_crowd: Any = None,
        output_intermediate_features: bool = False,
        training: bool | None = None,
    ) -> dict[str, Any]:
        """Looks for objects, or for what it has to learn.

        Args:
            images: (batch, height, width, channels).
            image_shape: (batch, 2), height and width of what the images show, in pixels, where
                they are padded; boxes end there. By default all of it counts.
            anchor_boxes: by level, (height, width, anchors * 4), or the same for each image; by
                default those that `anchors` makes.
            gt_boxes: of the objects, (batch, objects, 4), in pixels, padded with -1. They, and the
                following ones, are looked at in training only.
            gt_classes: of the objects, (batch, objects), from 1.
            gt_masks: of the objects, (batch, objects, h, w), 0 to 1, each over the whole of its
                box.
            gt_is_crowd: which of the objects mark a crowd, bool (batch, objects); None for none.
            output_intermediate_features: return the features too.
            training: normalise by the batch's own statistics, and look at regions to learn from
                instead of detections.

        Returns:
            `rpn_scores`, logits {level: (batch, height, width, anchors)}, and `rpn_boxes`, codes
            {level: (batch, height, width, anchors * 4)}; `class_outputs`, logits (batch, regions,
            classes), and `box_outputs`, codes (batch, regions, classes * 4 or 4), those of the
            further stages of a cascade as `class_outputs_1`, `box_outputs_1` and so on.

            In training, beside each of these, `class_targets` (batch, regions), `box_targets`
            (batch, regions, 4) and `target_counts`, bool (batch, regions), which regions count;
            with masks `mask_outputs`, logits (batch, masks, h, w), `mask_targets` of that shape
            and `mask_class_targets` (batch, masks), 0 for masks that do not count.

            Outside of training, `cls_outputs`, the logits that detections come from, and what the
            detection generator returns; with masks `detection_masks` (batch, max, h, w), 0 to 1,
            each over the whole of its box, or of its `detection_outer_boxes`, where these are
            larger. The features, where they are asked for, are `backbone_<level>` and
            `decoder_<level>`.
        """
        features = self.backbone(images, training=training)
        outputs: dict[str, Any] = {}
        if output_intermediate_features:
            outputs |= {f"backbone_{level}": x for level, x in features.items()}
        if self.decoder is not None:
            features = self.decoder(features, training=training)
            if output_intermediate_features:
                outputs |= {f"decoder_{level}": x for level, x in features.items()}
        features = self._searched(features)

        scores, boxes = self.rpn_head(features, training=training)
        outputs |= {"rpn_scores": scores, "rpn_boxes": boxes}
        image_size = ops.shape(images)[1:3]
        if anchor_boxes is None:
            anchor_boxes = self.anchors(image_size)
        if image_shape is None:
            image_shape = image_size
        rois, _ = self.roi_generator(
            boxes, scores, anchor_boxes, image_shape=image_shape, training=training
        )

        truth = None
        if training and gt_boxes is not None:
            truth = {"gt_boxes": gt_boxes, "gt_classes": gt_classes, "is_crowd": gt_is_crowd}
        stages, sampled = self._run_stages(features, rois, image_shape, truth, training)
        for stage in stages:
            outputs |= stage.outputs
        if not training:
            outputs |= self._detect(features, stages, image_shape)
        elif sampled is not None and self.mask_head is not None and gt_masks is not None:
            outputs |= self._draw_targets(features, sampled, gt_masks, image_shape)
        return outputs

    # ---- boxes ------------------------------------------------------------------------------

    def _run_stages(
        self,
        features: Mapping[str, Any],
        rois: Any,
        image_shape: Any,
        truth: dict[str, Any] | None,
        training: bool | None,
    ) -> tuple[list[_Stage], SampledROIs | None]:
        """Looks at regions, stage by stage; returns the regions of the last one too."""
        stages: list[_Stage] = []
        sampled = None
        for number, head in enumerate(self.detection_head):
            weights = tuple(weight * (number + 1) for weight in BOX_CODER_WEIGHTS)
            suffix = f"_{number}" if number else ""
            targets: dict[str, Any] = {}
            if truth is not None:
                sampled = self.roi_sampler[number](rois, **truth)
                rois = sampled.boxes
                codes = box_coder.encode(sampled.gt_boxes, rois, weights)
                is_object = ops.expand_dims(sampled.gt_classes > 0, -1)
                targets = {
                    f"class_targets{suffix}": sampled.gt_classes,
                    f"box_targets{suffix}": ops.where(is_object, codes, 0.0),
                    f"target_counts{suffix}": sampled.counts,
                }
            classes, boxes = head(self.roi_aligner(features, rois), training=training)
            results = {f"class_outputs{suffix}": classes, f"box_outputs{suffix}": boxes}
            stages.append(_Stage(rois, classes, boxes, weights, results | targets))
            if number + 1 < len(self.detection_head):
                rois = self._refined(stages[-1], image_shape)
        return stages, sampled

    def _refined(self, stage: _Stage, image_shape: Any) -> Any:
        """The regions of the next stage: where this one says that the objects are."""
        codes = stage.boxes
        if codes.shape[-1] > 4:  # the box of the most likely class
            regions, numbers = codes.shape[1:]
            codes = ops.reshape(codes, (-1, regions, numbers // 4, 4))
            best = ops.argmax(stage.classes[..., 1:], axis=-1) + 1
            codes = ops.take_along_axis(codes, ops.cast(best, "int32")[..., None, None], axis=2)
            codes = codes[:, :, 0]
        boxes = box_coder.decode(codes, stage.rois, stage.weights)
        return ops.stop_gradient(box_ops.clip(boxes, image_shape))

    def _detect(
        self, features: Mapping[str, Any], stages: list[_Stage], image_shape: Any
    ) -> dict[str, Any]:
        last = stages[-1]
        classes = last.classes
        if self.cascade_class_ensemble:
            classes = sum(ops.cast(stage.classes, "float32") for stage in stages) / len(stages)
        outputs = {"cls_outputs": classes} | self.detection_generator(
            last.boxes,
            classes,
            last.rois,
            image_shape=image_shape,
            regression_weights=last.weights,
        )
        if self.mask_head is None or "detection_boxes" not in outputs:
            return outputs
        boxes = outputs["detection_boxes"]
        if self.outer_boxes_scale > 1.0:
            boxes = box_ops.outer(boxes, image_shape, self.outer_boxes_scale)
            outputs["detection_outer_boxes"] = boxes
        crops = self.mask_roi_aligner(features, boxes)  # type: ignore[misc]
        logits = self.mask_head((crops, outputs["detection_classes"]), training=False)
        return outputs | {"detection_masks": ops.sigmoid(ops.cast(logits, "float32"))}

    # ---- masks ------------------------------------------------------------------------------

    def _draw_targets(
        self, features: Mapping[str, Any], sampled: SampledROIs, gt_masks: Any, image_shape: Any
    ) -> dict[str, Any]:
        """What the mask head says of regions with objects, and what it should."""
        boxes = sampled.boxes
        if self.outer_boxes_scale > 1.0:
            boxes = box_ops.outer(boxes, image_shape, self.outer_boxes_scale)
        regions = self.mask_sampler(  # type: ignore[misc]
            boxes, sampled.gt_boxes, sampled.gt_classes, sampled.gt_indices, gt_masks
        )
        crops = self.mask_roi_aligner(features, regions.boxes)  # type: ignore[misc]
        return {
            "mask_outputs": self.mask_head(  # type: ignore[misc]
                (crops, regions.classes), training=True
            ),
            "mask_targets": regions.masks,
            "mask_class_targets": regions.classes,
        }

    def _searched(self, features: Mapping[str, Any]) -> dict[str, Any]:
        levels = [str(level) for level in range(self.min_level, self.max_level + 1)]
        missing = [level for level in levels if level not in features]
        if missing:
            raise ValueError(
                f"levels {self.min_level} to {self.max_level} are to be searched "
                f"(task.model.min_level, max_level), but there are features of levels "
                f"{', '.join(features)} only: choose other levels, or a decoder that makes them"
            )
        return {level: features[level] for level in levels}


def _as_list(layers: Any) -> list[Any]:
    return list(layers) if isinstance(layers, (list, tuple)) else [layers]
