"""Starts a model, or some modules of it, from the weights of another run."""

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Optional, Union

import keras
import numpy as np

from hortus import hyperparams
from hortus.core.checkpoints import foreign, names, values
from hortus.core.checkpoints.errors import CheckpointError, CheckpointWarning
from hortus.core.checkpoints.foreign import Translation
from hortus.core.checkpoints.layout import module_items
from hortus.core.checkpoints.load_report import LoadReport, Row
from hortus.core.checkpoints.sources import NamedTensors, Source, open_source
from hortus.core.checkpoints.state_dict import StateDict
from hortus.core.checkpoints.tf2.graph_match import GraphMatch
from hortus.core.checkpoints.tf2.object_graph import ObjectGraph

ALL = "all"
# The slot in which optimizers of TensorFlow keep moving averages of weights.
AVERAGE = "average"
_SHOWN = 6

Assignment = tuple[Any, np.ndarray]


def load_modules(
    model: Any, path: Any, modules: Union[str, Sequence[str]] = ALL, averages: bool = False
) -> LoadReport:
    """Sets weights of a built model to those of the same name and shape in a checkpoint.

    Weights whose shape differs are left as they are, as is right for a head with other classes.
    Optimizer state, metrics and random state are never loaded.

    Args:
        model: a built model. Its `checkpoint_items`, a dict of names to layers, are its modules.
        path: a checkpoint's folder, the folder of a run (its newest checkpoint) or of its exported
            best one, a `.safetensors` file, or a checkpoint of TensorFlow 2 (its prefix).
        modules: "all" for the whole model, or the name or names of modules.
        averages: take the moving averages of weights that the optimizer of a TensorFlow checkpoint
            keeps, instead of the weights themselves.

    Returns:
        What was loaded, skipped, missing and unused; printing it shows a table.

    Raises:
        CheckpointError: there is no such checkpoint or module, it is damaged, nothing matched, or
            a TensorFlow checkpoint could not be matched in full. The model is unchanged.
    """
    wanted = [modules] if isinstance(modules, str) else list(modules)
    targets = _targets(model, wanted)
    source = open_source(os.path.expanduser(os.fspath(path)))
    report = LoadReport(os.fspath(path), wanted)
    assignments: list[Assignment] = []
    if averages:
        source = _averaged(source, report.path)
    for name, module in targets.items():
        if isinstance(source, NamedTensors):
            assignments += _from_tensors(source, name, module, report)
            continue
        translation = foreign.translate(model, source, name)
        if translation is not None:
            assignments += _translated(source, translation, name, module, report)
        elif isinstance(source, ObjectGraph):
            assignments += _from_graph(source, name, module, report)
        else:
            raise CheckpointError(
                f"{report.path} is a file of PyTorch, and nothing is known of how {name} of "
                f"{type(model).__name__} is named there. Give the model a method foreign_weights."
            )
    if averages:
        report.origin = f"{report.origin}, averages".removeprefix(", ")
    if not assignments:
        raise CheckpointError(_nothing(report, source))
    for variable, value in assignments:
        values.assign(variable, value)
    return report


def _targets(model: Any, wanted: list[str]) -> dict[str, Any]:
    if wanted == [ALL]:
        return {ALL: model}
    items = module_items(model)
    unknown = [name for name in wanted if name not in items]
    if not wanted or unknown:
        asked = f"unknown module {unknown[0]!r}." if unknown else "no module is named."
        known = [*items, ALL]
        raise CheckpointError(
            f"{asked}{hyperparams.did_you_mean(unknown[0] if unknown else '', known)} The modules "
            f"are those of {type(model).__name__}.checkpoint_items: {', '.join(items) or 'none'}."
        )
    return {name: items[name] for name in wanted}


