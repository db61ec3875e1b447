"""Preparing examples that may be broken: tell which one, or leave it out and count."""

import logging
import threading
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from hortus.vision.dataloaders.sources.base import Source

_LOGGED = 10


class BadRecords:
    """Examples that could not be read and were left out.

    It can be asked at any time, and tells what has been met so far. An example that is met in
    several passes counts once.
    """

    def __init__(self) -> None:
        self._reasons: dict[str, str] = {}
        self._lock = threading.Lock()

    def add(self, where: str, reason: str) -> None:
        """Notes an example, by where it is."""
        with self._lock:
            is_new = where not in self._reasons
            self._reasons[where] = reason
            count = len(self._reasons)
        if is_new and count <= _LOGGED:
            more = " (further ones are counted, not shown)" if count == _LOGGED else ""
            logging.getLogger(__name__).warning("left out %s: %s%s", where, reason, more)

    @property
    def count(self) -> int:
        """Number of examples left out."""
        return len(self._reasons)

    @property
    def reasons(self) -> dict[str, str]:
        """Why each was left out, by where it is."""
        with self._lock:
            return dict(self._reasons)

    def __str__(self) -> str:
        if not self.count:
            return "no example was left out"
        lines = [f"{where}: {reason}" for where, reason in list(self.reasons.items())[:_LOGGED]]
        if self.count > _LOGGED:
            lines.append(f"and {self.count - _LOGGED} more")
        what = "1 example was" if self.count == 1 else f"{self.count} examples were"
        return f"{what} left out:\n  " + "\n  ".join(lines)


class LeftOut:
    """Which references of a stream were left out, so that its examples can be counted.

    Args:
      examples: how many examples came before the stream's start.
      references: how many references they took.
    """

    def __init__(self, examples: int = 0, references: int = 0) -> None:
        self._examples, self._references = examples, references
        self._numbers: set[int] = set()
        self._lock = threading.Lock()

    @property
    def start(self) -> int:
        """Number of the first reference of the stream."""
        return self._references

    def add(self, number: int) -> None:
        """Notes a reference, by its number; as often as one likes."""
        with self._lock:
            self._numbers.add(number)

    def references(self, examples: int) -> int:
        """How many references it took to get so many examples, all of which have been read."""
        with self._lock:
            numbers = sorted(self._numbers)
        needed = self._references + examples - self._examples
        for number in numbers:
            if number >= needed:
                break
            needed += 1
        return needed


def attempt(
    references: tf.data.Dataset,
    prepare: Callable[[tf.Tensor, Any], Any],
    source: Source,
    bad_records: BadRecords | None,
    on_error: Callable[[str], None] = lambda text: None,
    left_out: LeftOut | None = None,
) -> tf.data.Dataset:
    """Maps references to examples, in parallel and in order, and says where one is that fails.

    Args:
      references: pairs of a number and a reference of the source.
      prepare: number and reference -> the example.
      source: what the references belong to.
      bad_records: takes note of what cannot be prepared, which is left out then; None raises an
        error instead.
      on_error: called with where and why before that error, whose own text a graph blurs.
      left_out: takes note of the numbers of what is left out, before anything after it is given.
    """

    def why_not(number: tf.Tensor, *values: tf.Tensor) -> str:
        """Prepares the example once more, in Python, for the sake of the error."""
        reference = tf.nest.pack_sequence_as(references.element_spec[1], values)
        as_numpy = tf.nest.map_structure(lambda value: value.numpy(), reference)
        where, reason = source.where(as_numpy), "it was read the second time"
        try:
            prepare(number, reference)
        except (tf.errors.OpError, ValueError, TypeError) as error:
            text = reason_of(error)
            reason = text + source.hint(as_numpy, text)
        if bad_records is not None:
            bad_records.add(where, reason)
            if left_out is not None:
                left_out.add(int(number))
        else:
            on_error(f"{where}: {reason}")
        return f"{where}: {reason}"

    def tried(number: tf.Tensor, reference: Any) -> Any:
        one = tf.data.Dataset.from_tensors((number, reference))

        def succeed(number: tf.Tensor, reference: Any) -> Any:
            return True, prepare(number, reference)

        good = one.map(succeed)

        def fail(number: tf.Tensor, reference: Any) -> Any:
            message = tf.py_function(why_not, [number, *tf.nest.flatten(reference)], tf.string)
            may_go_on = bad_records is not None
            with tf.control_dependencies([message, tf.debugging.Assert(may_go_on, [message])]):
                return False, tf.nest.map_structure(_nothing, good.element_spec[1])

        # The second part is looked at only when the first gave nothing.
        either = good.ignore_errors().concatenate(one.map(fail)).take(1)
        is_good, example = either.get_single_element()
        example = tf.nest.map_structure(
            lambda value, spec: tf.ensure_shape(value, spec.shape), example, good.element_spec[1]
        )
        return (is_good, example) if bad_records is not None else example

    examples = references.map(tried, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
    if bad_records is None:
        return examples
    return examples.filter(lambda is_good, _: is_good).map(lambda _, example: example)


def _nothing(spec: tf.TensorSpec) -> tf.Tensor:
    return tf.zeros([size or 0 for size in spec.shape], spec.dtype)


def reason_of(error: Exception) -> str:
    """The part of a TensorFlow error that is about the data."""
    text = error.message if isinstance(error, tf.errors.OpError) else str(error)
    text = text.split("}} ")[-1].split("[Op:")[0].strip()
    return " ".join(text.split())
