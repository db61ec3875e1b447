"""Seconds and memory of Mask R-CNN's training step and of its prediction, against peers.

    python benchmarks/maskrcnn_step.py [--peer PYTHON] [--torch PYTHON] [--rounds N] [--batch N]
                                       [--size PIXELS] [--parts train,predict] [--jax]
                                       [--heads deep,plain]

`--peer` is an interpreter that has tf-models-official, `--torch` one that has torchvision, whose
maskrcnn_resnet50_fpn takes part. ResNet-50-FPN with masks, 91 classes. Input is made up, so that
only the step counts: forward, backward, SGD with momentum. hortus and tf-models-official run
through their own trainers, 5 steps per loop. "deep" is the experiment as it is, whose box head has
four convolutions, "plain" has torchvision's two dense layers instead, and only there does it take
part. tf-models-official labels anchors in its input
pipeline, which is not counted; the others do so in the step, which is. torchvision takes fewer
regions to its heads where it finds few objects, and has no batch normalisation to train; its
defaults stay as they are, but for the size of the images.

Prediction is the model outside of training, with new weights: from images to detections and masks.
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

_EXPERIMENT = "maskrcnn_resnetfpn_coco"
_CLASSES = 91
_OBJECTS = 20
"""Per image."""
_HEADS: dict[str, dict[str, Any]] = {
    "deep": {},
    "plain": {"detection_head": {"num_convs": 0, "num_fcs": 2}},
}
_MASK = 112
"""Side of the masks of objects."""


def overrides(job: dict[str, Any]) -> dict[str, Any]:
    """What differs from the experiment, alike for hortus and the peer."""
    return {
        "runtime": {
            "distribution_strategy": "one_device",
            "enable_xla": False,
            "mixed_precision_dtype": "float32",
        },
        "task": {
            "model": {"input_size": [job["size"], job["size"], 3], **_HEADS[job["heads"]]},
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


def objects(job: dict[str, Any]) -> dict[str, Any]:
    """Random images, boxes [b, 100, 4] padded with -1, classes [b, 100], masks [b, 100, s, s]."""
    import numpy as np

    random = np.random.default_rng(0)
    batch, size = job["batch"], job["size"]
    images = random.standard_normal((batch, size, size, 3), "float32")
    corners = random.uniform(0, 0.7 * size, (batch, _OBJECTS, 2))
    boxes = np.concatenate([corners, corners + random.uniform(16, 80, corners.shape)], axis=-1)
    rest = ((0, 0), (0, 100 - _OBJECTS), (0, 0))
    boxes = np.pad(np.minimum(boxes, size), rest, constant_values=-1)
    classes = np.full((batch, 100), -1)
    classes[:, :_OBJECTS] = random.integers(1, _CLASSES, (batch, _OBJECTS))
    rows, columns = np.mgrid[:_MASK, :_MASK] - _MASK / 2
    disc = (rows**2 + columns**2 < (_MASK / 2) ** 2).astype("float32")
    masks = np.zeros((batch, 100, _MASK, _MASK), "float32")
    masks[:, :_OBJECTS] = disc
    info = np.array([[size, size], [size, size], [1, 1], [0, 0]], "float32")
    return {
        "images": images,
        "boxes": boxes.astype("float32"),
        "classes": classes.astype("int32"),
        "masks": masks,
        "image_info": np.tile(info, (batch, 1, 1)),
    }


def again(batch: Any) -> Any:
    """A dataset that gives the batch without end."""
    import tensorflow as tf

    return tf.data.Dataset.from_tensors(batch).repeat().prefetch(2)


def hortus_train(job: dict[str, Any]) -> Callable[[], Any]:
    """The trainer of hortus."""
    made = objects(job)
    made["masks"] = made["masks"].astype("uint8")
    made["is_crowd"] = made["classes"] > _CLASSES
    images = made.pop("images")
    return trainers.hortus(_EXPERIMENT, overrides(job), again((images, made)))


def peer_train(job: dict[str, Any]) -> Callable[[], Any]:
    """The trainer of tf-models-official, with anchors labelled beforehand."""
    import tensorflow as tf
    from official.vision.ops import anchor

    made, size = objects(job), (job["size"], job["size"])
    anchors = anchor.Anchor(2, 6, 1, [0.5, 1.0, 2.0], 8.0, size)
    labeler = anchor.RpnAnchorLabeler(0.7, 0.3, 256, 0.5)
    found = [
        labeler.label_anchors(
            anchors.multilevel_boxes,
            tf.constant(made["boxes"][i, :_OBJECTS]),
            tf.constant(made["classes"][i, :_OBJECTS, None], tf.float32),
        )
        for i in range(job["batch"])
    ]
    scores, boxes = tf.nest.map_structure(lambda *values: tf.stack(values), *found)
    labels = {
        "anchor_boxes": {
            level: tf.tile(values[None], [job["batch"], 1, 1, 1])
            for level, values in anchors.multilevel_boxes.items()
        },
        "image_info": made["image_info"],
        "rpn_score_targets": scores,
        "rpn_box_targets": boxes,
        "gt_boxes": made["boxes"],
        "gt_classes": made["classes"],
        "gt_masks": made["masks"],
    }
    return trainers.peer(_EXPERIMENT, overrides(job), again((made["images"], labels)))


def torch_train(job: dict[str, Any]) -> Callable[[], Any]:
    """Steps of torchvision's model."""
    import torch

    model, images = _torch_model(job)
    made, size = objects(job), job["size"]
    targets = []
    for boxes, classes in zip(made["boxes"], made["classes"], strict=True):
        rows = torch.tensor(boxes[:_OBJECTS])
        masks = torch.zeros(_OBJECTS, size, size, dtype=torch.uint8)
        for mask, (top, left, bottom, right) in zip(
            masks, rows.round().int().tolist(), strict=True
        ):
            mask[top:bottom, left:right] = 1
        numbers = torch.tensor(classes[:_OBJECTS], dtype=torch.int64)
        targets.append({"boxes": rows[:, [1, 0, 3, 2]], "labels": numbers, "masks": masks})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=4e-5)

    def run() -> None:
        for _ in range(trainers.STEPS):
            loss = sum(model(images, targets).values())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    model.train()
    return run


