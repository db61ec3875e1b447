"""How fast the data of a task is read and prepared, without any training."""

import dataclasses
import os
import time
from typing import Any, Optional

from hortus.vision.dataloaders.errors import DataError


@dataclasses.dataclass(frozen=True)
class Speed:
    """What was measured."""

    batch_size: int
    first_batch: float
    """Seconds until the first batch is there."""
    batches: int
    """Batches after the first one; 0 where that was all of the data."""
    seconds: float
    """What they took."""
    cpu_seconds: float
    """The same of CPU time, on all CPUs."""

    @property
    def examples_per_second(self) -> Optional[float]:
        """None where there was no second batch."""
        return self.batches * self.batch_size / self.seconds if self.batches else None

    def __str__(self) -> str:
        lines = [f"first batch of {self.batch_size} after {self.first_batch:.1f} s"]
        if self.examples_per_second is None:
            lines.append("that is all of the data; no rate can be told")
        else:
            per_example = 1000 * self.cpu_seconds / (self.batches * self.batch_size)
            lines.append(
                f"{self.examples_per_second:.1f} examples/s ({self.batches} batches in "
                f"{self.seconds:.1f} s), {per_example:.2f} ms of CPU time per example on "
                f"{os.cpu_count()} CPUs"
            )
        return "\n".join(lines)


def measure(task: Any, params: Any, seconds: float = 10.0) -> Speed:
    """Reads batches for a while.

    Args:
        task: whose data it is, a `hortus.core.base_task.Task`.
        params: which data; one of the data configs of the task.
        seconds: how long to measure, after the first batch.

    Raises:
        DataError: there is less than one batch, or the data cannot be read.
    """
    begin = time.perf_counter()
    batches = iter(task.build_inputs(params))
    try:
        next(batches)
        first = time.perf_counter() - begin
        begin, cpu, count = time.perf_counter(), time.process_time(), 0
        while time.perf_counter() - begin < seconds:
            try:
                next(batches)
            except StopIteration:  # data that is read once, and is less than asked for
                break
            count += 1
    except StopIteration:
        raise DataError(f"there is less than one batch of {params.global_batch_size}") from None
    except Exception as error:
        better = task.input_error(error)
        if better is None:
            raise
        raise better from error
    elapsed, cpu = time.perf_counter() - begin, time.process_time() - cpu
    return Speed(params.global_batch_size, first, count, elapsed, cpu)
