"""Prediction of object detection."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from keras import ops

from hortus.core.base_task import ops_in_float32
from hortus.vision.configs import detection as configs
from hortus.vision.configs.retinanet import ExportConfig
from hortus.vision.dataloaders.detection import reader as detection_input
from hortus.vision.dataloaders.detection.parser import Parser
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.dataloaders.input_reader import InputReader
from hortus.vision.serving.services.differences import detection_differences, difference
from hortus.vision.serving.services.service import Prediction, Service
from hortus.vision.visualization.boxes import class_name, draw_boxes

MIN_DRAWN_SCORE = 0.3
"""Boxes with a lower score are told, but not drawn."""
_FEATURES = ("backbone_", "decoder_")


@dataclasses.dataclass(frozen=True)
class DetectionPrediction(Prediction):
    """Objects, best first."""

    boxes: np.ndarray
    """float32 [n, 4], ymin, xmin, ymax, xmax in pixels of the original image."""
    classes: np.ndarray
    """int32 [n], from 1."""
    scores: np.ndarray
    """float32 [n], 0 to 1."""
    names: tuple[str, ...]
    category_ids: tuple[int, ...]
    """Of the categories in the COCO file that the classes come from; else the class numbers."""
    size: tuple[int, int]
    """Height and width of the original image."""
    class_names: tuple[str, ...] = ()
    """Of all classes, from 1."""

    def to_dict(self) -> list[dict[str, Any]]:
        """COCO's format of results, without the image id."""
        found = []
        for place, (top, left, bottom, right) in enumerate(self.boxes.astype(float)):
            box = [left, top, right - left, bottom - top]
            found.append(
                {
                    "category_id": self.category_ids[place],
                    "category_name": self.names[place],
                    "bbox": [round(value, 2) for value in box],
                    "score": round(float(self.scores[place]), 6),
                }
            )
        return found

    def draw(self, pixels: np.ndarray) -> np.ndarray:
        scale = np.tile(np.array(pixels.shape[:2]) / np.array(self.size), 2)
        return draw_boxes(
            pixels,
            self.boxes * scale,
            self.classes,
            self.scores,
            self.class_names,
            min_score=MIN_DRAWN_SCORE,
        )


