"""From the raw output of a region proposal network to regions, as a layer."""

from collections.abc import Mapping
from typing import Any

import keras
from keras import ops

from hortus.engine import kernels
from hortus.vision.modeling.layers.configurable import Configurable
from hortus.vision.ops import proposals


@keras.saving.register_keras_serializable(package="Hortus")
class MultilevelROIGenerator(Configurable, keras.layers.Layer):
    """Proposes regions of interest (ROIs): the best boxes of all levels, after suppression.

    What it returns has no gradient.

    Args:
        pre_nms_top_k: best anchors of a level that take part in suppression.
        pre_nms_score_threshold: anchors with a score up to this, 0 to 1, do not.
        pre_nms_min_size_threshold: boxes with a side up to this, in pixels, do not.
        nms_iou_threshold: boxes that overlap a better one of their level by more than this IoU,
            0 to 1, go.
        num_proposals: most regions per image.
        test_pre_nms_top_k: the same outside of training, as are the following ones.
        test_pre_nms_score_threshold: see above.
        test_pre_nms_min_size_threshold: see above.
        test_nms_iou_threshold: see above.
        test_num_proposals: see above.
        **kwargs: of `keras.layers.Layer`.
    """

    def __init__(
        self,
        pre_nms_top_k: int = 2000,
        pre_nms_score_threshold: float = 0.0,
        pre_nms_min_size_threshold: float = 0.0,
        nms_iou_threshold: float = 0.7,
        num_proposals: int = 1000,
        test_pre_nms_top_k: int = 1000,
        test_pre_nms_score_threshold: float = 0.0,
        test_pre_nms_min_size_threshold: float = 0.0,
        test_nms_iou_threshold: float = 0.7,
        test_num_proposals: int = 1000,
        **kwargs: Any,
    ):
        # Coordinates of large images do not fit into half precision.
        super().__init__(**{"dtype": "float32", "autocast": False, **kwargs})
        self.pre_nms_top_k = pre_nms_top_k
        self.pre_nms_score_threshold = pre_nms_score_threshold
        self.pre_nms_min_size_threshold = pre_nms_min_size_threshold
        self.nms_iou_threshold = nms_iou_threshold
        self.num_proposals = num_proposals
        self.test_pre_nms_top_k = test_pre_nms_top_k
        self.test_pre_nms_score_threshold = test_pre_nms_score_threshold
        self.test_pre_nms_min_size_threshold = test_pre_nms_min_size_threshold
        self.test_nms_iou_threshold = test_nms_iou_threshold
        self.test_num_proposals = test_num_proposals
        self.built = True

    def call(
        self,
        raw_boxes: Mapping[str, Any],
        raw_scores: Mapping[str, Any],
        anchor_boxes: Mapping[str, Any],
        image_shape: Any,
        training: bool | None = None,
    ) -> tuple[Any, Any]:
        """Where objects may be.

        Args:
            raw_boxes: codes by level, (batch, height, width, anchors * 4).
            raw_scores: logits by level, (batch, height, width, anchors).
            anchor_boxes: by level, (height, width, anchors * 4), or so for each image.
            image_shape: (height, width), or (batch, 2), in pixels; boxes end there.
            training: propose as for training.

        Returns:
            Boxes (batch, n, 4) in pixels and scores (batch, n), 0 to 1, best first; rows that fill
            up are 0.
        """
        raw_boxes, raw_scores = keras.tree.map_structure(
            ops.stop_gradient, (dict(raw_boxes), dict(raw_scores))
        )
        prefix = "" if training else "test_"
        boxes, scores = proposals.propose(
            raw_boxes,
            raw_scores,
            anchor_boxes,
            image_shape,
            pre_nms_top_k=getattr(self, f"{prefix}pre_nms_top_k"),
            score_threshold=getattr(self, f"{prefix}pre_nms_score_threshold"),
            min_size=getattr(self, f"{prefix}pre_nms_min_size_threshold"),
            iou_threshold=getattr(self, f"{prefix}nms_iou_threshold"),
            num_proposals=getattr(self, f"{prefix}num_proposals"),
            kernel=kernels.non_max_suppression,
        )
        return ops.stop_gradient(boxes), ops.stop_gradient(scores)
