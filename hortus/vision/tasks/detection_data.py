"""The data of a detection task, and what its classes are called."""

from typing import Any, Optional

from hortus.vision.configs import detection as configs
from hortus.vision.dataloaders import dataset_info, detection_input
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.dataloaders.readers import Readers


class DetectionData:
    """Builds the inputs of a task, and sees to it that all have the classes of the model.

    Args:
        model: of the task.
        folder: of the run, which keeps the names of the classes; empty for none.
    """

    def __init__(self, model: configs.DetectionModel, folder: str = ""):
        self._model, self._folder = model, folder
        self._class_names: tuple[str, ...] = ()
        self.readers = Readers()

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes 1, 2, ..., as far as the data, or the run's folder, tells them."""
        if not self._class_names and self._folder:
            self._class_names = dataset_info.read_class_names(self._folder)
        return self._class_names

    def build_inputs(self, params: configs.DataConfig, input_context: Optional[Any] = None) -> Any:
        """The dataset of batches that a task's `build_inputs` returns."""
        reader = detection_input.build_reader(params, self._model, self.class_names)
        self.readers.add("train_data" if params.is_training else "validation_data", reader)
        if params.input_path or params.tfds_name:
            self._take_names(reader.info.class_names, params, input_context)
        return reader.read(input_context)

    def _take_names(
        self, names: tuple[str, ...], params: configs.DataConfig, input_context: Optional[Any]
    ) -> None:
        if not names:
            return
        if self._class_names and names != self._class_names:
            raise DataError(
                f"{params.input_path or params.tfds_name}: its classes ({_some(names)}) are not "
                f"those that the model has learnt ({_some(self._class_names)}). Train it in "
                "another --model_dir, or give it data of the same classes"
            )
        self._class_names = names
        is_chief = input_context is None or input_context.input_pipeline_id == 0
        if params.is_training and self._folder and is_chief:
            dataset_info.write_class_names(self._folder, names)


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
