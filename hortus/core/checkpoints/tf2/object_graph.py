"""The object graph of a TensorFlow 2 checkpoint: which tensor is which attribute of what."""

import collections
import dataclasses
from collections.abc import Iterator
from typing import Optional

import numpy as np

from hortus.core.checkpoints.errors import CorruptCheckpointError
from hortus.core.checkpoints.tf2.tensor_bundle import TensorBundle, parse_fields

KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"
_VALUE = "VARIABLE_VALUE"


@dataclasses.dataclass
class Node:
    """An object: its children by attribute name, in order, and its tensor's key if it is one.

    `name` is what the variable was called when it was made, as `conv2d_3/kernel`: counted up in
    the order in which layers were made. `slots` are, for an optimizer, those that it keeps beside
    weights: name of the slot to `{node of the weight: node of the slot}`.
    """

    children: dict[str, int] = dataclasses.field(default_factory=dict)
    key: str = ""
    name: str = ""
    slots: dict[str, dict[int, int]] = dataclasses.field(default_factory=dict)


class ObjectGraph:
    """The objects of a checkpoint; node 0 is the root. Several names may lead to one node.

    Args:
        bundle: the tensors.
        nodes: the objects, where they are known; by default those that the bundle tells of.
    """

    def __init__(self, bundle: TensorBundle, nodes: Optional[list[Node]] = None) -> None:
        self.bundle = bundle
        self.nodes = _read(bundle) if nodes is None else nodes

    def find(self, *path: str) -> int:
        """The node that attributes lead to from the root, or -1."""
        node = 0
        for part in path:
            node = self.nodes[node].children.get(part, -1)
            if node < 0:
                return -1
        return node

    def below(self, root: int) -> dict[str, int]:
        """The shortest path from `root` to each variable below it, to its node."""
        found: dict[str, int] = {}
        queue = collections.deque([("", root)])
        seen = {root}
        while queue:
            path, index = queue.popleft()
            if self.nodes[index].key:
                found[path] = index
            for name, child in self.nodes[index].children.items():
                if child not in seen:
                    seen.add(child)
                    queue.append((f"{path}/{name}" if path else name, child))
        return found

    def variables(self, root: int = 0) -> dict[str, str]:
        """The shortest path from `root` to each variable below it, to its key."""
        return {path: self.nodes[index].key for path, index in self.below(root).items()}

    def slots(self, name: str) -> dict[int, int]:
        """The slots of a name, of all optimizers: node of the weight to node of the slot."""
        return {
            weight: slot
            for node in self.nodes
            for weight, slot in node.slots.get(name, {}).items()
            if self.nodes[slot].key
        }

    def with_slots(self, name: str) -> "ObjectGraph":
        """The same objects with the values of a slot as those of the weights that have one."""
        slots = self.slots(name)
        nodes = [
            dataclasses.replace(node, key=self.nodes[slots[index]].key) if index in slots else node
            for index, node in enumerate(self.nodes)
        ]
        return ObjectGraph(self.bundle, nodes)

    def shape(self, index: int) -> tuple[int, ...]:
        """The shape of the variable that a node is."""
        return self.bundle.shape(self.nodes[index].key)


def read_object_graph(prefix: str) -> dict[str, np.ndarray]:
    """Reads all variables of a TensorFlow 2 checkpoint.

    Args:
        prefix: path without `.index`.

    Returns:
        The path of attributes to each variable, as `model/backbone/stem/kernel`, to its value. In
        a checkpoint without an object graph the keys are the variables' names.

    Raises:
        CheckpointError: it cannot be read.
    """
    bundle = TensorBundle(prefix)
    if KEY not in bundle:
        return {key: bundle.read(key) for key in bundle.keys() if bundle.is_numeric(key)}  # noqa: SIM118
    paths = ObjectGraph(bundle).variables()
    return {path: bundle.read(key) for path, key in paths.items() if bundle.is_numeric(key)}


def _read(bundle: TensorBundle) -> list[Node]:
    try:
        graph = parse_fields(bundle.read_text(KEY))
        nodes = []
        for raw in graph.get(1, []):
            message, node = parse_fields(raw), Node()
            for child in map(parse_fields, message.get(1, [])):
                node.children[child[2][0].decode()] = child.get(1, [0])[0]
            for attribute in map(parse_fields, message.get(2, [])):
                key = attribute.get(3, [b""])[0].decode()
                if attribute.get(1, [b""])[0].decode() == _VALUE and key in bundle:
                    node.key = key
                    node.name = attribute.get(2, [b""])[0].decode()
            for slot in map(parse_fields, message.get(3, [])):
                of_name = node.slots.setdefault(slot[2][0].decode(), {})
                of_name[slot.get(1, [0])[0]] = slot.get(3, [0])[0]
            nodes.append(node)
    except (IndexError, KeyError, UnicodeDecodeError, AttributeError) as error:
        raise CorruptCheckpointError(f"{bundle.prefix}: its object graph is damaged.") from error
    if not nodes or any(index >= len(nodes) for node in nodes for index in _references(node)):
        raise CorruptCheckpointError(f"{bundle.prefix}: its object graph is damaged.")
    return nodes


def _references(node: Node) -> Iterator[int]:
    yield from node.children.values()
    for slots in node.slots.values():
        yield from slots
        yield from slots.values()
