"""What prediction needs to know of a task: from an image to the model's input, from its output on.

A task makes its service itself, in `Task.build_service`; a subclass inherits it.
"""

import abc
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from PIL import Image

from hortus.vision.dataloaders.errors import DataError
from hortus.vision.dataloaders.input_reader import InputReader
from hortus.vision.serving.images import Picture


class Prediction(abc.ABC):
    """What a model says of an image."""

    @abc.abstractmethod
    def to_dict(self) -> Any:
        """Plain data for a JSON file: a dict, or a list of them where several things were found."""

    def images(self) -> dict[str, Image.Image]:
        """What else belongs into a file of its own, by the name of its folder, such as `masks`."""
        return {}

    @abc.abstractmethod
    def draw(self, pixels: np.ndarray) -> np.ndarray:
        """The image, uint8 [height, width, 3], with the prediction drawn on it.

        Args:
            pixels: uint8 [height, width, 3], the image, or a smaller or larger copy of it.
        """

    def __str__(self) -> str:
        return str(self.to_dict())


class Service(abc.ABC):
    """The two ends of a model.

    Args:
        task_config: of the task.
        class_names: of its classes, in the order of their numbers; may be empty.
    """

    def __init__(self, task_config: Any, class_names: Sequence[str] = ()):
        self.task_config = task_config
        self.class_names = tuple(class_names)
        text, pixels = tf.TensorSpec([], tf.string), tf.TensorSpec([None] * 3 + [3], tf.uint8)
        self._from_encoded = tf.function(self.inputs_of_encoded, [text], autograph=False)
        self._from_pixels = tf.function(self.inputs_of_pixels, [pixels], autograph=False)

    # ---- before the model -------------------------------------------------------------------

    @abc.abstractmethod
    def inputs_of_encoded(self, encoded: tf.Tensor) -> dict[str, tf.Tensor]:
        """What `apply` takes, as evaluation makes it of an encoded image; without a batch axis."""

    @abc.abstractmethod
    def inputs_of_pixels(self, images: tf.Tensor) -> dict[str, tf.Tensor]:
        """The same of a batch of pixels, uint8 [batch, height, width, 3]; with a batch axis."""

    def prepare(self, picture: Picture) -> dict[str, np.ndarray]:
        """What `apply` takes, for one image; without a batch axis."""
        if picture.encoded is not None:
            inputs = self._from_encoded(picture.encoded)
            return {name: value.numpy() for name, value in inputs.items()}
        inputs = self._from_pixels(picture.pixels[None])
        return {name: value.numpy()[0] for name, value in inputs.items()}

    # ---- the model --------------------------------------------------------------------------

    @abc.abstractmethod
    def apply(self, model: Any, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs, before `finish`; runs compiled, on both engines.

        Args:
            model: the Keras model.
            inputs: a batch of what `prepare` returns.
        """

    # ---- after the model --------------------------------------------------------------------

    def finish(self, outputs: dict[str, Any]) -> dict[str, Any]:
        """The outputs in the form that the task's `export_config` asks for; by default as they are.

        Args:
            outputs: a batch of what `apply` returned, as arrays or tensors.
        """
        return outputs

    def exported(self, model: Any, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """All that an export does after the inputs are made."""
        return self.finish(self.apply(model, inputs))

    @abc.abstractmethod
    def interpret(self, outputs: Mapping[str, np.ndarray], size: tuple[int, int]) -> Prediction:
        """The prediction, from the outputs for one image, without the batch axis.

        Args:
            outputs: what `finish` or an exported model returned.
            size: height and width of the original image.
        """

    # ---- exports and their evaluation -------------------------------------------------------

    @abc.abstractmethod
    def differences(
        self, expected: Mapping[str, np.ndarray], found: Mapping[str, np.ndarray]
    ) -> dict[str, float]:
        """How far an export's outputs for an image are from the model's; see `parity.Parity`."""

    @abc.abstractmethod
    def build_reader(self) -> InputReader:
        """The reader of the validation data, whose classes are those of the model."""

    @property
    @abc.abstractmethod
    def image_key(self) -> str:
        """Under which examples of the reader have their encoded image."""

    @abc.abstractmethod
    def validation_logs(
        self, task: Any, batch: Any, outputs: Mapping[str, np.ndarray], metrics: Any
    ) -> dict[str, Any]:
        """What `validation_step` would return, with outputs that an export has computed.

        Args:
            task: the task.
            batch: images and labels, as from `task.build_inputs`.
            outputs: see `finish`.
            metrics: from `task.build_metrics(training=False)`; they are updated.
        """

    def facts(self) -> dict[str, Any]:
        """Further arguments of `Task.build_service`, for an export to keep."""
        return {}

    def preprocessing(self) -> dict[str, Any]:
        """What is done to an image before the model sees it, for whoever does it elsewhere."""
        return {"colour": "RGB", "range": [0, 255]}


class StandIn:
    """Takes the place of a model in a step of a task: returns what was computed elsewhere."""

    losses: Sequence[Any] = ()

    def __init__(self, outputs: Any):
        self._outputs = outputs

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self._outputs


def service_of(task: Any, class_names: Sequence[str] = (), **facts: Any) -> Service:
    """The service that a task makes.

    Args:
        task: a `hortus.core.base_task.Task`.
        class_names: of its classes, in the order of their numbers; may be empty.
        **facts: what `Service.facts` told before.

    Raises:
        DataError: the task has none.
    """
    service = task.build_service(class_names, **facts)
    if service is None:
        name = type(task).__name__
        raise DataError(
            f"{name} does not say how it is served: for predictions and exports, return a "
            f"hortus.vision.serving.services.service.Service from {name}.build_service"
        )
    return service
