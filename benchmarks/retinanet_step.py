"""Seconds and memory of RetinaNet's training step and of its NMS, against tf-models-official.

    python benchmarks/retinanet_step.py [--peer PYTHON] [--rounds N] [--batch N] [--size PIXELS]
                                        [--parts train,nms] [--jax]

`--peer` is an interpreter that has tf-models-official. ResNet-50-FPN, 91 classes. Input is made up,
so that only the step counts: forward, backward, SGD with momentum, all through each side's own
trainer, 5 steps per loop. The peer labels anchors in its input pipeline, which is not counted;
hortus does so in the step, which is. The peer runs twice: as its users get it, and with oneDNN
switched on by hand, which TensorFlow leaves off on CPUs without AVX-512 and hortus switches on.

NMS is what follows the head outside of training: boxes and scores of 5 levels of images of 640
pixels, 76,725 anchors and 90 classes each, to 100 detections. "sure" scores are those of a trained
model, of which a few thousand count; "unsure" ones those of a model that has just begun.
"""

import json
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import contest
import trainers

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

_EXPERIMENT = "retinanet_resnetfpn_coco"
_CLASSES = 91
_NMS_SIZE = 640
_OBJECTS = 20
"""Per image."""
_LOGITS = {"sure": -8.0, "unsure": -6.0}
"""Means of the logits, whose standard deviation is 1.5; 0.05 is that of a logit of -2.9."""


def overrides(job: dict[str, Any]) -> dict[str, Any]:
    """What differs from the experiment, alike for hortus and the peer."""
    return {
        "runtime": {
            "distribution_strategy": "one_device",
            "enable_xla": False,
            "mixed_precision_dtype": "float32",
        },
        "task": {
            "model": {"input_size": [job["size"], job["size"], 3]},
            "train_data": {"global_batch_size": job["batch"]},
            "init_checkpoint": None,
            "annotation_file": None,
        },
        "trainer": {
            "optimizer_config": {
                "learning_rate": {"type": "constant", "constant": {"learning_rate": 0.01}},
                "warmup": {"type": None},
            }
        },
    }


