"""Prediction of image classification."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from keras import ops

from hortus.core.base_task import ops_in_float32
from hortus.vision.configs import image_classification as configs
from hortus.vision.dataloaders.classification.reader import Parser, build_reader
from hortus.vision.dataloaders.input_reader import InputReader
from hortus.vision.serving.services.differences import difference
from hortus.vision.serving.services.service import Prediction, Service, StandIn
from hortus.vision.visualization.captions import draw_caption

TOP_K = 5
"""Classes that are told of an image."""


@dataclasses.dataclass(frozen=True)
class ClassificationPrediction(Prediction):
    """The most likely classes, best first."""

    classes: tuple[int, ...]
    """Numbers, from 0."""
    names: tuple[str, ...]
    scores: tuple[float, ...]
    """Probabilities, 0 to 1; of each class by itself where an image can have several."""
    logits: np.ndarray
    """Of all classes."""

    def to_dict(self) -> dict[str, Any]:
        rows = zip(self.classes, self.names, self.scores, strict=True)
        return {
            "classes": [
                {"class": name, "index": number, "score": round(score, 6)}
                for number, name, score in rows
            ]
        }

    def draw(self, pixels: np.ndarray) -> np.ndarray:
        rows = zip(self.names, self.scores, strict=True)
        return draw_caption(pixels, [f"{name} {score:.1%}" for name, score in list(rows)[:3]])


class ClassificationService(Service):
    """From an image to its classes."""

    task_config: configs.ImageClassificationTask

    def __init__(self, task_config: configs.ImageClassificationTask, class_names: Sequence[str]):
        model, data = task_config.model, task_config.validation_data
        self._parser = Parser([side or 0 for side in model.input_size[:2]], 0, data)
        super().__init__(task_config, class_names)

    def inputs_of_encoded(self, encoded: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"images": self._parser.inference_image(encoded)}

    def inputs_of_pixels(self, images: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"images": self._parser.inference_pixels(images)}

    def apply(self, model: Any, inputs: Mapping[str, Any]) -> dict[str, Any]:
        logits = ops_in_float32(model(inputs["images"], training=False))
        if self.task_config.model.output_softmax:
            # What the model returns are probabilities; their logarithms are logits.
            return {"logits": ops.log(ops.maximum(logits, 1e-30)), "probs": logits}
        has_several = self.task_config.validation_data.is_multilabel
        return {
            "logits": logits,
            "probs": ops.sigmoid(logits) if has_several else ops.softmax(logits),
        }

    def interpret(self, outputs: Mapping[str, np.ndarray], size: tuple[int, int]) -> Prediction:
        probabilities = np.asarray(outputs["probs"], np.float64)
        best = np.argsort(-probabilities, kind="stable")[:TOP_K]
        return ClassificationPrediction(
            classes=tuple(int(number) for number in best),
            names=tuple(self.class_name(int(number)) for number in best),
            scores=tuple(float(probabilities[number]) for number in best),
            logits=np.asarray(outputs["logits"]),
        )

    def class_name(self, number: int) -> str:
        """The name of a class; its number where it has none."""
        return self.class_names[number] if number < len(self.class_names) else str(number)

    def differences(
        self, expected: Mapping[str, np.ndarray], found: Mapping[str, np.ndarray]
    ) -> dict[str, float]:
        return {"logits": difference(expected["logits"], found["logits"])}

    def build_reader(self) -> InputReader:
        model = self.task_config.model
        data, size = self.task_config.validation_data, self._parser.output_size
        return build_reader(data, size, model.num_classes, self.class_names)

    @property
    def image_key(self) -> str:
        return self.task_config.validation_data.image_field_key

    def validation_logs(
        self, task: Any, batch: Any, outputs: Mapping[str, np.ndarray], metrics: Any
    ) -> dict[str, Any]:
        name = "probs" if self.task_config.model.output_softmax else "logits"
        return task.validation_step(batch, StandIn(ops.convert_to_tensor(outputs[name])), metrics)

    def preprocessing(self) -> dict[str, Any]:
        data = self.task_config.validation_data
        return {
            **super().preprocessing(),
            "center_crop_fraction": (data.center_crop_fraction or 1.0) if data.aug_crop else None,
            "resize_to": list(self._parser.output_size),
            "resize_method": data.tf_resize_method,
            "normalize": "ImageNet mean and standard deviation",
        }
