"""The classes that a run's model has learnt: one list for all of its data."""

from collections.abc import Sequence

from hortus.core import config_definitions as cfg
from hortus.vision.dataloaders import dataset_info
from hortus.vision.dataloaders.errors import DataError


class LearntClasses:
    """Names the outputs of a model, and sees to it that all data of a run has the same classes.

    Args:
      folder: of the run, which keeps the names; empty for none.
    """

    def __init__(self, folder: str = ""):
        self._folder = folder
        self._names: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """As far as the data that was read, or the run's folder, tells them; may be empty."""
        if not self._names and self._folder:
            self._names = dataset_info.read_class_names(self._folder)
        return self._names

    def take(self, names: tuple[str, ...], params: cfg.DataConfig) -> None:
        """Takes the classes of a data set. A training keeps them in the folder when it starts.

        Args:
          names: in the order of the class numbers; empty where the data does not tell.
          params: what was read.

        Raises:
          DataError: they are not the classes that the model has learnt.
        """
        if not names:
            return
        if self.names and names != self.names:
            raise DataError(
                f"{params.input_path or params.tfds_name}: its classes ({_some(names)}) are not "
                f"those that the model has learnt ({_some(self.names)}). Train it in another "
                "folder (model_dir), or give it data of the same classes"
            )
        self._names = names


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
