"""How the model is used: from an image to its input, and from its output to an answer."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from keras import ops

from hortus.vision.dataloaders import preprocess
from hortus.vision.dataloaders.input_reader import InputReader
from hortus.vision.serving.services.classification import ClassificationPrediction
from hortus.vision.serving.services.differences import difference
from hortus.vision.serving.services.service import Service, StandIn
from starter import config, reader

SHOWN = 3
"""Classes that are told of an image."""


class StarterService(Service):
    """Which class does the image show?"""

    task_config: config.StarterTask

    # Before the model: the same as in evaluation, of a file's bytes and of pixels.

    def inputs_of_encoded(self, encoded: tf.Tensor) -> dict[str, tf.Tensor]:
        pixels = preprocess.decode_image(encoded)
        return {"images": reader.scaled(pixels, self.task_config.model.input_size[:2])}

    def inputs_of_pixels(self, images: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"images": reader.scaled(images, self.task_config.model.input_size[:2])}

    # The model, and what it says.

    def apply(self, model: Any, inputs: Mapping[str, Any]) -> dict[str, Any]:
        logits = model(inputs["images"], training=False)
        return {"logits": logits, "probs": ops.softmax(logits)}

    def interpret(
        self, outputs: Mapping[str, np.ndarray], size: tuple[int, int]
    ) -> ClassificationPrediction:
        best = np.argsort(-outputs["probs"], kind="stable")[:SHOWN]
        return ClassificationPrediction(
            classes=tuple(int(number) for number in best),
            names=tuple(self.class_names[number] for number in best),
            scores=tuple(float(outputs["probs"][number]) for number in best),
            logits=outputs["logits"],
        )

    # An export is compared with the model, and can be evaluated.

    def differences(
        self, expected: Mapping[str, np.ndarray], found: Mapping[str, np.ndarray]
    ) -> dict[str, float]:
        return {"logits": difference(expected["logits"], found["logits"])}

    def build_reader(self) -> InputReader:
        config = self.task_config
        return reader.build_reader(config.validation_data, config.model.input_size[:2])

    @property
    def image_key(self) -> str:
        return "image"

    def validation_logs(
        self, task: Any, batch: Any, outputs: Mapping[str, np.ndarray], metrics: Any
    ) -> dict[str, Any]:
        logits = ops.convert_to_tensor(outputs["logits"])
        return task.validation_step(batch, StandIn(logits), metrics)
