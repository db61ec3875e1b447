"""InputReader: files -> decoder -> parser -> batch, with the host's share, shuffling and seeds."""

import dataclasses
import functools
import hashlib
import inspect
import random
from collections.abc import Callable, Mapping
from typing import Any, Optional

import tensorflow as tf

from hortus.core import config_definitions as cfg
from hortus.vision.dataloaders import service
from hortus.vision.dataloaders.attempts import BadRecords, attempt
from hortus.vision.dataloaders.dataset_info import DatasetInfo
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.dataloaders.sources.base import Shard, Shuffle, Source
from hortus.vision.dataloaders.sources.factory import build_record_sources, by_name
from hortus.vision.dataloaders.sources.memory import InMemory

_READ_AHEAD = 64
"""References held ready, so that the begin of a pass does not stop the work on the last one."""


class InputReader:
    """Builds the input pipeline of a task.

        files -> this host's share -> shuffle, repeat -> decode -> parse -> batch -> postprocess

    An example is determined by the seed and its place in the stream, not by the thread that
    prepares it. The position can be saved and restored with `tf.train.Checkpoint(iterator=...)`; a
    checkpoint has a few kilobytes, whatever the size of the buffers. For this the order is always
    fixed, also where `params.deterministic` would not ask for it.

    Args:
      params: what to read and how.
      dataset_fn: a path -> the `tf.data.Dataset` of the records of a file; None goes by
        `params.file_type`.
      decoder_fn: a record -> a dict of tensors, images still encoded.
      parser_fn: a dict of tensors -> what a batch is made of, usually (image, label). It gets a
        `seed`, int64 [2], if it has an argument of this name.
      transform_and_batch_fn: (dataset of parsed examples, input_context) -> dataset of batches,
        instead of plain batching.
      postprocess_fn: a batch -> a batch, called with the parts of a tuple as arguments. It gets a
        `seed`, too, if it has an argument of this name.
      combine_fn: the datasets of parsed examples, one per name in `params.input_path` -> their
        mix, instead of sampling by `params.weights`. Each goes on without end in training.
      sources: where examples come from, by name; None for what `params.input_path` or
        `params.tfds_name` says.
    """

    def __init__(
        self,
        params: cfg.DataConfig,
        dataset_fn: Optional[Callable[[tf.Tensor], tf.data.Dataset]] = None,
        decoder_fn: Optional[Callable[[tf.Tensor], Any]] = None,
        parser_fn: Optional[Callable[..., Any]] = None,
        transform_and_batch_fn: Optional[Callable[..., tf.data.Dataset]] = None,
        postprocess_fn: Optional[Callable[..., Any]] = None,
        combine_fn: Optional[Callable[[list[tf.data.Dataset]], tf.data.Dataset]] = None,
        sources: Optional[Mapping[str, Source]] = None,
    ):
        self.params = params
        self.bad_records = BadRecords()
        self._failures: list[str] = []
        self._dataset_fn, self._decoder_fn = dataset_fn, decoder_fn
        self._parse = _with_seed(parser_fn)
        self._transform_and_batch_fn = transform_and_batch_fn
        self._postprocess = _with_seed(postprocess_fn)
        self._combine_fn = combine_fn
        self._given_sources = sources
        self._built_sources: Optional[dict[str, Source]] = None
        self._seed = params.seed if params.seed is not None else random.getrandbits(63)

    @property
    def sources(self) -> dict[str, Source]:
        """Where examples come from, by name; the files are looked for at the first call."""
        if self._given_sources is not None:
            return dict(self._given_sources)
        if self._built_sources is None:
            self._built_sources = build_record_sources(
                self.params, self._decoder_fn, self._dataset_fn, self.bad_records
            )
        return self._built_sources

    @property
    def info(self) -> DatasetInfo:
        """What is known of the data before it is read."""
        infos = [source.info for source in self.sources.values()]
        counts = [info.num_examples for info in infos]
        total = None if None in counts else sum(count or 0 for count in counts)
        return dataclasses.replace(infos[0], num_examples=total) if len(infos) > 1 else infos[0]

    def read(self, input_context: Optional[Any] = None) -> tf.data.Dataset:
        """The dataset of a host's batches.

        Args:
          input_context: which share of the data this host reads; None reads all of it. It has the
            face of `tf.distribute.InputContext`.
        """
        params = self.params
        if params.global_batch_size < 1 and self._transform_and_batch_fn is None:
            raise DataError("global_batch_size is not set: how many examples make a step?")
        host, shard = 0, Shard()
        if input_context is not None:
            host = input_context.input_pipeline_id
            if params.sharding:
                shard = Shard(input_context.num_input_pipelines, host)
        seeds = _Seeds(self._seed, host)

        dataset = self._examples(shard, seeds)
        dataset = service.distribute(dataset, params, is_batched=False)
        dataset = self._batches(dataset, input_context, seeds)
        dataset = service.distribute(dataset, params, is_batched=True)
        dataset = dataset.prefetch(params.prefetch_buffer_size or tf.data.AUTOTUNE)
        return dataset.with_options(self._options())

    def pairs(self) -> tf.data.Dataset:
        """What was read beside what the parser makes of it, one by one, once and in order.

        For whoever needs the encoded image too, as the evaluation of an exported model does.
        """

        def pair(source: Source) -> Callable[[Any], tuple[Any, Any]]:
            def load(reference: Any) -> tuple[Any, Any]:
                example = source.load(reference)
                if self._parse is None:
                    return example, example
                return example, self._parse(example, tf.zeros([2], tf.int64))

            return load

        datasets = [
            source.one_pass(Shard(), None).map(pair(source), num_parallel_calls=tf.data.AUTOTUNE)
            for source in self.sources.values()
        ]
        return functools.reduce(lambda all_before, each: all_before.concatenate(each), datasets)

    def explain(self, error: Exception) -> str:
        """Where and how the data is broken, for an error met while reading; may be empty.

        It reads all files of records when one of them is damaged, to find out which.
        """
        if not isinstance(error, tf.errors.OpError):
            return ""
        if self._failures:
            return self._failures[0]
        if not isinstance(error, tf.errors.DataLossError):
            return ""
        damage = [source.find_damage() for source in self.sources.values()]
        return "; ".join(text for text in damage if text)

    # ---- examples ---------------------------------------------------------------------------

    def _examples(self, shard: Shard, seeds: "_Seeds") -> tf.data.Dataset:
        """Parsed examples, without end in training."""
        datasets = []
        for name, source in self.sources.items():
            share = shard
            if self.params.cache:
                source, share = InMemory(source, shard), Shard()
            references = self._references(source, share, seeds.pair("order", name))
            datasets.append(self._prepared(references, source, seeds.pair("example", name)))
        return datasets[0] if len(datasets) == 1 else self._combine(datasets, seeds)

    def _references(self, source: Source, shard: Shard, seed: tf.Tensor) -> tf.data.Dataset:
        """What a source refers to its examples by: pass after pass in training, else one pass."""
        params = self.params
        if not params.is_training:
            return source.one_pass(shard, None)

        def one_pass(number: tf.Tensor) -> tf.data.Dataset:
            shuffle = Shuffle(tf.random.fold_in(seed, number), params.shuffle_buffer_size)
            return source.one_pass(shard, shuffle)

        references = tf.data.Dataset.counter().flat_map(one_pass)
        copies = getattr(params, "repeated_augment", None) or 1
        if copies > 1:
            references = references.flat_map(
                lambda reference: tf.data.Dataset.from_tensors(reference).repeat(copies)
            )
        return references.prefetch(_READ_AHEAD)

    def _prepared(
        self, references: tf.data.Dataset, source: Source, seed: tf.Tensor
    ) -> tf.data.Dataset:
        """What references stand for, decoded and parsed."""
        params = self.params

        def prepare(number: tf.Tensor, reference: Any) -> Any:
            example = source.load(reference)
            if self._parse is None:
                return example
            # An example's own seed. It is hashed when it is used, so that neighbours may be near.
            return self._parse(example, tf.stack([seed[0], seed[1] + number]))

        numbered = references.enumerate()
        if params.enable_tf_data_service:
            # What tells a broken example from a sound one runs in this process alone.
            return numbered.map(
                prepare,
                num_parallel_calls=tf.data.AUTOTUNE,
                deterministic=True,
            )
        bad_records = self.bad_records if params.skip_bad_records else None
        return attempt(numbered, prepare, source, bad_records, self._failures.append)

    def _combine(self, datasets: list[tf.data.Dataset], seeds: "_Seeds") -> tf.data.Dataset:
        if self._combine_fn is not None:
            return self._combine_fn(datasets)
        if not self.params.is_training:
            return functools.reduce(lambda all_before, each: all_before.concatenate(each), datasets)
        weights = getattr(self.params, "weights", None)
        given = by_name(weights) if weights is not None else {}
        shares = [float(given.get(name, 1.0)) for name in self.sources]
        return tf.data.Dataset.sample_from_datasets(
            datasets,
            [share / sum(shares) for share in shares],
            # It takes a seed of 32 bits.
            seed=seeds.number("mix") >> 32,
        )

    # ---- batches ----------------------------------------------------------------------------

    def _batches(
        self, dataset: tf.data.Dataset, input_context: Optional[Any], seeds: "_Seeds"
    ) -> tf.data.Dataset:
        params = self.params
        if self._transform_and_batch_fn is not None:
            dataset = self._transform_and_batch_fn(dataset, input_context)
        else:
            size = params.global_batch_size
            if input_context is not None:
                size = input_context.get_per_replica_batch_size(size)
            dataset = dataset.batch(
                size, drop_remainder=params.drop_remainder, num_parallel_calls=tf.data.AUTOTUNE
            )
        if self._postprocess is None:
            return dataset
        seed = seeds.pair("batch")
        return dataset.enumerate().map(
            lambda number, batch: self._postprocess(batch, tf.random.fold_in(seed, number)),
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )

    # ---- options ----------------------------------------------------------------------------

    def _options(self) -> tf.data.Options:
        params, options = self.params, tf.data.Options()
        options.deterministic = True
        options.experimental_symbolic_checkpoint = True
        # Naming a broken example counts as state, but none that a restart needs.
        options.experimental_external_state_policy = tf.data.experimental.ExternalStatePolicy.IGNORE
        # Hosts have their shares already.
        options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
        if params.ram_budget is not None:
            options.autotune.ram_budget = params.ram_budget
        if params.autotune_algorithm is not None:
            options.autotune.autotune_algorithm = _autotune_algorithm(params.autotune_algorithm)
        return options


