"""Input of detection, with masks or without: files of annotations, records, TensorFlow Datasets."""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, Optional

import tensorflow as tf

from hortus.vision.configs import detection as configs
from hortus.vision.dataloaders import file_types
from hortus.vision.dataloaders.dataset_info import DatasetInfo
from hortus.vision.dataloaders.detection import checks as detection_checks
from hortus.vision.dataloaders.detection import coco_files, instance_files, voc_files
from hortus.vision.dataloaders.detection import decoder as detection_decoder
from hortus.vision.dataloaders.detection.classes import COCO_IDS, Classes, number_classes
from hortus.vision.dataloaders.detection.detection_set import DetectionSet
from hortus.vision.dataloaders.detection.mask_parser import MaskParser
from hortus.vision.dataloaders.detection.parser import Parser
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.dataloaders.input_reader import InputReader
from hortus.vision.dataloaders.randomness import Rng
from hortus.vision.dataloaders.sources.factory import by_name
from hortus.vision.dataloaders.sources.record_files import COMPRESSIONS
from hortus.vision.dataloaders.sources.table import Table

READERS = file_types.DETECTION
"""By the name that `file_type` has in configs."""


@file_types.register_detection_files("coco")
def _read_coco(
    input_path: Any, params: configs.DataConfig, include_masks: bool = False
) -> DetectionSet:
    """COCO's JSON files."""
    return coco_files.read_coco(
        input_path, params.image_dir, include_masks, params.allow_paths_outside
    )


@file_types.register_detection_files("voc")
def _read_voc(
    input_path: Any, params: configs.DataConfig, include_masks: bool = False
) -> DetectionSet:
    """Pascal VOC's folders."""
    return voc_files.read_voc(
        input_path, params.image_dir, include_masks, params.allow_paths_outside
    )


@file_types.register_detection_files("instance_masks")
def _read_instance_masks(
    input_path: Any, params: configs.DataConfig, include_masks: bool = False
) -> DetectionSet:
    """A folder of images beside a folder of masks whose numbers are objects."""
    return instance_files.read_instance_masks(input_path, params.image_dir, include_masks)


def build_reader(
    params: configs.DataConfig,
    model: configs.DetectionModel,
    class_names: Sequence[str] = (),
) -> InputReader:
    """The reader of batches (images, labels), see `parser.Parser`, and `mask_parser.MaskParser`.

    The data has masks where the model learns them.

    It has looked at what can be seen without reading the data: that there are images and objects,
    that boxes are pixels of images that have the size told, that the model has the classes. Its
    `info` has the names of the classes 1, 2, ... and the number of objects in each.

    Args:
      params: what to read and how.
      model: input size, number of classes and coarsest level of the model.
      class_names: names of the classes 1, 2, ... that the model has learnt, so that other data has
        the same numbers; empty goes by the category ids of this data.

    Raises:
      DataError: the data cannot be read, or would lead to nothing.
    """
    detection_checks.check_settings(params, model)
    if params.tfds_name:
        return _tfds_reader(params, model)
    if params.file_type in COMPRESSIONS:
        return _record_reader(params, model)
    sets = read_sets(params, model.learns_masks)
    sets = {name: detection_checks.check_set(data, params) for name, data in sets.items()}
    classes = _number_classes(sets, model.num_classes, class_names)
    for name, data in sets.items():
        detection_checks.check_classes(classes[name].names, model.num_classes, data.origin)
    sources = {name: data.as_source(classes[name]) for name, data in sets.items()}
    most = max(int(data.counts.max()) for data in sets.values())
    most_bytes = max(int(data.mask_bytes.max()) for data in sets.values())
    parse_fn = _parse_fn(params, model, most, most_bytes, _draw_from(list(sources.values())))
    return InputReader(params, parser_fn=parse_fn, sources=sources)


def build_dataset(
    params: configs.DataConfig,
    model: configs.DetectionModel,
    input_context: Optional[Any] = None,
    class_names: Sequence[str] = (),
) -> tf.data.Dataset:
    """The dataset of batches (images, labels); see `build_reader`."""
    return build_reader(params, model, class_names).read(input_context)


def names_of_training(
    params: configs.DataConfig, task_config: configs.DetectionTask
) -> tuple[str, ...]:
    """The classes of the training data of a task, which give those of other data their numbers.

    Empty for the training data itself, where there is none, and where its files name no classes.
    """
    train_data = task_config.train_data
    if not train_data.input_path or params == train_data or train_data.file_type not in READERS:
        return ()
    sets = read_sets(train_data)
    numbered = _number_classes(sets, task_config.model.num_classes, ())
    return next(iter(numbered.values())).names


def read_sets(params: configs.DataConfig, include_masks: bool = False) -> dict[str, DetectionSet]:
    """What the files of annotations in `params.input_path` tell, by name; nothing is checked."""
    if params.file_type not in READERS:
        raise DataError(
            f"file_type {params.file_type!r} is not for detection; expected one of "
            f"{', '.join(file_types.names(READERS))}"
        )
    read = READERS[params.file_type]
    return {
        name: read(path, params, include_masks) for name, path in by_name(params.input_path).items()
    }


