"""Applies the families' tables to a checkpoint and a model of ours."""

import collections
import re
from collections.abc import Iterator, Mapping
from typing import Any, Optional

from hortus.core.checkpoints.errors import CheckpointError
from hortus.core.checkpoints.foreign import Origin, Translation
from hortus.core.checkpoints.layout import module_items
from hortus.core.checkpoints.tf2.object_graph import ObjectGraph
from hortus.vision.weights.model_garden.blocks import BLOCKS, KINDS
from hortus.vision.weights.model_garden.families import FAMILIES, Counted, Named, Part
from hortus.vision.weights.model_garden.units import resolve, units
from hortus.vision.weights.ours import ALL, LAYERS, by_class, part_of, rest, weight_paths
from hortus.vision.weights.rules import Rules, compile_pattern

# Renamed by Keras between its versions 2 and 3.
_RENAMED_LEAVES = {"kernel": "depthwise_kernel"}

Nodes = dict[str, int]


def translate(model: Any, graph: ObjectGraph, module: str) -> Optional[Translation]:
    """What a module of a model, or all of it, takes from a checkpoint of the Model Garden.

    Returns:
        None where the class of the module, or of the model, is in no table.

    Raises:
        CheckpointError: the checkpoint has no such module.
    """
    items = module_items(model)
    wanted = items if module == ALL else {module: items.get(module)}
    if module != ALL and wanted[module] is None:
        wanted = {module: model}  # a backbone that is loaded by itself
    if not all(_family(item) for item in wanted.values()):
        return None
    found: Nodes = {}
    scope: Nodes = {}
    for name, item in wanted.items():
        root = _module_node(graph, name)
        prefix = f"{name}/" if module == ALL else ""
        found |= {f"{prefix}{ours}": node for ours, node in match(graph, root, item).items()}
        scope |= {f"{name}/{path}": node for path, node in graph.below(root).items()}
    if module == ALL and items:
        others = rest(model)
        if others:
            family = _family(model)
            root = graph.find("model")
            if family is None or root < 0:
                raise CheckpointError(
                    f"{graph.bundle.prefix} holds {', '.join(items)}, but not the rest of the "
                    f"model ({others[0]}). Name what to load in init_checkpoint_modules: "
                    f"{', '.join(items)}."
                )
            taken = set(scope.values())
            found |= match(graph, root, model, set(others))
            outside = {p: n for p, n in graph.below(root).items() if n not in taken}
            scope |= {f"model/{path}": node for path, node in outside.items()}
    origins = {ours: Origin(graph.nodes[node].key) for ours, node in found.items()}
    keys = dict.fromkeys(graph.nodes[node].key for node in scope.values())
    return Translation(origins, tuple(keys), "checkpoint of the Model Garden")


def match(graph: ObjectGraph, root: int, module: Any, only: Optional[set[str]] = None) -> Nodes:
    """The node of each weight of a module that is found below `root`, by the weight's name.

    Args:
        graph: of the checkpoint.
        root: the node of the module.
        module: of ours.
        only: names of the weights to look for; all by default.
    """
    family = _family(module)
    paths = [path for path in weight_paths(module) if only is None or path in only]
    if isinstance(family, Counted):
        return _match_counted(graph, root, module, family, paths)
    if isinstance(family, Named):
        return _fit(graph, root, paths, family.rules, family.numbers(module))
    return {}


def _family(module: Any) -> Any:
    return by_class(FAMILIES, module)


def _module_node(graph: ObjectGraph, name: str) -> int:
    for place in ((name,), (f"_{name}",), ("model", name), ("model", f"_{name}")):
        node = graph.find(*place)
        if node >= 0 and graph.below(node):
            return node
    holds = [child for child in graph.nodes[0].children if graph.below(graph.find(child))]
    raise CheckpointError(
        f"{graph.bundle.prefix} holds no {name}, but {', '.join(holds) or 'nothing'}."
    )


def _match_counted(
    graph: ObjectGraph, root: int, module: Any, family: Counted, paths: list[str]
) -> Nodes:
    theirs = collections.defaultdict(list)
    for unit in units(graph, root):
        theirs[unit.kind].append(unit)
    ours = collections.defaultdict(list)
    for path, layer in _layers_in_order(module, family, paths):
        kind = by_class(KINDS, layer, "")
        ours[kind].append((path, layer))
    for kind in ours:
        if len(ours[kind]) != len(theirs[kind]):
            raise CheckpointError(
                f"{graph.bundle.prefix} was written by another model: it has "
                f"{len(theirs[kind])} layers of kind {kind} where {module.name} "
                f"({type(module).__name__}) has {len(ours[kind])}. Look at the size, the depth and "
                "the levels in the config of the run that wrote it."
            )
    found: Nodes = {}
    for kind, layers in ours.items():
        for (prefix, layer), unit in zip(layers, theirs[kind], strict=True):
            inner = [p[len(prefix) + 1 :] for p in paths if p.startswith(f"{prefix}/")]
            rules = by_class(BLOCKS, layer, (_SAME,))
            nodes = _fit(graph, unit.node, inner, rules, {})
            found |= {f"{prefix}/{path}": node for path, node in nodes.items()}
    return found


_SAME = Rules({"{leaf:word}": "{leaf}"})


def _fit(
    graph: ObjectGraph,
    root: int,
    paths: list[str],
    alternatives: tuple[Rules, ...],
    numbers: Mapping[str, int],
) -> Nodes:
    """What the rules find of `paths` below `root`; of several tables, that which finds most."""
    best: Nodes = {}
    for rules in alternatives:
        found: Nodes = {}
        for path in paths:
            theirs = rules(path, numbers)
            node = -1 if theirs is None else _variable(graph, root, theirs)
            if node >= 0:
                found[path] = node
        if len(found) > len(best):
            best = found
    return best


def _variable(graph: ObjectGraph, root: int, path: str) -> int:
    owner, _, leaf = path.rpartition("/")
    place = resolve(graph, root, owner)
    if place < 0:
        return -1
    for name in (leaf, _RENAMED_LEAVES.get(leaf, leaf)):
        node = graph.nodes[place].children.get(name, -1)
        if node >= 0 and graph.nodes[node].key:
            return node
    return -1


def _layers_in_order(module: Any, family: Counted, paths: list[str]) -> Iterator[tuple[str, Any]]:
    """Our layers that are layers there, each with its path, as they are made there."""
    layers = {layer.name: layer for layer in module.layers}
    with_weights = dict.fromkeys(p.split("/")[1] for p in paths if p.startswith(LAYERS))
    for part in family.parts:
        pattern = compile_pattern(part.ours)
        matches = [m for m in map(pattern.fullmatch, with_weights) if m]
        for found in sorted(matches, key=_order):
            for path in _expand(part, layers[found.string]):
                place = f"{LAYERS}{found.string}" + (f"/{path}" if path else "")
                yield place, part_of(layers[found.string], path)


def _order(found: "re.Match[str]") -> list[tuple[bool, list[int]]]:
    """Numbers as numbers; of words, those of a stem first."""
    return [
        (
            not value.startswith("stem") and not value.isdigit(),
            list(map(int, re.findall(r"\d+", value))),
        )
        for value in found.groups()
    ]


def _expand(part: Part, layer: Any) -> Iterator[str]:
    for path in part.layers:
        held = part_of(layer, path.removesuffix("/*"))
        if path.endswith("/*"):
            yield from (f"{path[:-1]}{index}" for index in range(len(held or ())))
        elif held is not None:
            yield path
