"""Interrupting an input pipeline anywhere, as often as one likes, within a pass and over several.

A run is interrupted by writing the position of its feed to files, and going on in a new feed of a
new pipeline. An example is a number that stands for its content, and a random number that stands
for its augmentation: both have to be those of a run that was never interrupted.
"""

import dataclasses
import json
import sys
import types
import unittest.mock

import numpy as np
import pytest
import tensorflow as tf

from hortus.engine.tensorflow.feed import DatasetFeed
from hortus.vision.configs import common, image_classification
from hortus.vision.configs import retinanet as detection_configs
from hortus.vision.configs import semantic_segmentation as segmentation_configs
from hortus.vision.data import shapes
from hortus.vision.dataloaders.classification import reader as classification
from hortus.vision.dataloaders.combination_reader import CombinationDatasetInputReader
from hortus.vision.dataloaders.conftest import Host, write_records
from hortus.vision.dataloaders.detection import reader as detection
from hortus.vision.dataloaders.input_reader import InputReader
from hortus.vision.dataloaders.input_reader_test import reader, to_number, with_noise
from hortus.vision.dataloaders.segmentation import reader as segmentation

BATCHES = 13
"""At least three passes over any of the data below."""
STOPS = (5, 6, 11)
"""Where a run is interrupted: within a pass and in different ones, near and far apart."""


# ---- what is interrupted --------------------------------------------------------------------


def as_number(content):
    """A number for some bytes; equal for equal ones."""
    return tf.strings.to_hash_bucket_fast(content, 2**60)