def _torch_model(job: dict[str, Any]) -> tuple[Any, list[Any]]:
    import torch
    from torchvision.models.detection import maskrcnn_resnet50_fpn

    torch.manual_seed(0)
    size = job["size"]
    model = maskrcnn_resnet50_fpn(
        weights=None,
        weights_backbone=None,
        num_classes=_CLASSES,
        min_size=size,
        max_size=size,
        trainable_backbone_layers=5,
    )
    return model, list(torch.tensor(objects(job)["images"]).permute(0, 3, 1, 2))


def hortus_predict(job: dict[str, Any]) -> Callable[[], Any]:
    """The model of hortus, compiled."""
    import keras

    from hortus.core import exp_factory, task_factory
    from hortus.vision import registry_imports

    registry_imports.load_tasks()
    config = exp_factory.get_exp_config(_EXPERIMENT)
    config.override(overrides(job))
    model, images = task_factory.get_task(config.task).build_model(), objects(job)["images"]

    def run(images: Any) -> Any:
        return model(images, training=False)["detection_masks"]

    if keras.backend.backend() == "jax":
        import jax

        compiled = jax.jit(run)
        return lambda: jax.block_until_ready(compiled(images))
    import tensorflow as tf

    compiled = tf.function(run, autograph=False)
    values = tf.constant(images)
    return lambda: compiled(values).numpy()


def peer_predict(job: dict[str, Any]) -> Callable[[], Any]:
    """The model of tf-models-official, compiled."""
    import tensorflow as tf
    from official.core import exp_factory, task_factory
    from official.vision import registry_imports  # noqa: F401

    config = exp_factory.get_exp_config(_EXPERIMENT)
    config.override(overrides(job))
    model, made = task_factory.get_task(config.task).build_model(), objects(job)
    shape = tf.constant(made["image_info"][:, 1])
    run = tf.function(lambda images: model(images, image_shape=shape, training=False))
    values = tf.constant(made["images"])
    return lambda: run(values)["detection_masks"].numpy()


def torch_predict(job: dict[str, Any]) -> Callable[[], Any]:
    """The model of torchvision."""
    import torch

    model, images = _torch_model(job)
    model.eval()

    def run() -> Any:
        with torch.inference_mode():
            return model(images)

    return run


_MAKERS = {
    "train": {"hortus": hortus_train, "peer": peer_train, "torch": torch_train},
    "predict": {"hortus": hortus_predict, "peer": peer_predict, "torch": torch_predict},
}


def measure(job: dict[str, Any]) -> dict[str, float]:
    """What `trainers.measure` gives; of prediction, seconds per batch."""
    if job["who"] == "torch":
        import torchvision  # noqa: F401
    else:
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
    parser.add_argument("--torch", help="interpreter that has torchvision")
    parser.add_argument("--calls", type=int, default=3, help="of 5 steps, in each round")
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--parts", default="train,predict")
    parser.add_argument("--heads", default="deep,plain")
    parser.add_argument("--jax", action="store_true", help="hortus on JAX too")
    arguments = parser.parse_args()
    if arguments.job:
        print(json.dumps(measure(arguments.job)))
        return
    job = {name: getattr(arguments, name) for name in ("batch", "size", "calls")}
    where = f"{os.cpu_count()} CPUs, medians of {arguments.rounds} rounds"
    titles = {"train": "a training step", "predict": "prediction"}
    units = {"train": trainers.UNITS, "predict": {"seconds": ("ms", 1e3)}}
    for heads in arguments.heads.split(","):
        contestants = {**contest.ours(arguments.jax), **contest.peers(arguments.peer)}
        if arguments.torch and heads == "plain":
            contestants["torchvision"] = contest.Contestant({"who": "torch"}, arguments.torch)
        for part in arguments.parts.split(","):
            task = {"part": part, "heads": heads, **job}
            contest.show(
                f"{titles[part]}, {heads} heads, batch {arguments.batch} at {arguments.size} px, "
                f"{where}",
                contest.play(__file__, contestants, task, arguments.rounds),
                base="hortus",
                units=units[part],
            )


if __name__ == "__main__":
    main()