@dataclasses.dataclass(frozen=True)
class _Seeds:
    """Seeds for all purposes, from that of the run and the number of the host."""

    seed: int
    host: int

    def number(self, *purpose: str) -> int:
        """A number below 2**63."""
        text = repr((self.seed, self.host, *purpose))
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1

    def pair(self, *purpose: str) -> tf.Tensor:
        """Two numbers, int64 [2]; the second can be counted up without end."""
        return tf.constant([self.number(*purpose, "1"), self.number(*purpose, "2") >> 1], tf.int64)


def _with_seed(fn: Optional[Callable[..., Any]]) -> Optional[Callable[[Any, tf.Tensor], Any]]:
    """`fn` as a function of the input and the seed, whether it asks for a seed or not."""
    if fn is None:
        return None
    wants_seed = "seed" in inspect.signature(fn).parameters

    def call(inputs: Any, seed: tf.Tensor) -> Any:
        arguments = inputs if isinstance(inputs, tuple) else (inputs,)
        return fn(*arguments, seed=seed) if wants_seed else fn(*arguments)

    return call


def _autotune_algorithm(name: str) -> tf.data.experimental.AutotuneAlgorithm:
    known = {member.name.lower(): member for member in tf.data.experimental.AutotuneAlgorithm}
    if name.lower() not in known:
        raise DataError(
            f"autotune_algorithm {name!r} is not known; expected one of {', '.join(known)}"
        )
    return known[name.lower()]
