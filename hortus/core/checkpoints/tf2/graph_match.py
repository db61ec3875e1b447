"""Finds the weights of a model in the object graph of a TensorFlow 2 checkpoint.

The models of the existing system and those of hortus are built by different code, so that the names
on the way to a weight agree in some places and not in others. The rules, from sure to less sure:

1. An attribute of the same name is the same thing (underscores before it do not count).
2. The layers of a Functional model are the same one by one, in order, if there are as many of them
   and each pair holds variables of the same names and shapes.
3. What is then left in one object is the same in order if names and shapes of the variables agree
   all along. This is not done if two of the objects held as attributes look alike, as two
   convolutions of one shape do: their order would be a guess.

Everything else is left unmatched.
"""

import collections
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import keras

from hortus.core.checkpoints import names
from hortus.core.checkpoints.tf2.object_graph import ObjectGraph

# Renamed by Keras between its versions 2 and 3.
_RENAMED = {"depthwise_kernel": "kernel"}
_UNIT = "layer_with_weights-"
_LAYER = "layer-"

Signature = tuple[tuple[str, tuple[int, ...]], ...]


@dataclasses.dataclass
class _Owner:
    """An object that holds variables: where it is and what they look like, by leaf name."""

    parent: Any
    name: str
    leaves: dict[str, Any]
    shapes: dict[str, tuple[int, ...]]

    @property
    def signature(self) -> Signature:
        return tuple(sorted(self.shapes.items()))


