"""Writes structures.json.gz and outputs.npz with the Model Garden's own trainer.

    python write.py [case ...]      # with an interpreter that has tf-models-official 2.20

The structure of a checkpoint is its object graph: of each node, its children, and of a variable its
key, the name that it was made with, and its shape; of an optimizer, the averages that it keeps.
"""

import gzip
import json
import os
import pathlib
import sys
import tempfile

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import cases
import numpy as np
import tensorflow as tf
import tf_keras
import values
from official.core import base_trainer, exp_factory, task_factory
from official.modeling import optimization
from official.vision import registry_imports  # noqa: F401
from tensorflow.core.protobuf import trackable_object_graph_pb2

HERE = pathlib.Path(__file__).parent


def flat(outputs, prefix=""):
    if isinstance(outputs, dict):
        return {k: v for key, o in outputs.items() for k, v in flat(o, f"{prefix}{key}/").items()}
    if isinstance(outputs, (list, tuple)):
        return {k: v for i, o in enumerate(outputs) for k, v in flat(o, f"{prefix}{i}/").items()}
    return {prefix.rstrip("/"): np.asarray(outputs)}


def answers(model, images, kind):
    features = model.backbone(images, training=False)
    if kind == "detection":
        return flat(model.head(model.decoder(features, training=False), training=False), "head/")
    return flat(model(images, training=False), "model/")


def structure(prefix):
    reader = tf.train.load_checkpoint(prefix)
    shapes = reader.get_variable_to_shape_map()
    graph = trackable_object_graph_pb2.TrackableObjectGraph()
    graph.ParseFromString(reader.get_tensor("_CHECKPOINTABLE_OBJECT_GRAPH"))
    nodes = []
    for node in graph.nodes:
        entry = {"children": {child.local_name: child.node_id for child in node.children}}
        for attribute in node.attributes:
            if attribute.checkpoint_key in shapes:
                entry["key"] = attribute.checkpoint_key
                entry["name"] = attribute.full_name
                entry["shape"] = shapes[attribute.checkpoint_key]
        slots = {}
        for slot in node.slot_variables:
            if slot.slot_name == "average":
                slots[slot.original_variable_node_id] = slot.slot_variable_node_id
        if slots:
            entry["slots"] = {"average": slots}
        nodes.append(entry)
    return nodes


def keys_of(checkpoint, variables, folder):
    """The key of each variable: each is filled with its number and looked up in the file."""
    for number, variable in enumerate(variables):
        variable.assign(tf.fill(variable.shape, tf.cast(number + 7, variable.dtype)))
    prefix = checkpoint.write(os.path.join(folder, "numbered"))
    reader = tf.train.load_checkpoint(prefix)
    found = {}
    for key in reader.get_variable_to_shape_map():
        is_slot = ".OPTIMIZER_SLOT" in key
        if (is_slot and "/average/" not in key) or key.startswith(("optimizer/", "_CHECK")):
            continue
        number = int(np.ravel(reader.get_tensor(key))[0]) - 7
        if (
            0 <= number < len(variables)
            and tuple(variables[number].shape) == reader.get_tensor(key).shape
        ):
            found.setdefault(number, key)
    assert len(found) == len(variables), (len(found), len(variables))
    return [found[number] for number in range(len(variables))], prefix


def write(name):
    experiment, size, _ = cases.CASES[name]
    config = exp_factory.get_exp_config(experiment)
    config.override(cases.override(name), is_strict=True)
    if config.trainer.optimizer_config.optimizer.type is None:
        config.override(
            {
                "trainer": {
                    "optimizer_config": {
                        "optimizer": {"type": "sgd"},
                        "learning_rate": {"type": "constant", "constant": {"learning_rate": 0.1}},
                    }
                }
            }
        )
    task = task_factory.get_task(config.task)
    model = task.build_model()
    kind = "detection" if "Retina" in type(task).__name__ else "other"
    images = tf.constant(values.images(size))
    answers(model, images, kind)
    optimizer = task.create_optimizer(config.trainer.optimizer_config, config.runtime)
    trainer = base_trainer.Trainer(config, task, model, optimizer, train=False, evaluate=False)
    getattr(optimizer, "_optimizer", optimizer)._create_all_weights(model.trainable_variables)
    variables = list(model.variables)
    averages = []
    if isinstance(optimizer, optimization.ExponentialMovingAverage):
        averages = [optimizer.get_slot(variable, "average") for variable in variables]
    outputs = {}
    with tempfile.TemporaryDirectory() as folder:
        keys, prefix = keys_of(trainer.checkpoint, variables + averages, folder)
        nodes = structure(prefix)
    for variable, key in zip(variables + averages, keys, strict=True):
        variable.assign(values.value(key, tuple(variable.shape)))
    found = {"weights": answers(model, images, kind)}
    if averages:
        for variable, average in zip(variables, averages, strict=True):
            variable.assign(average)
        found["averages"] = answers(model, images, kind)
    for which, answer in found.items():
        for output, array in answer.items():
            index = np.linspace(0, array.size - 1, 48).astype(int)
            outputs[f"{name}/{which}/{output}"] = array.ravel()[index]
            outputs[f"{name}/{which}/{output}/absmax"] = np.abs(array).max()
    return nodes, outputs


def main():
    """Writes the cases that are named, or all, and keeps the others as they are."""
    structures, figures = {}, {}
    if (HERE / "structures.json.gz").exists():
        structures = json.loads(gzip.decompress((HERE / "structures.json.gz").read_bytes()))
        figures = dict(np.load(HERE / "outputs.npz"))
    for name in sys.argv[1:] or cases.CASES:
        structures[name], outputs = write(name)
        figures |= outputs
        tf_keras.backend.clear_session()
        scale = {key: round(float(v), 3) for key, v in outputs.items() if key.endswith("absmax")}
        print(name, len(structures[name]), list(scale.items())[:2], flush=True)
        text = json.dumps(structures, separators=(",", ":")).encode()
        (HERE / "structures.json.gz").write_bytes(gzip.compress(text, 9, mtime=0))
        np.savez_compressed(HERE / "outputs.npz", **figures)


main()
