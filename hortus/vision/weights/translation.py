"""The one way in: asks the tables of whichever program wrote a file."""

from typing import Any, Optional

from hortus.core.checkpoints.foreign import Translation
from hortus.core.checkpoints.state_dict import StateDict
from hortus.core.checkpoints.tf2.object_graph import ObjectGraph
from hortus.vision.weights.model_garden import translation as model_garden
from hortus.vision.weights.pytorch import translation as pytorch


def translate(model: Any, source: Any, module: str) -> Optional[Translation]:
    """What a module of a model of ours, or "all", takes from a file; None if it cannot be told.

    Args:
        model: one of `hortus.vision.modeling`.
        source: what `core.checkpoints.sources.open_source` has opened.
        module: a name of the model's `checkpoint_items`, or "all".
    """
    if isinstance(source, ObjectGraph):
        return model_garden.translate(model, source, module)
    if isinstance(source, StateDict):
        return pytorch.translate(model, source, module)
    return None
