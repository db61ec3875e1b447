"""Prediction of semantic segmentation."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from keras import ops
from PIL import Image

from hortus.core.base_task import ops_in_float32
from hortus.vision.configs import semantic_segmentation as configs
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.dataloaders.input_reader import InputReader
from hortus.vision.dataloaders.segmentation.reader import Parser, build_reader
from hortus.vision.ops.resize import rescale_to_original, resize
from hortus.vision.serving.services.differences import difference
from hortus.vision.serving.services.service import Prediction, Service, StandIn
from hortus.vision.visualization import masks as drawing

_CHUNK = 32_000_000
"""Logits that are enlarged at once: 128 MB."""


@dataclasses.dataclass(frozen=True)
class SegmentationPrediction(Prediction):
    """The class of every pixel."""

    mask: np.ndarray
    """Class numbers, uint8 or, of more than 256 classes, uint16 [height, width]; the original's
    size."""
    class_names: tuple[str, ...]
    """Of all classes."""

    def to_dict(self) -> dict[str, Any]:
        numbers, counts = np.unique(self.mask, return_counts=True)
        rows = sorted(zip(counts.tolist(), numbers.tolist(), strict=True), reverse=True)
        return {
            "classes": [
                {
                    "class": self.class_names[number],
                    "index": number,
                    "share": round(count / self.mask.size, 6),
                }
                for count, number in rows
            ]
        }

    def images(self) -> dict[str, Image.Image]:
        picture = Image.fromarray(self.mask)
        if self.mask.dtype == np.uint8:
            picture.putpalette(drawing.class_colours(256).astype(np.uint8).tobytes())
        return {"masks": picture}

    def draw(self, pixels: np.ndarray) -> np.ndarray:
        height, width = pixels.shape[:2]
        nearest = Image.Resampling.NEAREST
        mask = np.asarray(Image.fromarray(self.mask).resize((width, height), nearest))
        return drawing.draw_side_by_side(
            pixels,
            [mask],
            ["prediction"],
            self.class_names,
            None,
            drawing.background_class(self.class_names),
            size=max(height, width),
        )


class SegmentationService(Service):
    """From an image to the classes of its pixels."""

    task_config: configs.SemanticSegmentationTask

    def __init__(
        self, task_config: configs.SemanticSegmentationTask, class_names: Sequence[str] = ()
    ):
        data, size = task_config.validation_data, task_config.model.input_size[:2]
        if data.additional_dense_features or data.image_feature.num_channels != 3:
            raise DataError(
                "the model takes other channels than those of an image, see "
                "task.validation_data.image_feature and additional_dense_features: predictions "
                "for image files are not possible"
            )
        wanted = data.output_size or [side for side in size if side is not None]
        self._parser = Parser(wanted if len(wanted) == 2 else None, 0, 0, data)
        numbers = map(str, range(len(class_names), task_config.model.num_classes))
        super().__init__(task_config, (*class_names, *numbers))

    def inputs_of_encoded(self, encoded: tf.Tensor) -> dict[str, tf.Tensor]:
        feature = self.task_config.validation_data.image_feature.feature_name
        image, info = self._parser.inference_image({feature: encoded})
        return {"images": image, "image_info": info}

    def inputs_of_pixels(self, images: tf.Tensor) -> dict[str, tf.Tensor]:
        images, infos = self._parser.inference_pixels(images)
        return {"images": images, "image_info": infos}

    def apply(self, model: Any, inputs: Mapping[str, Any]) -> dict[str, Any]:
        outputs = ops_in_float32(model(inputs["images"], training=False))
        height, width = ops.shape(inputs["images"])[1:3]
        large = resize(outputs["logits"], height, width)
        masks = ops.cast(ops.argmax(large, axis=-1), "int32")
        return {**outputs, "predicted_masks": masks, "image_info": inputs["image_info"]}

    def finish(self, outputs: dict[str, Any]) -> dict[str, Any]:
        if not self.task_config.export_config.rescale_output:
            return outputs
        info = ops.convert_to_tensor(outputs["image_info"])
        # Of images of several sizes, each is at the upper left of the largest.
        height, width = ops.unstack(ops.cast(ops.max(info[:, 0], axis=0), "int32"), 2)
        logits = rescale_to_original(outputs["logits"], info, height, width)
        masks = ops.cast(ops.argmax(logits, axis=-1), "int32")
        return {**outputs, "logits": logits, "predicted_masks": masks}

    def interpret(self, outputs: Mapping[str, np.ndarray], size: tuple[int, int]) -> Prediction:
        if self.task_config.export_config.rescale_output:
            kind = np.uint8 if self.task_config.model.num_classes <= 256 else np.uint16
            mask = outputs["predicted_masks"][: size[0], : size[1]].astype(kind)
            return SegmentationPrediction(mask, self.class_names)
        logits, info = np.asarray(outputs["logits"])[None], np.asarray(outputs["image_info"])[None]
        count, (height, width) = logits.shape[-1], size
        # Enlarged by a few classes at a time, of which the best so far is kept.
        step = max(1, _CHUNK // (height * width))
        best = np.full(size, -np.inf, np.float32)
        mask = np.zeros(size, np.uint8 if count <= 256 else np.uint16)
        for first in range(0, count, step):
            part = logits[..., first : first + step]
            large = ops.convert_to_numpy(rescale_to_original(part, info, height, width))[0]
            here = large.max(axis=-1)
            is_better = here > best
            mask[is_better] = (large.argmax(axis=-1) + first)[is_better]
            best = np.maximum(best, here)
        return SegmentationPrediction(mask, self.class_names)

    def differences(
        self, expected: Mapping[str, np.ndarray], found: Mapping[str, np.ndarray]
    ) -> dict[str, float]:
        return {"logits": difference(expected["logits"], found["logits"])}

    def build_reader(self) -> InputReader:
        config = self.task_config
        is_matting = config.losses.gt_is_matting_map
        classes = (0, 0) if is_matting else (config.model.num_classes, config.losses.ignore_label)
        return build_reader(config.validation_data, config.model.input_size[:2], *classes)

    @property
    def image_key(self) -> str:
        return self.task_config.validation_data.image_feature.feature_name

    def validation_logs(
        self, task: Any, batch: Any, outputs: Mapping[str, np.ndarray], metrics: Any
    ) -> dict[str, Any]:
        if self.task_config.export_config.rescale_output:
            raise DataError(
                "this export resizes its output to each image's own size "
                "(task.export_config.rescale_output), and evaluation compares at the input's: "
                "export without it to score the file"
            )
        names = [name for name in ("logits", "mask_scores") if name in outputs]
        tensors = {name: ops.convert_to_tensor(outputs[name]) for name in names}
        return task.validation_step(batch, StandIn(tensors), metrics)

    def preprocessing(self) -> dict[str, Any]:
        data = self.task_config.validation_data
        return {
            **super().preprocessing(),
            "mean": list(data.image_feature.mean),
            "stddev": list(data.image_feature.stddev),
            "resize_to": self._parser.output_size and list(self._parser.output_size),
            "keep_aspect_ratio": data.preserve_aspect_ratio,
        }
