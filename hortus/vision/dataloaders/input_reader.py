"""InputReader: files -> decoder -> parser -> batch, with the host's share, shuffling and seeds."""

from collections.abc import Callable, Sequence
from typing import Any, Optional

import tensorflow as tf

from hortus.core import config_definitions as cfg
from hortus.vision.dataloaders.errors import DataError, near_paths

SEED = "seed"
"""Key under which an example carries the two integers that its augmentation draws from."""
_FILE_READERS = {
    "tfrecord": tf.data.TFRecordDataset,
    "tfrecord_compressed": lambda files: tf.data.TFRecordDataset(files, compression_type="GZIP"),
}
_SHUFFLED_PATHS = 1_000_000
"""Lists of paths up to this length are shuffled as a whole, which costs little memory."""


class InputReader:
    """Builds the input pipeline of a task.

    Args:
        params: what to read and how.
        decoder_fn: a serialised record -> a dict of tensors. Not called for examples that come as
            dicts already.
        parser_fn: a dict of tensors -> what a batch is made of, usually (image, labels). In
            training the dict has `seed`.
        examples: a dataset of dicts, instead of files of records: one pass, in order.
        load_fn: applied to the dicts of `examples` after shuffling, as to read a file.
        postprocess_fn: applied to each batch, `(inputs..., seed) -> inputs`, in training.
        batch_fn: `(dataset, batch_size) -> dataset`, instead of plain batching.
    """

    def __init__(
        self,
        params: cfg.DataConfig,
        decoder_fn: Optional[Callable[[tf.Tensor], dict]] = None,
        parser_fn: Optional[Callable[[dict], Any]] = None,
        examples: Optional[tf.data.Dataset] = None,
        load_fn: Optional[Callable[[dict], dict]] = None,
        postprocess_fn: Optional[Callable[..., Any]] = None,
        batch_fn: Optional[Callable[[tf.data.Dataset, int], tf.data.Dataset]] = None,
    ):
        self.params = params
        self._decoder_fn, self._parser_fn = decoder_fn, parser_fn
        self._examples, self._load_fn = examples, load_fn
        self._postprocess_fn, self._batch_fn = postprocess_fn, batch_fn

    @property
    def _is_deterministic(self) -> bool:
        # The position of a pipeline can be saved only if its order is fixed.
        return self.params.deterministic is not False

    def read(self, input_context: Optional[Any] = None) -> tf.data.Dataset:
        """The dataset of a host's batches.

        Args:
            input_context: which share of the data this host reads; None reads all of it.
        """
        params = self.params
        if params.global_batch_size < 1:
            raise DataError("global_batch_size is not set: how many examples make a step?")
        pipelines = input_context.num_input_pipelines if input_context else 1
        index = input_context.input_pipeline_id if input_context else 0
        if self._examples is not None:
            dataset = self._from_examples(pipelines, index)
        else:
            dataset = self._from_files(pipelines, index)
        dataset = self._parse(dataset, index)
        size = params.global_batch_size
        if input_context is not None:
            size = input_context.get_per_replica_batch_size(size)
        dataset = self._batch(dataset, size, index)
        dataset = dataset.prefetch(params.prefetch_buffer_size or tf.data.AUTOTUNE)
        return dataset.with_options(self._options())

    # ---- examples ---------------------------------------------------------------------------

    def _from_examples(self, pipelines: int, index: int) -> tf.data.Dataset:
        params, dataset = self.params, self._examples
        if params.sharding and pipelines > 1:
            dataset = dataset.shard(pipelines, index)
        if params.cache and self._load_fn is not None:
            dataset = self._map(dataset, self._load_fn).cache()
        count = int(dataset.cardinality().numpy())
        if params.is_training:
            # Paths are small: all of them are shuffled, not a window of them.
            buffer = min(count, _SHUFFLED_PATHS) if count > 0 else params.shuffle_buffer_size
            dataset = dataset.shuffle(buffer, seed=params.seed).repeat()
        if self._load_fn is not None and not params.cache:
            dataset = self._map(dataset, self._load_fn)
        return dataset

    def _from_files(self, pipelines: int, index: int) -> tf.data.Dataset:
        params = self.params
        files = match_files(params.input_path)
        by_file = params.sharding and pipelines > 1 and len(files) >= pipelines
        if by_file:
            files = files[index::pipelines]
        paths = tf.data.Dataset.from_tensor_slices(files)
        if params.is_training:
            paths = paths.shuffle(len(files), seed=params.seed)
        read = _FILE_READERS[params.file_type]
        dataset = paths.interleave(
            read,
            cycle_length=min(params.cycle_length or 10, len(files)),
            block_length=params.block_length,
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=self._is_deterministic,
        )
        if params.sharding and pipelines > 1 and not by_file:
            dataset = dataset.shard(pipelines, index)
        if params.cache:
            dataset = dataset.cache()
        if params.is_training:
            dataset = dataset.repeat().shuffle(params.shuffle_buffer_size, seed=params.seed)
        return self._map(dataset, self._decoder_fn) if self._decoder_fn else dataset

    # ---- batches ----------------------------------------------------------------------------

    def _parse(self, dataset: tf.data.Dataset, index: int) -> tf.data.Dataset:
        params = self.params
        if params.is_training:
            dataset = _with_seeds(dataset, params.seed, index)
        if self._parser_fn is not None:
            dataset = self._map(dataset, self._parser_fn)
        return dataset.ignore_errors(log_warning=True) if params.skip_bad_records else dataset

    def _batch(self, dataset: tf.data.Dataset, size: int, index: int) -> tf.data.Dataset:
        params = self.params
        if self._batch_fn is not None:
            dataset = self._batch_fn(dataset, size)
        else:
            dataset = dataset.batch(
                size, drop_remainder=params.drop_remainder, num_parallel_calls=tf.data.AUTOTUNE
            )
        if self._postprocess_fn is not None and params.is_training:
            seed = _base_seed(params.seed, index + 1_000_003)
            dataset = dataset.enumerate()
            dataset = self._map(
                dataset,
                lambda position, batch: self._postprocess_fn(
                    *batch, seed=tf.random.fold_in(seed, position)
                ),
            )
        return dataset

    def _map(self, dataset: tf.data.Dataset, fn: Callable) -> tf.data.Dataset:
        return dataset.map(
            fn, num_parallel_calls=tf.data.AUTOTUNE, deterministic=self._is_deterministic
        )

    def _options(self) -> tf.data.Options:
        options = tf.data.Options()
        options.deterministic = self._is_deterministic
        if self.params.ram_budget is not None:
            options.autotune.ram_budget = self.params.ram_budget
        return options