def _weights(module: Any, prefix: str) -> dict[str, tuple[str, Any]]:
    """Name within the module to the name to show and the weight."""
    found = names.named_variables(module)
    weights = {name: n.variable for name, n in found.items() if n.kind == names.WEIGHT}
    if not weights:
        raise CheckpointError(f"{prefix} has no weights yet: build the model before loading")
    return {name: (_shown(prefix, name), variable) for name, variable in weights.items()}


def _shown(module: str, name: str) -> str:
    return name if module == ALL else f"{module}/{name}"


def _from_tensors(
    source: NamedTensors, module_name: str, module: Any, report: LoadReport
) -> list[Assignment]:
    weights = _weights(module, module_name)
    stored = _stored_names(source, module_name, list(weights))
    assignments = []
    for name, (shown, variable) in weights.items():
        shape = tuple(variable.shape)
        key = stored.get(name)
        if key is None:
            report.missing.append(Row(shown, shape))
            continue
        value = source.tensors[key]
        row = Row(shown, shape, value.shape, key)
        if value.shape != shape:
            report.skipped.append(row)
            continue
        report.loaded.append(row)
        dtype = keras.backend.standardize_dtype(variable.dtype)
        assignments.append((variable, values.fit_dtype(value, dtype, shown)))
    for name, key in stored.items():
        if name not in weights:
            shape = source.tensors[key].shape
            report.unused.append(Row(_shown(module_name, name), None, shape, key))
    return assignments


def _stored_names(source: NamedTensors, module: str, wanted: list[str]) -> Mapping[str, str]:
    """Name within the module to stored name, for what the file holds of the module."""
    if module in source.modules:
        return source.modules[module]
    layers = [item for item in source.layers if item == "model"] or list(source.layers)
    if module == ALL:
        prefixes = [f"{item}/" for item in layers] or ["", "model/"]
    else:
        items = layers or ["model"]
        prefixes = [f"{module}/", *(f"{item}/{module}/" for item in items)]
        prefixes += [] if source.layers else [""]
    # A file that says nothing of its structure: the beginning under which most names are found.
    under = {prefix: _under(source, prefix) for prefix in prefixes}
    return max(under.values(), key=lambda found: sum(name in found for name in wanted))


def _under(source: NamedTensors, prefix: str) -> dict[str, str]:
    return {
        name[len(prefix) :]: stored
        for name, stored in source.names.items()
        if name.startswith(prefix)
    }


def _averaged(source: Source, path: str) -> Source:
    """The source with moving averages in place of its weights."""
    if isinstance(source, ObjectGraph) and source.slots(AVERAGE):
        return source.with_slots(AVERAGE)
    if isinstance(source, StateDict) and source.has_averages:
        return source.averaged()
    raise CheckpointError(
        f"{path} holds no moving averages of weights beside the weights: load it without asking "
        "for them."
    )


def _translated(
    source: Union[ObjectGraph, StateDict],
    translation: Translation,
    module_name: str,
    module: Any,
    report: LoadReport,
) -> list[Assignment]:
    """Loads what a model's own table finds; the whole module, or nothing."""
    weights = _weights(module, module_name)
    tensors = source.bundle if isinstance(source, ObjectGraph) else source
    origins = translation.origins
    absent = {name: shown for name, shown in weights.items() if name not in origins}
    lost = [
        f"{shown} {tuple(variable.shape)}"
        for name, (shown, variable) in absent.items()
        if name not in translation.optional
    ]
    shapes = {key: tensors.shape(key) for key in translation.scope}
    unused = translation.unused()
    if lost:
        raise CheckpointError(
            f"{report.path} ({translation.origin}) does not fit {module_name}: {len(lost)} of "
            f"{len(weights)} weights have no value in it: {_some(lost)}\n"
            f"  Of the file, not used: {_some([f'{key} {shapes[key]}' for key in unused])}\n"
            "  Compare the model's config with that of the model that was saved, or name only the "
            "modules that are alike."
        )
    assignments = []
    for name, (shown, variable) in weights.items():
        if name in absent:
            report.missing.append(Row(shown, tuple(variable.shape)))
            continue
        origin = origins[name]
        shape = origin.shape(tensors.shape(origin.key))
        row = Row(shown, tuple(variable.shape), shape, origin.key)
        if shape != tuple(variable.shape):
            report.skipped.append(row)
            continue
        report.loaded.append(row)
        value = origin.convert(tensors.read(origin.key))
        dtype = keras.backend.standardize_dtype(variable.dtype)
        assignments.append((variable, values.fit_dtype(value, dtype, shown)))
    report.unused += [Row(key, None, shapes[key], key) for key in unused]
    report.origin = translation.origin
    report.notes += translation.notes
    if translation.notes:
        told = "\n  ".join(translation.notes)
        warnings.warn(f"{report.path} wants other settings:\n  {told}", CheckpointWarning, 4)
    return assignments