class GraphMatch:
    """The weights of `module` that were found below `node`.

    Attributes:
        nodes: `id(variable)` to the node that holds its value.
        by_order: ids of those that were found by order, not by name.
        other_shape: `id(variable)` to the node of the same name and another shape.
    """

    def __init__(self, graph: ObjectGraph, node: int, module: Any) -> None:
        self.nodes: dict[int, int] = {}
        self.by_order: set[int] = set()
        self.other_shape: dict[int, int] = {}
        self._graph = graph
        self._wanted = {id(w) for w in module.weights}
        self._taken: set[int] = set()
        self._match(node, module, is_ordered=False)

    def unused(self, root: int) -> dict[str, tuple[int, ...]]:
        """Path and shape of each variable below `root` that no weight was found for."""
        used = {self._graph.nodes[node].key for node in self._taken}
        paths = self._graph.variables(root).items()
        return {path: self._graph.bundle.shape(key) for path, key in paths if key not in used}

    def _match(self, node: int, item: Any, is_ordered: bool) -> None:
        if isinstance(item, keras.Variable):
            self._pair(node, item, is_ordered)
            return
        graph_layers: Sequence[Any] = ()
        for parts, child in names.children(item, {}):
            if isinstance(child, names.GraphLayers):
                graph_layers = child.layers
            elif self._open_weights(child):
                target = self._child(node, parts[-1])
                if target >= 0:
                    self._match(target, child, is_ordered)
        self._match_layers(node, [layer for layer in graph_layers if self._open_weights(layer)])
        self._match_rest(node, item)

    def _match_layers(self, node: int, layers: list[Any]) -> None:
        units = [unit for unit in self._units(node) if self._open_nodes(unit)]
        looks = [collections.Counter(self._node_leaves(unit)) for unit in units]
        if looks and looks == [collections.Counter(self._weight_leaves(layer)) for layer in layers]:
            for unit, layer in zip(units, layers, strict=True):
                self._match(unit, layer, is_ordered=True)

    def _match_rest(self, node: int, item: Any) -> None:
        """Rule 3, for all that is still open in `item`."""
        old = list(self._node_owners(node))
        new = list(self._weight_owners(item))
        if not new or [o.signature for o in old] != [n.signature for n in new]:
            return
        alike = collections.Counter((o.parent, o.signature) for o in old if not _is_index(o.name))
        if any(count > 1 for count in alike.values()):
            return
        for theirs, ours in zip(old, new, strict=True):
            for leaf, variable in ours.leaves.items():
                self._pair(theirs.leaves[leaf], variable, is_ordered=True)

    def _pair(self, node: int, variable: Any, is_ordered: bool) -> None:
        if id(variable) not in self._wanted or self._is_settled(variable):
            return
        if not self._graph.nodes[node].key or node in self._taken:
            return
        self._taken.add(node)
        if self._graph.shape(node) != tuple(variable.shape):
            self.other_shape[id(variable)] = node
            return
        self.nodes[id(variable)] = node
        if is_ordered:
            self.by_order.add(id(variable))

    def _child(self, node: int, name: str) -> int:
        children = self._graph.nodes[node].children
        for theirs, index in children.items():
            if _RENAMED.get(theirs, theirs).lstrip("_") == name.lstrip("_"):
                return index
        return -1

    def _units(self, node: int) -> list[int]:
        """The layers with weights of a Functional model, in the order of its graph."""
        children = self._graph.nodes[node].children
        return [children[name] for name in _unit_names(children)]

    def _node_owners(self, root: int) -> Iterator[_Owner]:
        """The objects below `root` with variables that nothing was found for, in order."""
        seen = {root}
        stack = [(root, -1, "")]
        while stack:
            index, parent, name = stack.pop()
            children = self._graph.nodes[index].children
            leaves = {
                _RENAMED.get(leaf, leaf).lstrip("_"): child
                for leaf, child in children.items()
                if self._graph.nodes[child].key and child not in self._taken
            }
            if leaves:
                shapes = {leaf: self._graph.shape(child) for leaf, child in leaves.items()}
                yield _Owner(parent, name, leaves, shapes)
            inner = [(child, index, part) for part, child in _in_order(children)]
            fresh = [entry for entry in inner if entry[0] not in seen]
            seen.update(child for child, _, _ in fresh)
            stack += reversed(fresh)

    def _weight_owners(self, item: Any) -> Iterator[_Owner]:
        """The objects of `item` with weights that are still open, in the order of its weights."""
        paths = {id(n.variable): path for path, n in names.named_variables(item).items()}
        owners: dict[str, _Owner] = {}
        for weight in self._open_weights(item):
            place, _, leaf = paths[id(weight)].rpartition("/")
            parent, _, name = place.rpartition("/")
            owner = owners.setdefault(place, _Owner(parent, name, {}, {}))
            owner.leaves[leaf] = weight
            owner.shapes[leaf] = tuple(weight.shape)
        yield from owners.values()

    def _open_weights(self, item: Any) -> list[Any]:
        if isinstance(item, keras.layers.Layer):
            held = item.weights
        else:
            held = [named.variable for named in names.named_variables(item).values()]
        return [w for w in held if id(w) in self._wanted and not self._is_settled(w)]

    def _is_settled(self, weight: Any) -> bool:
        return id(weight) in self.nodes or id(weight) in self.other_shape

    def _open_nodes(self, root: int) -> bool:
        return next(self._node_owners(root), None) is not None

    def _node_leaves(self, root: int) -> Iterator[tuple[str, tuple[int, ...]]]:
        for owner in self._node_owners(root):
            yield from owner.shapes.items()

    def _weight_leaves(self, item: Any) -> Iterator[tuple[str, tuple[int, ...]]]:
        for owner in self._weight_owners(item):
            yield from owner.shapes.items()


def _in_order(children: dict[str, int]) -> list[tuple[str, int]]:
    """Children in order; the layers of a graph once, by their numbers, and before the rest."""
    rest = [name for name in children if not name.startswith((_UNIT, _LAYER))]
    return [(name, children[name]) for name in _unit_names(children) + rest]


def _unit_names(children: dict[str, int]) -> list[str]:
    numbers = {name: name.removeprefix(_UNIT) for name in children if name.startswith(_UNIT)}
    found = [name for name, number in numbers.items() if number.isdigit()]
    return sorted(found, key=lambda name: int(numbers[name]))


def _is_index(name: str) -> bool:
    return name.isdigit() or name.startswith(_UNIT)
