"""From the raw output of a detector's head to detections, as a layer."""

from collections.abc import Mapping, Sequence
from typing import Any

import keras

from hortus.engine import kernels
from hortus.vision.modeling.layers.configurable import Configurable
from hortus.vision.ops import detection, nms


@keras.saving.register_keras_serializable(package="Hortus")
class MultilevelDetectionGenerator(Configurable, keras.layers.Layer):
    """Decodes the boxes of a one-stage detector and suppresses those that overlap a better one.

    Args:
        num_classes: with the background, class 0.
        apply_nms: suppress; otherwise return all boxes.
        pre_nms_top_k: best boxes of each class that take part.
        pre_nms_score_threshold: boxes with a score up to this, 0 to 1, do not take part.
        nms_iou_threshold: boxes that overlap a better one by more than this IoU, 0 to 1, go.
        max_num_detections: most detections per image.
        nms_version: how to suppress: `per_class`, `class_agnostic` or `soft`; the names of existing
            configs, `v1`, `v2`, `v3`, `batched` and `tflite`, stand for `per_class`.
        soft_nms_sigma: lower scores by a Gaussian of this variance instead of dropping boxes; None
            or 0 drops them.
        use_class_agnostic_nms: a box suppresses those of all classes, not only of its own.
        decode_boxes: without NMS, whether to return boxes in pixels, or nothing beside the raw
            output.
        return_decoded: return all decoded boxes beside the detections.
        box_coder_weights: scales of the codes of boxes, such as (10, 10, 5, 5); None for 1.
        **kwargs: of `keras.layers.Layer`.
    """

    def __init__(
        self,
        num_classes: int,
        apply_nms: bool = True,
        pre_nms_top_k: int = 5000,
        pre_nms_score_threshold: float = 0.05,
        nms_iou_threshold: float = 0.5,
        max_num_detections: int = 100,
        nms_version: str = "per_class",
        soft_nms_sigma: float | None = None,
        use_class_agnostic_nms: bool = False,
        decode_boxes: bool = True,
        return_decoded: bool = False,
        box_coder_weights: Sequence[float] | None = None,
        **kwargs: Any,
    ):
        # Coordinates of large images do not fit into half precision.
        super().__init__(**{"dtype": "float32", "autocast": False, **kwargs})
        known = [*nms.METHODS, *nms.ALIASES]
        if nms_version not in known:
            raise ValueError(
                f"no NMS called {nms_version!r} (task.model.detection_generator.nms_version); "
                f"there are {', '.join(known)}"
            )
        self.num_classes = num_classes
        self.apply_nms = apply_nms
        self.pre_nms_top_k = pre_nms_top_k
        self.pre_nms_score_threshold = pre_nms_score_threshold
        self.nms_iou_threshold = nms_iou_threshold
        self.max_num_detections = max_num_detections
        self.nms_version = nms_version
        self.soft_nms_sigma = soft_nms_sigma
        self.use_class_agnostic_nms = use_class_agnostic_nms
        self.decode_boxes = decode_boxes
        self.return_decoded = return_decoded
        self.box_coder_weights = box_coder_weights
        self.built = True

    def call(
        self,
        raw_boxes: Mapping[str, Any],
        raw_scores: Mapping[str, Any],
        anchor_boxes: Mapping[str, Any],
        image_shape: Any,
        raw_attributes: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> dict[str, Any]:
        """What is in each image.

        Args:
            raw_boxes: codes by level, (batch, height, width, anchors * 4).
            raw_scores: logits by level, (batch, height, width, anchors * num_classes).
            anchor_boxes: by level, (height, width, anchors * 4), or so for each image.
            image_shape: (height, width), or (batch, 2), in pixels; boxes end there.
            raw_attributes: by name, as `raw_scores`.

        Returns:
            With NMS `detection_boxes` (batch, max, 4), `detection_scores` and `detection_classes`
            (batch, max), `num_detections` (batch,) and, with attributes, `detection_attributes`,
            {name: (batch, max, size)}. `decoded_boxes` (batch, n, 1, 4) and `decoded_box_scores`
            (batch, n, num_classes - 1) where they are asked for.
        """
        shared: dict[str, Any] = {
            "num_classes": self.num_classes,
            "box_coder_weights": self.box_coder_weights,
        }
        inputs = (raw_boxes, raw_scores, anchor_boxes, image_shape)
        outputs: dict[str, Any] = {}
        if self.return_decoded if self.apply_nms else self.decode_boxes:
            boxes, scores = detection.decode_multilevel(*inputs, **shared)
            outputs |= {"decoded_boxes": boxes, "decoded_box_scores": scores}
        if not self.apply_nms:
            return outputs
        found = detection.detect_multilevel(
            *inputs,
            **shared,
            raw_attributes=raw_attributes,
            method="class_agnostic" if self.use_class_agnostic_nms else self.nms_version,
            sigma=self.soft_nms_sigma,
            top_k=self.pre_nms_top_k,
            score_threshold=self.pre_nms_score_threshold,
            iou_threshold=self.nms_iou_threshold,
            max_detections=self.max_num_detections,
            kernel=kernels.non_max_suppression,
        )
        outputs |= {
            "detection_boxes": found.boxes,
            "detection_scores": found.scores,
            "detection_classes": found.classes,
            "num_detections": found.count,
        }
        if raw_attributes:
            outputs["detection_attributes"] = found.attributes
        return outputs