def light(one, size=3, **settings):
    """A reader of the same sources that does not decode: quick to build, and to tell apart."""
    params = dataclasses.replace(one.params, global_batch_size=size, seed=4, **settings)

    image, *_ = one.sources[""].files

    def parse(example, seed):
        return with_noise(as_number(example[image]), seed)

    return InputReader(params, parser_fn=parse, sources=one.sources)


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scenes")
    shapes.write_scenes(folder, num_train=10, num_val=1, size=32)
    return folder


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Files of 3, 3, 3 and 2 numbers as texts, of broken ones, and ten images of two classes."""
    folder = tmp_path_factory.mktemp("files")
    for i in range(4):
        numbers = range(11)[i * 3 : i * 3 + 3]
        write_records(folder / f"numbers-{i}", [b"%d" % n for n in numbers])
    for number in range(10):
        path = folder / "images" / "ab"[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        image = np.random.default_rng(number).integers(0, 255, [8, 8, 3]).astype("uint8")
        path.write_bytes(tf.io.encode_png(image).numpy())
    lines = ["image,label", *(f"{'ab'[n % 2]}/{n}.png,{'ab'[n % 2]}" for n in range(10))]
    (folder / "images" / "list.csv").write_text("\n".join(lines) + "\n")
    texts = [b"bad" if n in (1, 6, 7, 13) else b"%d" % n for n in range(14)]
    for i in range(2):
        write_records(folder / f"broken-{i}", texts[i * 7 : i * 7 + 7])
    write_records(folder / "packed-0", [b"%d" % n for n in range(11)], "GZIP")
    return folder


def image_reader(path, **settings):
    params = image_classification.DataConfig(
        is_training=True,
        global_batch_size=3,
        seed=1,
        input_path=str(path),
        **settings,
    )
    return classification.build_reader(params, [8, 8], 2)


def folder_kind(files, scenes):
    return light(image_reader(files / "images", file_type="folder"))


def csv_kind(files, scenes):
    one = image_reader(files / "images" / "list.csv", file_type="csv")
    return light(one)


def coco_kind(files, scenes):
    params = detection_configs.DataConfig(
        input_path=str(scenes / "train.json"), image_dir=str(scenes / "images")
    )
    params.override({"file_type": "coco", "is_training": True, "global_batch_size": 1})
    return light(detection.build_reader(params, detector()))


def voc_kind(files, scenes):
    folder = files / "voc"
    if not folder.exists():
        from hortus.testing import detection_files

        detection_files.write_voc(folder, {"train": range(4)})
    params = detection_configs.DataConfig(input_path=str(folder))
    params.override({"file_type": "voc", "is_training": True, "global_batch_size": 1})
    return light(detection.build_reader(params, detector()), size=2)


def detector():
    return detection_configs.RetinaNet(num_classes=9, input_size=[32, 32, 3])


def masks_kind(files, scenes):
    params = segmentation_configs.DataConfig(
        input_path=str(scenes / "images" / "train"), file_type="masks", output_size=[16, 16]
    )
    params.override({"is_training": True, "global_batch_size": 1})
    return light(segmentation.build_reader(params, (16, 16), 0))


def records(path, **settings):
    return reader(str(path), **{"global_batch_size": 3, "shuffle_buffer_size": 12, **settings})


@dataclasses.dataclass
class WithCopies(common.DataConfig):
    repeated_augment: int = 3


def copies_kind(files, scenes):
    one = records(files / "numbers-*")
    one.params = WithCopies(**one.params.as_dict())
    return one


class Features(dict):
    """The features of a data set whose records are its examples."""

    def deserialize_example(self, record, decoders):
        return record


def tfds_kind(files, scenes):
    parts = [
        types.SimpleNamespace(filename=str(files / f"numbers-{i}"), skip=i % 2, take=-1 if i else 2)
        for i in range(4)
    ]
    split = types.SimpleNamespace(file_instructions=parts, num_examples=16)
    info = types.SimpleNamespace(features=Features(), splits={"train": split})
    module = types.ModuleType("tensorflow_datasets")
    module.builder = lambda name, data_dir: types.SimpleNamespace(info=info)
    params = common.DataConfig(
        tfds_name="numbers", tfds_split="train", is_training=True, global_batch_size=3, seed=1
    )
    one = InputReader(params, decoder_fn=to_number, parser_fn=with_noise)
    with unittest.mock.patch.dict(sys.modules, tensorflow_datasets=module):
        assert one.sources
    return one


def mix_kind(files, scenes, **settings):
    names = {"a": f"{files}/numbers-0,{files}/numbers-1", "b": f"{files}/numbers-2"}
    return records_of_mix(names, weights={"a": 0.7, "b": 0.3}, **settings)


def records_of_mix(paths, **settings):
    return reader(paths, global_batch_size=3, shuffle_buffer_size=12, **settings)


def broken_mix_kind(files, scenes):
    names = {"a": f"{files}/broken-0", "b": f"{files}/broken-1", "c": f"{files}/numbers-3"}
    return records_of_mix(names, skip_bad_records=True)


def combination_kind(files, scenes):
    params = common.DataConfig(
        input_path=f"{files}/numbers-0,{files}/numbers-1",
        global_batch_size=3,
        is_training=True,
        seed=1,
    )
    pseudo = common.PseudoLabelDataConfig(
        input_path=f"{files}/broken-*", data_ratio=2.0, seed=2, global_batch_size=1
    )
    pseudo.override({"skip_bad_records": True})
    return CombinationDatasetInputReader(params, pseudo, to_number, with_noise)


def noise_per_batch(numbers, noise, seed):
    return numbers, noise + tf.random.stateless_uniform([], seed)


def own_batches(dataset, input_context):
    return dataset.batch(2).filter(lambda numbers, _: numbers[0] % 4 != 0)


def take_turns(datasets):
    return tf.data.Dataset.choose_from_datasets(datasets, tf.data.Dataset.range(2).repeat())


KINDS = {
    "folder": folder_kind,
    "csv": csv_kind,
    "coco": coco_kind,
    "voc": voc_kind,
    "masks": masks_kind,
    "records": lambda files, _: records(files / "numbers-*"),
    "records of one file": lambda files, _: records(files / "numbers-0"),
    "records in one block": lambda files, _: records(files / "numbers-*", shuffle_buffer_size=99),
    "records in turns of blocks": lambda files, _: records(
        files / "numbers-*", block_length=2, cycle_length=3, shuffle_buffer_size=1
    ),
    "compressed records": lambda files, _: records(
        files / "packed-0", file_type="tfrecord_compressed"
    ),
    "tfds": tfds_kind,
    "mix": mix_kind,
    "repeated augment": copies_kind,
    "cache": lambda files, _: records(files / "numbers-*", cache=True),
    "cached folder": lambda files, scenes: light(
        image_reader(files / "images", file_type="folder"), cache=True
    ),
    "broken records": lambda files, _: records(files / "broken-*", skip_bad_records=True),
    "broken records in memory": lambda files, _: records(
        files / "broken-*", skip_bad_records=True, cache=True
    ),
    "mix with broken records": broken_mix_kind,
    "combination": combination_kind,
    "seeds of batches": lambda files, _: records(
        files / "numbers-*", postprocess_fn=noise_per_batch
    ),
    "batches of one's own": lambda files, _: records(
        files / "numbers-*", transform_and_batch_fn=own_batches, postprocess_fn=noise_per_batch
    ),
    "mix of one's own": lambda files, scenes: mix_kind(files, scenes, combine_fn=take_turns),
}
# Those whose positions are found in different ways; the others share these ways with them.
WAYS = ("folder", "records", "mix", "repeated augment", "mix with broken records", "combination")
OTHERS = [kind for kind in KINDS if kind not in WAYS]


def make(kind, files, scenes, host=None):
    """The dataset of a new reader, as a new process would make it."""
    one = KINDS[kind](files, scenes)
    if host is not None:  # its share is a batch as large as the only host's
        size = one.params.global_batch_size * host.num_input_pipelines
        one.params = dataclasses.replace(one.params, global_batch_size=size)
    return one.read(host)


# ---- interruptions --------------------------------------------------------------------------


def values(batch):
    return [np.asarray(part).tolist() for part in batch]


def check_restores(make, folder, before=13, after=30):
    """Batches after two restarts are those of a run that went on, bit for bit."""
    whole = DatasetFeed(make())
    for _ in range(before):
        next(whole)
    whole.save_files(folder)
    expected = [next(whole) for _ in range(after)]
    first = DatasetFeed(make())
    first.load_files(folder)
    found = [next(first)]
    first.save_files(folder)
    second = DatasetFeed(make())
    second.load_files(folder)
    found += [next(second) for _ in range(after - 1)]
    for want, have in zip(expected, found, strict=True):
        tf.nest.map_structure(np.testing.assert_array_equal, have, want)


def read_all(dataset):
    """The first batches, and the position before each of them and after the last."""
    feed = DatasetFeed(dataset)
    positions, batches = [json.loads(json.dumps(feed.position))], []
    for _ in range(BATCHES):
        batches.append(values(next(feed)))
        positions.append(json.loads(json.dumps(feed.position)))
    assert len({str(batch) for batch in batches}) == BATCHES  # or it could not tell
    return batches, positions


def check_starts(dataset, starts):
    """Goes on from each of some positions, up to the end, past all positions in between.

    They have to be the very positions of the run that was not interrupted. So a second, a third and
    any further interruption, wherever it is, is checked with the first.
    """
    batches, positions = read_all(dataset)
    feed = DatasetFeed(dataset)
    for start in starts:
        feed.go_to(positions[start])
        for number in range(start, BATCHES):
            assert values(next(feed)) == batches[number], (start, number)
            assert feed.position == positions[number + 1], (start, number)


@pytest.mark.parametrize("kind", WAYS)
def test_every_position_of_three_passes_is_exact(kind, files, scenes):
    check_starts(make(kind, files, scenes), range(1, BATCHES))


@pytest.mark.parametrize("kind", OTHERS)
def test_positions_of_all_passes_are_exact(kind, files, scenes):
    check_starts(make(kind, files, scenes), (2, 5, 8))


@pytest.mark.parametrize("kind", WAYS)
def test_positions_of_one_of_two_hosts_are_exact(kind, files, scenes):
    check_starts(make(kind, files, scenes, Host(2, 1)), (1, 4, 9))


@pytest.mark.parametrize("kind", [*WAYS, "tfds", "cache", "broken records", "seeds of batches"])
def test_a_run_that_is_interrupted_often_sees_the_same_data(kind, files, scenes, tmp_path):
    expected = [values(batch) for batch in make(kind, files, scenes).take(BATCHES)]
    found, folder = [], None
    for stop in (*STOPS, BATCHES):
        feed = DatasetFeed(make(kind, files, scenes))
        if folder is not None:
            feed.load_files(str(folder))
        found += [values(next(feed)) for _ in range(stop - len(found))]
        folder = tmp_path / str(stop)
        folder.mkdir()
        feed.save_files(str(folder))
    assert found == expected
