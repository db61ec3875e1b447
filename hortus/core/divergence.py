"""Finding the training step that made the loss diverge, and saving its batch."""

import dataclasses
import os
from collections.abc import Callable
from typing import Any, Optional

import keras
import numpy as np

from hortus.core.logs import flatten
from hortus.core.metrics import reset, result, to_float


@dataclasses.dataclass
class Divergence:
    """A step that made the loss diverge.

    Attributes:
        step: the global step after it.
        terms: what of its logs was not finite or too large; empty if that is not known.
        batch_path: the file with its batch.
        is_repeated: whether it diverged again when it was done again, from the same weights.
    """

    step: int
    terms: list[str]
    batch_path: str
    is_repeated: bool = True

    def __str__(self) -> str:
        if self.is_repeated:
            return (
                f"Step {self.step} did it ({', '.join(self.terms)}); its batch is in "
                f"{self.batch_path}."
            )
        return (
            f"It began in step {self.step}, whose batch is in {self.batch_path}; but done again "
            "from the last checkpoint, that step did not diverge: suspect the hardware, or an "
            "operation whose result depends on timing."
        )


def find(
    trainer: Any,
    single_step: Callable[[Any], Any],
    max_steps: int,
    folder: str,
    loss_upper_bound: float,
    suspect: Optional[int],
) -> Optional[Divergence]:
    """See `Trainer.find_divergence`; `single_step` runs one step on a batch, returning its logs."""
    engine, loss = trainer.engine, trainer.train_loss
    host = "" if engine.num_hosts == 1 else f"_host_{engine.host_index}"
    found = None
    reset(loss)
    for _ in range(max_steps):
        batch = engine.next_batch(trainer.train_feed)
        terms = broken_terms(single_step(batch), trainer.task.loss, loss_upper_bound)
        mean = result(loss)
        if not terms and not np.isfinite(mean):  # a step of the user's own may return no logs
            terms = [f"{loss.name} is {mean}"]
        # All hosts have to go on together; the fault may be in the part of one of them.
        is_bad = engine.any_host(bool(terms))
        step = int(to_float(trainer.global_step))
        if is_bad or step == suspect:
            path = save_batch(batch, folder, step, host)
            found = Divergence(step, terms or ["on another host"], path, is_repeated=is_bad)
        if is_bad:
            break
    return found


def broken_terms(logs: Any, loss: str, loss_upper_bound: float) -> list[str]:
    """The names of logs of one step that are not finite, and of the loss if it is too large."""
    if not isinstance(logs, dict):
        return []
    found = []
    for name, value in flatten(logs).items():
        array = np.asarray(value)
        if array.dtype.kind not in "fV":  # V: bfloat16
            continue
        array = array.astype("float32")
        if not np.all(np.isfinite(array)):
            found.append(f"{name} is {array[~np.isfinite(array)][0]}")
        elif name == loss and array.size and array.mean() > loss_upper_bound:
            found.append(f"{name} is {array.mean():g}")
    return found


def save_batch(batch: Any, folder: str, step: int, host: str = "") -> str:
    """Writes a batch as an .npz file and returns its path.

    The arrays are named by their place in the batch: `0/image`, `1`.
    """
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"batch_of_step_{step}{host}.npz")
    leaves = {}
    for key, leaf in keras.tree.flatten_with_path(batch):
        leaves["/".join(map(str, key)) or "batch"] = leaf
    np.savez_compressed(path, **leaves)
    return path