def _number_classes(
    sets: dict[str, DetectionSet], num_classes: int, class_names: Sequence[str]
) -> dict[str, Classes]:
    """Class numbers by the name of the set; those of a mix follow the first one, by name."""
    numbered: dict[str, Classes] = {}
    names = tuple(class_names)
    for name, data in sets.items():
        numbered[name] = number_classes(
            data.category_ids, data.category_names, num_classes, names, data.origin
        )
        names = numbered[name].names
    return numbered


def _parse_fn(
    params: configs.DataConfig,
    model: configs.DetectionModel,
    most_objects: int = 0,
    most_mask_bytes: int = 0,
    draw_other: Callable[[tf.Tensor], dict[str, Any]] | None = None,
) -> Any:
    parser = build_parser(params, model, most_objects, most_mask_bytes, draw_other)
    return parser.parse_fn(bool(params.is_training))


def build_parser(
    params: configs.DataConfig,
    model: configs.DetectionModel,
    most_objects: int = 0,
    most_mask_bytes: int = 0,
    draw_other: Callable[[tf.Tensor], dict[str, Any]] | None = None,
) -> Parser:
    """The parser of a model's data.

    Args:
      params: what to read and how.
      model: input size, number of classes and coarsest level, and whether it learns masks.
      most_objects: of an image, where it is known.
      most_mask_bytes: of an image, where it is known.
      draw_other: a seed -> another example, where examples can be picked.
    """
    arguments: dict[str, Any] = {
        "output_size": model.input_size[:2],
        "max_level": model.max_level,
        "num_classes": model.num_classes,
        "params": params,
        "max_groundtruths": most_objects,
    }
    if model.learns_masks:
        return MaskParser(max_mask_bytes=most_mask_bytes, draw_other=draw_other, **arguments)
    return Parser(**arguments)


def _draw_from(tables: Sequence[Table]) -> Callable[[tf.Tensor], dict[str, Any]]:
    """A function from a seed to one of all examples, each equally likely.

    It depends on the seed alone, so that a run that is resumed sees the same.
    """
    ends = list(itertools.accumulate(len(table) for table in tables))

    def draw(seed: tf.Tensor) -> dict[str, Any]:
        number = Rng(seed).integer(0, ends[-1])
        loads = [
            functools.partial(table.load, {"row": number - (end - len(table))})
            for table, end in zip(tables, ends, strict=True)
        ]
        place = tf.searchsorted(tf.constant(ends), number[None], "right")[0]
        return loads[0]() if len(loads) == 1 else tf.switch_case(place, loads)

    return draw


def _record_reader(params: configs.DataConfig, model: configs.DetectionModel) -> InputReader:
    decode = detection_decoder.build_decoder(params.decoder, model.learns_masks).decode
    reader = InputReader(params, decoder_fn=decode, parser_fn=_parse_fn(params, model))
    for source in reader.sources.values():
        detection_checks.check_records(source, model.num_classes)
    origin = str(params.input_path)
    detection_checks.check_classes(reader.info.class_names, model.num_classes, origin)
    return reader


def _tfds_reader(params: configs.DataConfig, model: configs.DetectionModel) -> InputReader:
    names = list(by_name(params.tfds_name).values())
    keeps_ids = {detection_decoder.keeps_coco_ids(name, model.num_classes) for name in names}
    if len(keeps_ids) > 1:
        raise DataError(f"{', '.join(names)} number their classes in different ways")
    skipped = params.tfds_skip_decoding_feature or "image"
    params = dataclasses.replace(
        params, tfds_skip_decoding_feature=skipped, tfds_as_supervised=False
    )
    is_coco = all(name.split("/")[0] == "coco" for name in names)
    of_coco = _CocoIdsReader if keeps_ids == {True} else _ThingsReader
    reader = (of_coco if is_coco else InputReader)(
        params,
        decoder_fn=detection_decoder.tfds_decoder(names[0], model.num_classes, model.learns_masks),
        parser_fn=_parse_fn(params, model),
    )
    detection_checks.check_classes(reader.info.class_names, model.num_classes, ", ".join(names))
    return reader


class _ThingsReader(InputReader):
    """Leaves out classes of what cannot be counted, with which COCO's panoptic set goes on."""

    @property
    def info(self) -> DatasetInfo:
        info = super().info
        return dataclasses.replace(info, class_names=info.class_names[: len(COCO_IDS)])


class _CocoIdsReader(_ThingsReader):
    """Names the classes by COCO's ids, which have gaps, where the source counts them through."""

    @property
    def info(self) -> DatasetInfo:
        info = super().info
        classes = number_classes(COCO_IDS, info.class_names, COCO_IDS[-1] + 1)
        return dataclasses.replace(info, class_names=classes.names)
