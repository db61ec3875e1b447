"""From the raw output of a second stage to detections, as a layer."""

from collections.abc import Sequence
from typing import Any

import keras

from hortus.engine import kernels
from hortus.vision.modeling.layers.configurable import Configurable
from hortus.vision.ops import detection, nms


@keras.saving.register_keras_serializable(package="Hortus")
class DetectionGenerator(Configurable, keras.layers.Layer):
    """Decodes the boxes of a two-stage detector and suppresses those that overlap a better one.

    Args:
        apply_nms: suppress; otherwise return all boxes.
        pre_nms_top_k: best boxes of each class that take part.
        pre_nms_score_threshold: boxes with a score up to this, 0 to 1, do not take part.
        nms_iou_threshold: boxes that overlap a better one by more than this IoU, 0 to 1, go.
        max_num_detections: most detections per image.
        nms_version: how to suppress: `per_class` or `soft`; the names of existing configs, `v1`,
            `v2`, `v3`, `batched` and `tflite`, stand for `per_class`.
        soft_nms_sigma: lower scores by a Gaussian of this variance instead of dropping boxes; None
            or 0 drops them.
        use_sigmoid_probability: one sigmoid per class instead of a softmax over all.
        **kwargs: of `keras.layers.Layer`.
    """

    def __init__(
        self,
        apply_nms: bool = True,
        pre_nms_top_k: int = 5000,
        pre_nms_score_threshold: float = 0.05,
        nms_iou_threshold: float = 0.5,
        max_num_detections: int = 100,
        nms_version: str = "per_class",
        soft_nms_sigma: float | None = None,
        use_sigmoid_probability: bool = False,
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
        self.apply_nms = apply_nms
        self.pre_nms_top_k = pre_nms_top_k
        self.pre_nms_score_threshold = pre_nms_score_threshold
        self.nms_iou_threshold = nms_iou_threshold
        self.max_num_detections = max_num_detections
        self.nms_version = nms_version
        self.soft_nms_sigma = soft_nms_sigma
        self.use_sigmoid_probability = use_sigmoid_probability
        self.built = True

    def call(
        self,
        raw_boxes: Any,
        raw_scores: Any,
        anchor_boxes: Any,
        image_shape: Any,
        regression_weights: Sequence[float] | None = None,
    ) -> dict[str, Any]:
        """What is in each image.

        Args:
            raw_boxes: codes (batch, regions, classes * 4), or (batch, regions, 4) for all classes.
            raw_scores: logits (batch, regions, classes), class 0 is the background.
            anchor_boxes: the regions, (batch, regions, 4).
            image_shape: (height, width), or (batch, 2), in pixels; boxes end there.
            regression_weights: scales of the codes, see `box_coder.decode`.

        Returns:
            With NMS `detection_boxes` (batch, max, 4), `detection_scores` and `detection_classes`
            (batch, max), `num_detections` (batch,). Without, `decoded_boxes` (batch, regions,
            classes - 1 or 1, 4) and `decoded_box_scores` (batch, regions, classes - 1).
        """
        inputs = (raw_boxes, raw_scores, anchor_boxes, image_shape)
        shared: dict[str, Any] = {
            "box_coder_weights": regression_weights,
            "use_sigmoid": self.use_sigmoid_probability,
        }
        if not self.apply_nms:
            boxes, scores = detection.decode(*inputs, **shared)
            return {"decoded_boxes": boxes, "decoded_box_scores": scores}
        found = detection.detect(
            *inputs,
            **shared,
            method=self.nms_version,
            sigma=self.soft_nms_sigma,
            top_k=self.pre_nms_top_k,
            score_threshold=self.pre_nms_score_threshold,
            iou_threshold=self.nms_iou_threshold,
            max_detections=self.max_num_detections,
            kernel=kernels.non_max_suppression,
        )
        return {
            "detection_boxes": found.boxes,
            "detection_scores": found.scores,
            "detection_classes": found.classes,
            "num_detections": found.count,
        }