class DetectionService(Service):
    """From an image to the objects in it.

    Args:
        task_config: of the task.
        class_names: of the classes 1, 2, ...; may be empty.
        category_ids: of the classes 1, 2, ...; None looks for them in the validation data.
    """

    task_config: configs.DetectionTask
    output_names: tuple[str, ...] = (
        "detection_boxes",
        "detection_scores",
        "detection_classes",
        "num_detections",
        "decoded_boxes",
        "decoded_box_scores",
    )
    """What is taken of the model's outputs, where it is there."""
    box_names: tuple[str, ...] = ("detection_boxes", "decoded_boxes")
    """Those of them that are boxes."""
    measured_names: tuple[str, ...] = (
        "detection_boxes",
        "detection_scores",
        "detection_classes",
        "num_detections",
    )
    """Those of them that metrics take."""

    def __init__(
        self,
        task_config: configs.DetectionTask,
        class_names: Sequence[str] = (),
        category_ids: Sequence[int] | None = None,
    ):
        model, data = task_config.model, task_config.validation_data
        if data.parser.num_channels != 3:
            raise DataError(
                f"the model takes images of {data.parser.num_channels} channels "
                "(task.validation_data.parser.num_channels); prediction reads 3"
            )
        self._parser = Parser(model.input_size[:2], model.max_level, 0, data)
        self._export = getattr(task_config, "export_config", None) or ExportConfig()
        if category_ids is None:
            category_ids = find_category_ids(data, class_names)
        self.category_ids = tuple(category_ids)
        super().__init__(task_config, class_names)

    def inputs_of_encoded(self, encoded: tf.Tensor) -> dict[str, tf.Tensor]:
        image, info = self._parser.inference_image(encoded)
        return {"images": image, "image_info": info}

    def inputs_of_pixels(self, images: tf.Tensor) -> dict[str, tf.Tensor]:
        images, infos = self._parser.inference_pixels(images)
        return {"images": images, "image_info": infos}

    def apply(self, model: Any, inputs: Mapping[str, Any]) -> dict[str, Any]:
        info = inputs["image_info"]
        # Only where it is asked for: a model of the user's own may not have the argument.
        wanted = self._export.output_intermediate_features
        more = {"output_intermediate_features": True} if wanted else {}
        outputs = model(inputs["images"], image_shape=info[:, 1, :], training=False, **more)
        outputs = ops_in_float32(outputs)
        found = {name: outputs[name] for name in self.output_names if name in outputs}
        found |= {name: x for name, x in outputs.items() if name.startswith(_FEATURES)}
        for name, values in outputs.get("detection_attributes", {}).items():
            found[f"detection_attributes_{name}"] = values
        return {**found, "image_info": info}

    def finish(self, outputs: dict[str, Any]) -> dict[str, Any]:
        changed: dict[str, Any] = {}
        if self._export.output_normalized_coordinates:
            info = ops.convert_to_tensor(outputs["image_info"])
            original, scale, offset = (ops.tile(info[:, row], [1, 2]) for row in (0, 2, 3))
            for name in self.box_names:
                if name in outputs:
                    # (batch, boxes, 4); before suppression maybe (batch, boxes, classes, 4).
                    shape = [-1, *[1] * (len(outputs[name].shape) - 2), 4]
                    pixels = outputs[name] + ops.reshape(offset, shape)
                    shares = pixels / ops.reshape(scale * original, shape)
                    changed[name] = ops.clip(shares, 0.0, 1.0)  # without the padding
        casts = {
            "num_detections": self._export.cast_num_detections_to_float,
            "detection_classes": self._export.cast_detection_classes_to_float,
        }
        for name, wanted in casts.items():
            if wanted and name in outputs:
                changed[name] = ops.cast(outputs[name], "float32")
        return {**outputs, **changed}

    def interpret(
        self, outputs: Mapping[str, np.ndarray], size: tuple[int, int]
    ) -> DetectionPrediction:
        if "detection_boxes" not in outputs:
            raise DataError(
                "the model returns boxes before suppression: predictions need "
                "task.model.detection_generator.apply_nms=true"
            )
        count = int(np.ravel(outputs["num_detections"])[0])
        boxes = self._in_pixels(outputs["detection_boxes"][:count], outputs, size)
        boxes = np.clip(boxes, 0, np.tile(np.array(size, np.float32), 2)).astype(np.float32)
        classes = np.asarray(outputs["detection_classes"][:count], np.int32)
        return DetectionPrediction(
            boxes=boxes,
            classes=classes,
            scores=np.asarray(outputs["detection_scores"][:count], np.float32),
            names=tuple(class_name(int(number), self.class_names) for number in classes),
            category_ids=tuple(self._category_id(int(number)) for number in classes),
            size=size,
            class_names=self.class_names,
        )

    def _in_pixels(
        self, boxes: np.ndarray, outputs: Mapping[str, np.ndarray], size: tuple[int, int]
    ) -> np.ndarray:
        """Boxes [n, 4] among the outputs for one image in pixels of the original."""
        if self._export.output_normalized_coordinates:
            return boxes * np.tile(np.array(size, np.float32), 2)
        scale, offset = np.tile(outputs["image_info"][2:4], 2)
        return (boxes + offset) / scale

    def _category_id(self, number: int) -> int:
        known = 1 <= number <= len(self.category_ids)
        return self.category_ids[number - 1] if known else number

    def differences(
        self, expected: Mapping[str, np.ndarray], found: Mapping[str, np.ndarray]
    ) -> dict[str, float]:
        if "detection_boxes" in expected:
            return detection_differences(expected, found)
        names = ("decoded_boxes", "decoded_box_scores")
        return {name: difference(expected[name], found[name]) for name in names}

    def build_reader(self) -> InputReader:
        config = self.task_config
        return detection_input.build_reader(config.validation_data, config.model, self.class_names)

    @property
    def image_key(self) -> str:
        return "image"

    def validation_logs(
        self, task: Any, batch: Any, outputs: Mapping[str, np.ndarray], metrics: Any
    ) -> dict[str, Any]:
        # The loss wants what an export does not have: the head's own outputs.
        _, labels = batch
        if not self.task_config.use_coco_metrics:
            return {}
        predictions = {name: outputs[name] for name in self.measured_names if name in outputs}
        if self._export.output_normalized_coordinates:  # metrics take them as the model gives them
            original, scale, offset = (
                np.tile(outputs["image_info"][:, None, row], 2) for row in (0, 2, 3)
            )
            for name in set(self.box_names) & set(predictions):
                boxes = predictions[name] * original * scale - offset
                predictions[name] = boxes.astype(np.float32)
        for name in ("detection_classes", "num_detections"):
            predictions[name] = np.asarray(predictions[name], np.int32)
        predictions["source_id"] = labels["groundtruths"]["source_id"]
        predictions["image_info"] = labels["image_info"]
        return {"predictions": predictions, "groundtruths": labels["groundtruths"]}

    def preprocessing(self) -> dict[str, Any]:
        return {
            **super().preprocessing(),
            "normalize": "ImageNet mean and standard deviation",
            "resize_to": list(self._parser.output_size),
            "keep_aspect_ratio": self.task_config.validation_data.parser.keep_aspect_ratio,
            "pad_after_normalizing_to": list(self._parser.padded_size),
        }

    def facts(self) -> dict[str, Any]:
        return {"category_ids": list(self.category_ids)}


def find_category_ids(data: configs.DataConfig, class_names: Sequence[str]) -> tuple[int, ...]:
    """The ids of the classes 1, 2, ... in the files of `data`; empty where they do not tell."""
    if not class_names or not data.input_path or data.file_type not in detection_input.READERS:
        return ()
    try:
        sets = detection_input.read_sets(data).values()
    except (DataError, OSError):  # a model can be used where its data is not
        return ()
    ids: dict[str, int] = {}
    for each in sets:
        ids |= dict(zip(each.category_names, map(int, each.category_ids), strict=True))
    return tuple(ids.get(name, number) for number, name in enumerate(class_names, start=1))
