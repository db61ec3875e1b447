"""The layers of a Functional model in a Model Garden checkpoint, under their names."""

import dataclasses
import re
from typing import Optional

from hortus.core.checkpoints.tf2.object_graph import ObjectGraph

_UNIT = re.compile(r"layer_with_weights-\d+")
_COUNTED = re.compile(r"(.+?)_(\d+)")
# The same layer under another class, where statistics are taken over replicas.
_SYNCHRONIZED = "sync_"
_NAMED = "@"


@dataclasses.dataclass(frozen=True)
class Unit:
    """A layer with weights.

    Attributes:
        node: in the graph.
        name: the layer's, such as `conv2d_12`.
        kind: the name without its number: `conv2d`.
        number: by which Keras counted it, 0 for the first.
    """

    node: int
    name: str
    kind: str
    number: int


def units(graph: ObjectGraph, node: int) -> list[Unit]:
    """The layers of the Functional model `node`, in the order in which those of a kind were made.

    Models inside of it are left out.
    """
    found = []
    for name, child in graph.nodes[node].children.items():
        if _UNIT.fullmatch(name) and not any(map(_UNIT.fullmatch, graph.nodes[child].children)):
            unit = _unit(graph, child)
            if unit is not None:
                found.append(unit)
    return sorted(found, key=lambda unit: (unit.kind, unit.number))


def resolve(graph: ObjectGraph, node: int, path: str) -> int:
    """The node that `path` leads to from `node`, or -1. `@name` is a Functional model's layer."""
    for part in path.split("/") if path else ():
        if part.startswith(_NAMED):
            named = {unit.name: unit.node for unit in units(graph, node)}
            node = named.get(part[len(_NAMED) :], -1)
        else:
            node = graph.nodes[node].children.get(part, -1)
        if node < 0:
            return -1
    return node


def _unit(graph: ObjectGraph, node: int) -> Optional[Unit]:
    below = graph.below(node)
    if not below:
        return None
    name = graph.nodes[next(iter(below.values()))].name.partition("/")[0]
    counted = _COUNTED.fullmatch(name)
    kind, number = (counted[1], int(counted[2])) if counted else (name, 0)
    return Unit(node, name, kind.removeprefix(_SYNCHRONIZED), number)
