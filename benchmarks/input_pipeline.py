"""Images per second of the input of classification: decode, crop, flip, resize, RandAugment.

    python benchmarks/input_pipeline.py [--peer PYTHON] [--rounds N] [--images N] [--size PIXELS]

The same images, as large as ImageNet's, are read from TFRecord files and from a folder with one
sub-folder per class. `--peer` is an interpreter that has tf-models-official: its own pipeline reads
the same TFRecord files, with the same settings. Every contestant runs in a process of its own and
takes its turn in each round, so that a busy machine treats all alike; the table has medians. The
CPU time per image depends least on what else the machine does.
"""

import json
import os
import pathlib
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import contest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

_BATCH_SIZE = 64
_CLASSES = 10
_WARMUP_BATCHES = 6
_AUGMENTATIONS = {
    "decode + crop + flip": None,
    "decode + crop + flip + RandAugment": {
        "type": "randaug",
        "randaug": {"num_layers": 2, "magnitude": 10.0, "translate_const": 100.0},
    },
}


# ---- data -----------------------------------------------------------------------------------


def write_data(folder: pathlib.Path, count: int) -> None:
    """Writes the images as `folder`/images/<class>/*.jpg and `folder`/train-*.tfrecord."""
    import numpy as np
    import tensorflow as tf

    random = np.random.default_rng(0)
    records: list[list[bytes]] = [[] for _ in range(4)]
    for number in range(count):
        label = number % _CLASSES
        # Blurred noise of several scales: a JPEG of about 100 KB, as a photograph is.
        height, width = (375, 500) if number % 3 else (500, 375)
        image = np.zeros([height, width, 3], np.float32)
        for scale in (4, 16, 100, 250):
            noise = random.uniform(0, 255, [scale, scale, 3]).astype(np.float32)
            image += tf.image.resize(noise, [height, width], method="bicubic").numpy() / 4
        pixels = np.clip((image - 127) * 2 + 127, 0, 255).astype(np.uint8)
        encoded = tf.io.encode_jpeg(pixels, quality=95, chroma_downsampling=True).numpy()
        path = folder / "images" / f"class_{label}" / f"{number:05d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encoded)
        features = {
            "image/encoded": tf.train.Feature(bytes_list=tf.train.BytesList(value=[encoded])),
            "image/class/label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
        }
        example = tf.train.Example(features=tf.train.Features(feature=features))
        records[number % len(records)].append(example.SerializeToString())
    for number, part in enumerate(records):
        with tf.io.TFRecordWriter(str(folder / f"train-{number}.tfrecord")) as writer:
            for record in part:
                writer.write(record)


# ---- contestants ----------------------------------------------------------------------------


def settings(job: dict[str, Any]) -> dict[str, Any]:
    """The settings that all contestants have in common."""
    return {
        "input_path": job["input_path"],
        "file_type": job["file_type"],
        "global_batch_size": _BATCH_SIZE,
        "is_training": True,
        "shuffle_buffer_size": 200,
        "aug_type": job["aug_type"],
    }


def our_batches(job: dict[str, Any]) -> Iterator[Any]:
    """Batches of hortus."""
    from hortus.vision.configs import image_classification
    from hortus.vision.dataloaders.classification import reader as classification_input

    params = image_classification.DataConfig(settings(job))
    size = (job["size"], job["size"])
    return iter(classification_input.build_dataset(params, size, _CLASSES))


def peer_batches(job: dict[str, Any]) -> Iterator[Any]:
    """Batches of tf-models-official, as its users get them: from its task."""
    from official.vision.configs import image_classification
    from official.vision.tasks import image_classification as tasks

    config = image_classification.ImageClassificationTask()
    config.model.num_classes = _CLASSES
    config.model.input_size = [job["size"], job["size"], 3]
    config.override({"train_data": settings(job)})
    task = tasks.ImageClassificationTask(config)
    return iter(task.build_inputs(config.train_data))


def measure(job: dict[str, Any]) -> dict[str, float]:
    """Seconds to the first batch, and images per second after some more."""
    import tensorflow  # noqa: F401  (not part of the time)

    begin = time.perf_counter()
    batches = (our_batches if job["who"] == "hortus" else peer_batches)(job)
    next(batches)
    first = time.perf_counter() - begin
    for _ in range(_WARMUP_BATCHES):
        next(batches)
    begin, cpu, count = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() - begin < job["seconds"]:
        next(batches)
        count += _BATCH_SIZE
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    return {"first": first, "rate": count / seconds, "cpu": cpu / count * 1000}


def main() -> None:
    """Prints a table for each augmentation."""
    parser = contest.parser(__doc__)
    parser.add_argument("--images", type=int, default=400)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--seconds", type=float, default=6.0, help="of each measurement")
    arguments = parser.parse_args()
    if arguments.job:
        print(json.dumps(measure(arguments.job)))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_data(folder, arguments.images)
        records = {"file_type": "tfrecord", "input_path": str(folder / "train-*.tfrecord")}
        files = {"file_type": "folder", "input_path": str(folder / "images")}
        contestants = {
            "hortus, TFRecord": contest.Contestant({"who": "hortus", **records}),
            "hortus, folder": contest.Contestant({"who": "hortus", **files}),
        }
        if arguments.peer:
            contestants["tf-models-official, TFRecord"] = contest.Contestant(
                {"who": "peer", **records}, arguments.peer
            )
        for augmentation, aug_type in _AUGMENTATIONS.items():
            job = {"aug_type": aug_type, "size": arguments.size, "seconds": arguments.seconds}
            contest.show(
                f"{augmentation}: JPEG of 500 x 375 to {arguments.size} px, {os.cpu_count()} CPUs, "
                f"medians of {arguments.rounds} rounds",
                contest.play(__file__, contestants, job, arguments.rounds),
                base="hortus, TFRecord",
                units={
                    "rate": ("images/s", 1.0),
                    "cpu": ("CPU ms/image", 1.0),
                    "first": ("first batch, s", 1.0),
                },
            )


if __name__ == "__main__":
    main()
