"""TensorFlow's SavedModel, with three signatures.

image_tensor   `images`, uint8 [batch, height, width, 3]; the default
image_bytes    `image_bytes`, [batch], encoded images, read as evaluation reads them
tf_example     `examples`, [batch], serialised `tf.train.Example`, read from `image/encoded`
"""

from typing import Any

import numpy as np
import tensorflow as tf

from hortus.vision.serving.formats.format import ExportError, Runtime
from hortus.vision.serving.services.service import Service

IMAGE_KEY = "image/encoded"
PIXELS = tf.TensorSpec([None, None, None, 3], tf.uint8, "images")


def write(service: Service, model: Any, path: str) -> None:
    """See `Format.write`."""
    module = tf.Module()
    module.variables_of_model = [variable.value for variable in model.variables]

    def image_tensor(images: tf.Tensor) -> dict[str, tf.Tensor]:
        return service.exported(model, service.inputs_of_pixels(images))

    def image_bytes(image_bytes: tf.Tensor) -> dict[str, tf.Tensor]:
        one = tf.function(service.inputs_of_encoded, autograph=False)
        shapes = one.get_concrete_function(tf.TensorSpec([], tf.string)).structured_outputs
        signature = {key: tf.TensorSpec(value.shape, value.dtype) for key, value in shapes.items()}
        inputs = tf.map_fn(service.inputs_of_encoded, image_bytes, fn_output_signature=signature)
        return service.exported(model, inputs)

    def tf_example(examples: tf.Tensor) -> dict[str, tf.Tensor]:
        features = {IMAGE_KEY: tf.io.FixedLenFeature([], tf.string)}
        return image_bytes(tf.io.parse_example(examples, features)[IMAGE_KEY])

    signatures = {"image_tensor": _concrete(image_tensor, PIXELS)}
    for function, name in ((image_bytes, "image_bytes"), (tf_example, "examples")):
        spec = tf.TensorSpec([None], tf.string, name)
        signatures[function.__name__] = _concrete(function, spec)
    signatures["serving_default"] = signatures["image_tensor"]
    tf.saved_model.save(module, path, signatures)


def _concrete(function: Any, spec: tf.TensorSpec) -> Any:
    return tf.function(function, input_signature=[spec], autograph=False).get_concrete_function()


class SavedModelRuntime(Runtime):
    """A SavedModel, run by TensorFlow."""

    def __init__(self, path: str):
        try:
            self._loaded = tf.saved_model.load(path)  # has to live as long as its functions
        except (OSError, tf.errors.OpError) as error:
            raise ExportError(f"{path}: not a SavedModel, or damaged: {error}") from None
        self.signatures = self._loaded.signatures

    def run(self, images: np.ndarray) -> dict[str, np.ndarray]:
        return self.call("image_tensor", images)

    def call(self, signature: str, values: Any) -> dict[str, np.ndarray]:
        """Outputs of a signature, see the module, for its one input."""
        function = self.signatures[signature]
        (name,) = function.structured_input_signature[1]
        outputs = function(**{name: tf.constant(values)})
        return {key: value.numpy() for key, value in outputs.items()}