def _with_seeds(dataset: tf.data.Dataset, seed: Optional[int], index: int) -> tf.data.Dataset:
    """Gives each example a seed, from that of the run and its place in the stream."""
    base = _base_seed(seed, index)

    def add(position: tf.Tensor, example: dict) -> dict:
        return {**example, SEED: tf.random.fold_in(base, position)}

    return dataset.enumerate().map(add)


def _base_seed(seed: Optional[int], index: int) -> tf.Tensor:
    """Two integers: the config's seed and the host's number, or new ones for each run."""
    if seed is None:
        # From the global seed, if the run has set one.
        return tf.random.uniform([2], tf.int64.min, tf.int64.max, tf.int64, seed=index)
    return tf.constant([seed, index], tf.int64)


def match_files(input_path: "str | Sequence[str]") -> list[str]:
    """All files that patterns match, in order; one string may hold several, with commas."""
    patterns = input_path.split(",") if isinstance(input_path, str) else list(input_path)
    patterns = [pattern.strip() for pattern in patterns if pattern.strip()]
    if not patterns:
        raise DataError("input_path is empty: where is the data?")
    files: list[str] = []
    for pattern in patterns:
        matched = sorted(tf.io.gfile.glob(pattern))
        if not matched:
            raise DataError(f"{pattern}: no file matches{near_paths(pattern)}")
        files += matched
    return files