def objects(job: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Random images, boxes [b, 100, 4] padded with -1, and classes [b, 100]."""
    import numpy as np

    random = np.random.default_rng(0)
    batch, size = job["batch"], job["size"]
    images = random.standard_normal((batch, size, size, 3), "float32")
    corners = random.uniform(0, 0.7 * size, (batch, _OBJECTS, 2))
    boxes = np.concatenate([corners, corners + random.uniform(16, 80, corners.shape)], axis=-1)
    boxes = np.pad(
        np.minimum(boxes, size), ((0, 0), (0, 100 - _OBJECTS), (0, 0)), constant_values=-1
    )
    classes = np.full((batch, 100), -1)
    classes[:, :_OBJECTS] = random.integers(1, _CLASSES, (batch, _OBJECTS))
    return images, boxes.astype("float32"), classes.astype("int32")


def again(batch: Any) -> Any:
    """A dataset that gives the batch without end."""
    import tensorflow as tf

    return tf.data.Dataset.from_tensors(batch).repeat().prefetch(2)


def hortus_train(job: dict[str, Any]) -> Callable[[], Any]:
    """The trainer of hortus."""
    images, boxes, classes = objects(job)
    batch = (images, {"boxes": boxes, "classes": classes})
    return trainers.hortus(_EXPERIMENT, overrides(job), again(batch))


def peer_train(job: dict[str, Any]) -> Callable[[], Any]:
    """The trainer of tf-models-official, with anchors labelled beforehand."""
    import tensorflow as tf
    from official.vision.ops import anchor

    images, boxes, classes = objects(job)
    sizes = anchor.build_anchor_generator(3, 7, 3, [0.5, 1.0, 2.0], 4.0)
    anchors = sizes(image_size=(job["size"], job["size"]))
    labeler = anchor.AnchorLabeler(0.5, 0.5)
    found = [
        labeler.label_anchors(
            anchors,
            tf.constant(boxes[i, :_OBJECTS]),
            tf.constant(classes[i, :_OBJECTS, None]),
        )
        for i in range(job["batch"])
    ]
    stacked = tf.nest.map_structure(lambda *values: tf.stack(values), *found)
    names = ("cls_targets", "box_targets", "attribute_targets", "cls_weights", "box_weights")
    labels = dict(zip(names, stacked, strict=True))
    del labels["attribute_targets"]
    return trainers.peer(_EXPERIMENT, overrides(job), again((images, labels)))


def raw_outputs(job: dict[str, Any]) -> tuple[Any, Any]:
    """Codes and logits of 5 levels."""
    import numpy as np

    random = np.random.default_rng(0)

    def levels(count: int, mean: float, deviation: float) -> dict[str, Any]:
        return {
            str(level): random.standard_normal(
                (job["batch"], _NMS_SIZE // 2**level, _NMS_SIZE // 2**level, 9 * count), "float32"
            )
            * np.float32(deviation)
            + np.float32(mean)
            for level in range(3, 8)
        }

    return levels(4, 0.0, 0.2), levels(_CLASSES, _LOGITS[job["scores"]], 1.5)


def hortus_nms(job: dict[str, Any]) -> Callable[[], Any]:
    """The layer of hortus, compiled."""
    import keras

    from hortus.vision.modeling.layers.detection.detection_generator import (
        MultilevelDetectionGenerator,
    )
    from hortus.vision.ops.anchors import AnchorGenerator

    anchors = AnchorGenerator(3, 7, 3, (0.5, 1.0, 2.0), 4.0)((_NMS_SIZE, _NMS_SIZE))
    layer = MultilevelDetectionGenerator(_CLASSES)
    boxes, scores = raw_outputs(job)

    def run(boxes: Any, scores: Any) -> Any:
        return layer(boxes, scores, anchors, image_shape=(_NMS_SIZE, _NMS_SIZE))

    if keras.backend.backend() == "jax":
        import jax

        compiled = jax.jit(run)
        values = jax.device_put((boxes, scores))
        return lambda: jax.block_until_ready(compiled(*values))
    import tensorflow as tf

    compiled = tf.function(run, autograph=False)
    values = tf.nest.map_structure(tf.constant, (boxes, scores))
    return lambda: compiled(*values)["num_detections"].numpy()


def peer_nms(job: dict[str, Any]) -> Callable[[], Any]:
    """The layer of tf-models-official with the defaults of its configs, compiled."""
    import tensorflow as tf
    from official.vision.modeling.layers import detection_generator
    from official.vision.ops import anchor

    make = anchor.build_anchor_generator(3, 7, 3, [0.5, 1.0, 2.0], 4.0)
    anchors = {
        level: tf.tile(boxes[None], [job["batch"], 1, 1, 1])
        for level, boxes in make(image_size=(_NMS_SIZE, _NMS_SIZE)).items()
    }
    layer = detection_generator.MultilevelDetectionGenerator(
        apply_nms=True,
        pre_nms_top_k=5000,
        pre_nms_score_threshold=0.05,
        nms_iou_threshold=0.5,
        max_num_detections=100,
        nms_version=job["version"],
    )
    shape = tf.tile(tf.constant([[float(_NMS_SIZE)] * 2]), [job["batch"], 1])
    run = tf.function(lambda boxes, scores: layer(boxes, scores, anchors, shape))
    values = tf.nest.map_structure(tf.constant, raw_outputs(job))
    return lambda: run(*values)["num_detections"].numpy()


_MAKERS = {
    "train": {"hortus": hortus_train, "peer": peer_train},
    "nms": {"hortus": hortus_nms, "peer": peer_nms},
}


def measure(job: dict[str, Any]) -> dict[str, float]:
    """What `trainers.measure` gives; of NMS, seconds per call."""
    trainers.load_libraries(job["who"])
    make = _MAKERS[job["part"]][job["who"]]
    if job["part"] == "train":
        return trainers.measure(lambda: make(job), job["calls"])
    run = make(job)
    run()
    run()
    times = []
    for _ in range(job["calls"]):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return {"seconds": statistics.median(times)}


def main() -> None:
    """Prints a table per part."""
    parser = contest.parser(__doc__)
    parser.add_argument("--calls", type=int, default=3, help="of 5 steps, in each round")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--parts", default="train,nms")
    parser.add_argument("--jax", action="store_true", help="hortus on JAX too")
    arguments = parser.parse_args()
    if arguments.job:
        print(json.dumps(measure(arguments.job)))
        return
    ours, peers = contest.ours(arguments.jax), contest.peers(arguments.peer)
    job = {name: getattr(arguments, name) for name in ("batch", "size", "calls")}
    where = f"{os.cpu_count()} CPUs, medians of {arguments.rounds} rounds"
    if "train" in arguments.parts:
        contest.show(
            f"a training step, batch {arguments.batch} at {arguments.size} px, {where}",
            contest.play(__file__, {**ours, **peers}, {"part": "train", **job}, arguments.rounds),
            base="hortus",
            units=trainers.UNITS,
        )
    if "nms" in arguments.parts:
        versions = {
            f"tf-models-official {version}": contest.Contestant(
                {"who": "peer", "version": version}, arguments.peer
            )
            for version in (("v2", "batched") if arguments.peer else ())
        }
        for scores in _LOGITS:
            part = {"part": "nms", "scores": scores, **job}
            contest.show(
                f"NMS of {arguments.batch} images, {scores} scores, {where}",
                contest.play(__file__, {**ours, **versions}, part, arguments.rounds),
                base="hortus",
                units={"seconds": ("ms", 1e3)},
            )


if __name__ == "__main__":
    main()
