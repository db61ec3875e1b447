"""Checkpoints: engine-neutral, atomic, written in the background, restored whole or in part.

A checkpoint is a folder: tensors in the safetensors format under structural names, and a manifest
with the step, the checksum of each file and everything that is not a tensor. Names are resolved on
first use, so that reading a file needs NumPy and no Keras.
"""

import typing

from hortus import lazy

if typing.TYPE_CHECKING:
    from hortus.core.checkpoints.best_exporter import (
        BestCheckpointExporter as BestCheckpointExporter,
    )
    from hortus.core.checkpoints.checkpoint import Checkpoint as Checkpoint
    from hortus.core.checkpoints.errors import CheckpointError as CheckpointError
    from hortus.core.checkpoints.errors import CheckpointWarning as CheckpointWarning
    from hortus.core.checkpoints.errors import CorruptCheckpointError as CorruptCheckpointError
    from hortus.core.checkpoints.load_report import LoadReport as LoadReport
    from hortus.core.checkpoints.manager import CheckpointManager as CheckpointManager
    from hortus.core.checkpoints.modules import load_modules as load_modules
    from hortus.core.checkpoints.names import named_variables as named_variables
    from hortus.core.checkpoints.tf2.object_graph import read_object_graph as read_object_graph
    from hortus.core.checkpoints.tf2.tensor_bundle import TensorBundle as TensorBundle

__getattr__, __dir__, __all__ = lazy.attach(__name__)
