"""The weights of a PyTorch model: tensors under the names of its modules."""

from collections.abc import Mapping
from typing import Any, Optional

import numpy as np

from hortus.core.checkpoints.errors import CheckpointError
from hortus.core.checkpoints.torch_file import TorchTensor, read_torch_file

# Under which names training programs keep weights, and averages of them, beside other things.
_WEIGHTS = ("state_dict", "model_state_dict", "model", "net", "network", "params")
_AVERAGES = ("state_dict_ema", "model_ema", "ema", "ema_state_dict", "params_ema")
# What wrappers of models put before every name.
_WRAPPERS = ("module.", "_orig_mod.", "model.")


class StateDict:
    """Named tensors in PyTorch's layout.

    Attributes:
        path: the file.
        has_averages: whether it holds moving averages beside the weights.
    """

    def __init__(
        self,
        path: str,
        tensors: Mapping[str, Any],
        averages: Optional[Mapping[str, Any]] = None,
    ) -> None:
        self.path = path
        self._tensors = _unwrapped(tensors)
        self._averages = _unwrapped(averages or {})

    @property
    def has_averages(self) -> bool:
        return bool(self._averages)

    def averaged(self) -> "StateDict":
        """The same file with the averages as its weights."""
        return StateDict(self.path, self._averages or self._tensors)

    def keys(self) -> list[str]:
        """The names, in the order of the file."""
        return list(self._tensors)

    def __contains__(self, key: str) -> bool:
        return key in self._tensors

    def shape(self, key: str) -> tuple[int, ...]:
        """The shape of a tensor."""
        return tuple(self._tensors[key].shape)

    def read(self, key: str) -> np.ndarray:
        """The values of a tensor."""
        tensor = self._tensors[key]
        return tensor.read() if isinstance(tensor, TorchTensor) else tensor


def read_state_dict(path: str) -> StateDict:
    """Reads a file that `torch.save` wrote: a state dict, or a training program's with one inside.

    Raises:
        CheckpointError: it is damaged, or holds no named tensors.
    """
    saved = read_torch_file(path)
    weights = _tensors(saved)
    averages = None
    if not weights and isinstance(saved, Mapping):
        weights = next(filter(None, (_tensors(saved.get(name)) for name in _WEIGHTS)), {})
        averages = next(filter(None, (_tensors(saved.get(name)) for name in _AVERAGES)), None)
        if not weights and averages:
            weights, averages = averages, None
    if not weights:
        inside = ", ".join(map(str, list(saved)[:6])) if isinstance(saved, Mapping) else ""
        raise CheckpointError(
            f"{path} was saved by PyTorch, but holds no named tensors"
            + (f", only {inside}." if inside else f", but a {type(saved).__name__}.")
            + " Save model.state_dict() with torch.save, and load that file."
        )
    return StateDict(path, weights, averages)


def _tensors(saved: Any) -> dict[str, TorchTensor]:
    if not isinstance(saved, Mapping):
        return {}
    return {str(key): value for key, value in saved.items() if isinstance(value, TorchTensor)}


def _unwrapped(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """Without what wrappers have put before all names."""
    found = dict(tensors)
    for prefix in _WRAPPERS:
        if found and all(name.startswith(prefix) for name in found):
            found = {name[len(prefix) :]: tensor for name, tensor in found.items()}
    return found
