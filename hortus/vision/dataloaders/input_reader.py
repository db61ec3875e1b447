"""InputReader: files -> decoder -> parser -> batch, with the host's share, shuffling and seeds."""

import dataclasses
import functools
import inspect
import random
from collections.abc import Callable, Mapping
from typing import Any, Optional

import tensorflow as tf

from hortus.core import config_definitions as cfg
from hortus.engine.tensorflow.startable import Position, StartableDataset
from hortus.vision.dataloaders import service
from hortus.vision.dataloaders.attempts import BadRecords, LeftOut, attempt
from hortus.vision.dataloaders.dataset_info import DatasetInfo
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.dataloaders.mix import Turns
from hortus.vision.dataloaders.passes import Passes
from hortus.vision.dataloaders.seeds import Seeds
from hortus.vision.dataloaders.sources.base import Shard, Source
from hortus.vision.dataloaders.sources.factory import build_record_sources, by_name
from hortus.vision.dataloaders.sources.memory import InMemory


class InputReader:
    """Builds the input pipeline of a task.

        files -> this host's share -> shuffle, repeat -> decode -> parse -> batch -> postprocess

    An example is determined by the seed and its number, not by the thread that prepares it. So the
    position in training is the number of batches taken, and a pipeline is built to begin there,
    without reading what comes before. For this the order is always fixed, also where
    `params.deterministic` would not ask for it.

    Args:
      params: what to read and how.
      dataset_fn: a path -> the `tf.data.Dataset` of the records of a file; None goes by
        `params.file_type`.
      decoder_fn: a record -> a dict of tensors, images still encoded.
      parser_fn: a dict of tensors -> what a batch is made of, usually (image, label). It gets a
        `seed`, int64 [2], if it has an argument of this name.
      transform_and_batch_fn: (dataset of parsed examples, input_context) -> dataset of batches,
        instead of plain batching. It is not known how many examples its batches take: a run that
        goes on reads what comes before again, and so it does with a `combine_fn`.
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
        self._in_memory: dict[tuple[str, Shard], Source] = {}
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
        """The dataset of a host's batches; in training, one that can be started anywhere.

        Args:
          input_context: which share of the data this host reads; None reads all of it. It has the
            face of `tf.distribute.InputContext`.
        """
        params = self.params
        if params.global_batch_size < 1 and self._transform_and_batch_fn is None:
            raise DataError("global_batch_size is not set: how many examples make a step?")
        if not params.is_training or params.enable_tf_data_service:
            # There is one pass, or workers that share the passes as they like.
            seeds = self._seeds(self._seed, input_context)
            return self._build(_Start(seeds, turns=self._turns(seeds)), input_context)
        return self._read_from({"batches": 0}, input_context)

    def _read_from(self, position: Position, input_context: Optional[Any]) -> StartableDataset:
        """The batches of training from a position on.

        A position has the number of batches, the seed, which counts where the config has none, and
        for each source how many examples were left out since the very first, if there are any.
        """
        seed = self._seed if self.params.seed is not None else position.get("seed", self._seed)
        seeds = self._seeds(int(seed), input_context)
        start = _Start(seeds, int(position["batches"]), turns=self._turns(seeds))
        if self._counts_examples:
            size = self._batch_size(input_context)
            before = position.get("left_out", {})
            start.examples = start.batches * size
            for name, count in self._examples_by_name(start.examples, start.turns).items():
                start.streams[name] = LeftOut(count, count + int(before.get(name, 0)))

        def locate(batches: int) -> dict[str, Any]:
            found: dict[str, Any] = {"seed": int(seed)}
            if self._counts_examples and self.params.skip_bad_records:
                counts = self._examples_by_name(batches * size, start.turns)
                found["left_out"] = {
                    name: start.streams[name].references(count) - count
                    for name, count in counts.items()
                }
            return found

        return StartableDataset(
            self._build(start, input_context),
            lambda position: self._read_from(position, input_context),
            locate,
        )

    def _build(self, start: "_Start", input_context: Optional[Any]) -> tf.data.Dataset:
        params, shard = self.params, Shard()
        if input_context is not None and params.sharding:
            shard = Shard(input_context.num_input_pipelines, input_context.input_pipeline_id)
        dataset = self._examples(shard, start)
        dataset = service.distribute(dataset, params, is_batched=False)
        dataset = self._batches(dataset, input_context, start)
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

    # ---- where a pipeline begins ------------------------------------------------------------

    @property
    def _counts_examples(self) -> bool:
        """Whether the number of batches tells how many examples each source has given."""
        is_mixed = len(self.sources) > 1
        return self._transform_and_batch_fn is None and not (is_mixed and self._combine_fn)

    def _examples_by_name(self, examples: int, turns: Optional[Turns]) -> dict[str, int]:
        """How many of the first examples each source has given."""
        counts = [examples] if turns is None else turns.count(examples)
        return dict(zip(self.sources, counts, strict=True))

    def _turns(self, seeds: Seeds) -> Optional[Turns]:
        """Whose turn it is, where sources are mixed by their weights."""
        is_mixed = len(self.sources) > 1 and self.params.is_training
        if not is_mixed or self._combine_fn is not None:
            return None
        weights = getattr(self.params, "weights", None)
        given = by_name(weights) if weights is not None else {}
        return Turns([float(given.get(name, 1.0)) for name in self.sources], seeds.pair("mix"))

    def _seeds(self, seed: int, input_context: Optional[Any]) -> Seeds:
        return Seeds(seed, 0 if input_context is None else input_context.input_pipeline_id)

    def _batch_size(self, input_context: Optional[Any]) -> int:
        size = self.params.global_batch_size
        return size if input_context is None else input_context.get_per_replica_batch_size(size)

    # ---- examples ---------------------------------------------------------------------------

    def _examples(self, shard: Shard, start: "_Start") -> tf.data.Dataset:
        """Parsed examples, without end in training."""
        datasets = []
        for name, source in self.sources.items():
            share = shard
            if self.params.cache:
                if (name, shard) not in self._in_memory:
                    self._in_memory[name, shard] = InMemory(source, shard)
                source, share = self._in_memory[name, shard], Shard()
            stream = start.streams.get(name, LeftOut())
            references = self._references(source, share, start.seeds.pair("order", name), stream)
            seed = start.seeds.pair("example", name)
            datasets.append(self._prepared(references, source, seed, stream))
        return datasets[0] if len(datasets) == 1 else self._combine(datasets, start)

    def _references(
        self, source: Source, shard: Shard, seed: tf.Tensor, stream: LeftOut
    ) -> tf.data.Dataset:
        """What a source refers to its examples by: pass after pass in training, else one pass."""
        params = self.params
        if not params.is_training:
            return source.one_pass(shard, None)
        copies = getattr(params, "repeated_augment", None) or 1
        passes = Passes(source, shard, seed, params.shuffle_buffer_size, copies)
        return passes.read(stream.start)

    def _prepared(
        self, references: tf.data.Dataset, source: Source, seed: tf.Tensor, stream: LeftOut
    ) -> tf.data.Dataset:
        """What references stand for, decoded and parsed."""
        params = self.params

        def prepare(number: tf.Tensor, reference: Any) -> Any:
            example = source.load(reference)
            if self._parse is None:
                return example
            # An example's own seed. It is hashed when it is used, so that neighbours may be near.
            return self._parse(example, tf.stack([seed[0], seed[1] + number]))

        numbered = references.enumerate(start=stream.start)
        if params.enable_tf_data_service:
            # What tells a broken example from a sound one runs in this process alone.
            return numbered.map(
                prepare,
                num_parallel_calls=tf.data.AUTOTUNE,
                deterministic=True,
            )
        bad_records = self.bad_records if params.skip_bad_records else None
        return attempt(numbered, prepare, source, bad_records, self._failures.append, stream)

    def _combine(self, datasets: list[tf.data.Dataset], start: "_Start") -> tf.data.Dataset:
        if self._combine_fn is not None:
            return self._combine_fn(datasets)
        if start.turns is None:  # in evaluation they come one after another
            return functools.reduce(lambda all_before, each: all_before.concatenate(each), datasets)
        turns = start.turns.read(start.examples)
        return tf.data.Dataset.choose_from_datasets(datasets, turns)

    # ---- batches ----------------------------------------------------------------------------

    def _batches(
        self, dataset: tf.data.Dataset, input_context: Optional[Any], start: "_Start"
    ) -> tf.data.Dataset:
        params = self.params
        if self._transform_and_batch_fn is not None:
            dataset = self._transform_and_batch_fn(dataset, input_context)
        else:
            dataset = dataset.batch(
                self._batch_size(input_context),
                drop_remainder=params.drop_remainder,
                num_parallel_calls=tf.data.AUTOTUNE,
            )
        if start.batches and not self._counts_examples:
            dataset = dataset.skip(start.batches)
        if self._postprocess is None:
            return dataset
        seed = start.seeds.pair("batch")
        return dataset.enumerate(start=start.batches).map(
            lambda number, batch: self._postprocess(batch, tf.random.fold_in(seed, number)),
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )

    # ---- options ----------------------------------------------------------------------------

    def _options(self) -> tf.data.Options:
        params, options = self.params, tf.data.Options()
        options.deterministic = True
        # Hosts have their shares already.
        options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
        if params.ram_budget is not None:
            options.autotune.ram_budget = params.ram_budget
        if params.autotune_algorithm is not None:
            options.autotune.autotune_algorithm = _autotune_algorithm(params.autotune_algorithm)
        return options


@dataclasses.dataclass
class _Start:
    """Where a pipeline begins."""

    seeds: Seeds
    batches: int = 0
    """Batches before it."""
    examples: int = 0
    """Examples before it, of all sources."""
    turns: Optional[Turns] = None
    """Which source gives which example, where there are several."""
    streams: dict[str, LeftOut] = dataclasses.field(default_factory=dict)
    """What was read of each source before it, and what is left out from there on."""


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
