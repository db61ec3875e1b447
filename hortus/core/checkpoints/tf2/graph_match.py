"""Finds the weights of a model in a TensorFlow 2 checkpoint where no table says which is which.

Our own models have tables (`foreign.translate`). For others, the names on the way to a weight are
compared. The rules, from sure to less sure:

1. An attribute of the same name is the same thing (underscores before it do not count).
2. The layers of a Functional model are the same one by one, in order, if there are as many of them
   and each pair holds variables of the same names and shapes. This is not done if layers that look
   alike were made in another order than the file lists them, as in branches.
3. What is then left in one object is the same in order if names and shapes of the variables agree
   all along. This is not done if two of the objects look alike, as two convolutions of one shape
   do, wherever they are: their order would be a guess.

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
    """An object that holds variables, by leaf name, and what they look like."""

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
        if not looks or not self._are_listed_as_made(units, looks):
            return
        if looks == [collections.Counter(self._weight_leaves(layer)) for layer in layers]:
            for unit, layer in zip(units, layers, strict=True):
                self._match(unit, layer, is_ordered=True)

    def _are_listed_as_made(self, units: list[int], looks: list[Any]) -> bool:
        """Whether layers that look alike come in the order of their numbers, where they have any.

        The file lists layers by their depth in the graph, which is another order in branches.
        """
        for index, (unit, look) in enumerate(zip(units, looks, strict=True)):
            for other, its_look in zip(units[:index], looks[:index], strict=True):
                if look != its_look:
                    continue
                kind, number = self._made_as(unit)
                if self._made_as(other) > (kind, number) and self._made_as(other)[0] == kind:
                    return False
        return True

    def _made_as(self, unit: int) -> tuple[str, int]:
        """Kind and number of a layer: ("conv2d", 3) if its variables are of `conv2d_3`."""
        below = next(iter(self._graph.below(unit).values()), unit)
        name = self._graph.nodes[below].name.partition("/")[0]
        kind, _, number = name.rpartition("_")
        return (kind, int(number)) if kind and number.isdigit() else (name, 0)

    def _match_rest(self, node: int, item: Any) -> None:
        """Rule 3, for all that is still open in `item`."""
        old = list(self._node_owners(node))
        new = list(self._weight_owners(item))
        if not new or [o.signature for o in old] != [n.signature for n in new]:
            return
        alike = collections.Counter(o.signature for o in old)
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
        stack = [root]
        while stack:
            index = stack.pop()
            children = self._graph.nodes[index].children
            leaves = {
                _RENAMED.get(leaf, leaf).lstrip("_"): child
                for leaf, child in children.items()
                if self._graph.nodes[child].key and child not in self._taken
            }
            if leaves:
                shapes = {leaf: self._graph.shape(child) for leaf, child in leaves.items()}
                yield _Owner(leaves, shapes)
            fresh = [child for child in _in_order(children) if child not in seen]
            seen.update(fresh)
            stack += reversed(fresh)

    def _weight_owners(self, item: Any) -> Iterator[_Owner]:
        """The objects of `item` with weights that are still open, in the order of its weights."""
        paths = {id(n.variable): path for path, n in names.named_variables(item).items()}
        owners: dict[str, _Owner] = {}
        for weight in self._open_weights(item):
            place, _, leaf = paths[id(weight)].rpartition("/")
            owner = owners.setdefault(place, _Owner({}, {}))
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


def _in_order(children: dict[str, int]) -> list[int]:
    """Children in order; the layers of a graph once, by their numbers, and before the rest."""
    rest = [name for name in children if not name.startswith((_UNIT, _LAYER))]
    return [children[name] for name in _unit_names(children) + rest]


def _unit_names(children: dict[str, int]) -> list[str]:
    numbers = {name: name.removeprefix(_UNIT) for name in children if name.startswith(_UNIT)}
    found = [name for name, number in numbers.items() if number.isdigit()]
    return sorted(found, key=lambda name: int(numbers[name]))