def _from_graph(
    graph: ObjectGraph, module_name: str, module: Any, report: LoadReport
) -> list[Assignment]:
    weights = _weights(module, module_name)
    node = _find(graph, module_name)
    if node is None:
        children = [name for name in graph.nodes[0].children if graph.variables(graph.find(name))]
        raise CheckpointError(
            f"{graph.bundle.prefix} holds no {module_name}."
            + hyperparams.did_you_mean(module_name, children)
        )
    match = GraphMatch(graph, node, module)
    lost = [
        f"{shown} {tuple(variable.shape)}"
        for shown, variable in weights.values()
        if id(variable) not in match.nodes and id(variable) not in match.other_shape
    ]
    if lost:
        unused = [f"{path} {shape}" for path, shape in match.unused(node).items()]
        raise CheckpointError(
            f"cannot match {module_name} with the TensorFlow checkpoint {graph.bundle.prefix}: "
            "names differ, and order and shapes do not settle it.\n"
            f"  Of the model, {len(lost)} of {len(weights)} weights found no value: "
            f"{_some(lost)}\n"
            f"  Of the checkpoint, not used: {_some(unused)}\n"
            "  Name only the modules that are alike, or rename the model's attributes as in the "
            "checkpoint."
        )
    assignments = []
    for shown, variable in weights.values():
        is_loaded = id(variable) in match.nodes
        index = (match.nodes if is_loaded else match.other_shape)[id(variable)]
        key = graph.nodes[index].key
        row = Row(
            shown,
            tuple(variable.shape),
            graph.shape(index),
            key,
            by_order=id(variable) in match.by_order,
        )
        (report.loaded if is_loaded else report.skipped).append(row)
        if is_loaded:
            dtype = keras.backend.standardize_dtype(variable.dtype)
            value = graph.bundle.read(key)
            assignments.append((variable, values.fit_dtype(value, dtype, shown)))
    for path, shape in match.unused(node).items():
        report.unused.append(Row(_shown(module_name, path), None, shape, path))
    return assignments


def _find(graph: ObjectGraph, module: str) -> Optional[int]:
    """The node of a module: below the root, as the existing system saves it, or in the model."""
    if module == ALL:
        places: list[tuple[str, ...]] = [("model",), ()]
    else:
        places = [(module,), (f"_{module}",), ("model", module), ("model", f"_{module}")]
    for place in places:
        node = graph.find(*place)
        if node >= 0 and graph.variables(node):
            return node
    return None


def _some(texts: list[str]) -> str:
    more = f", ... ({len(texts) - _SHOWN} more)" if len(texts) > _SHOWN else ""
    return (", ".join(texts[:_SHOWN]) or "nothing") + more


def _nothing(report: LoadReport, source: Source) -> str:
    if report.skipped:
        row = report.skipped[0]
        why = f"all shapes differ, as {row.name}: {row.shape} here and {row.file_shape} there."
    else:
        here = [row.name for row in report.missing]
        there = list(source.names) if isinstance(source, NamedTensors) else []
        why = f"no name agrees. Here: {_some(here)}. There: {_some(there)}."
    return f"nothing could be loaded from {report.path} into {', '.join(report.modules)}: {why}"
