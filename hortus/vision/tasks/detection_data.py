"""The data of a detection task, and what its classes are called."""

from typing import Any, Optional

from hortus.vision.configs import detection as configs
from hortus.vision.dataloaders.detection import reader as detection_input
from hortus.vision.dataloaders.learnt_classes import LearntClasses
from hortus.vision.dataloaders.readers import Readers


class DetectionData:
    """Builds the inputs of a task, and sees to it that all have the classes of the model.

    Args:
        model: of the task.
        folder: of the run, which keeps the names of the classes; empty for none.
    """

    def __init__(self, model: configs.DetectionModel, folder: str = ""):
        self._model = model
        self._classes = LearntClasses(folder)
        self.readers = Readers()

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes 1, 2, ..., as far as the data, or the run's folder, tells them."""
        return self._classes.names

    def build_inputs(self, params: configs.DataConfig, input_context: Optional[Any] = None) -> Any:
        """The dataset of batches that a task's `build_inputs` returns."""
        reader = detection_input.build_reader(params, self._model, self.class_names)
        self.readers.add("train_data" if params.is_training else "validation_data", reader)
        if params.input_path or params.tfds_name:
            self._classes.take(reader.info.class_names, params)
        return reader.read(input_context)
