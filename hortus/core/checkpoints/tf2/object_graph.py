"""The object graph of a TensorFlow 2 checkpoint: which tensor is which attribute of what."""

import collections
import dataclasses

import numpy as np

from hortus.core.checkpoints.errors import CorruptCheckpointError
from hortus.core.checkpoints.tf2.tensor_bundle import TensorBundle, parse_fields

KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"
_VALUE = "VARIABLE_VALUE"


@dataclasses.dataclass
class Node:
    """An object: its children by attribute name, in order, and its tensor's key if it is one."""

    children: dict[str, int] = dataclasses.field(default_factory=dict)
    key: str = ""


class ObjectGraph:
    """The objects of a checkpoint; node 0 is the root. Several names may lead to one node."""

    def __init__(self, bundle: TensorBundle) -> None:
        self.bundle = bundle
        self.nodes = _read(bundle)

    def find(self, *path: str) -> int:
        """The node that attributes lead to from the root, or -1."""
        node = 0
        for part in path:
            node = self.nodes[node].children.get(part, -1)
            if node < 0:
                return -1
        return node

    def variables(self, root: int = 0) -> dict[str, str]:
        """The shortest path from `root` to each variable below it, to its key."""
        found: dict[str, str] = {}
        queue = collections.deque([("", root)])
        seen = {root}
        while queue:
            path, index = queue.popleft()
            node = self.nodes[index]
            if node.key:
                found[path] = node.key
            for name, child in node.children.items():
                if child not in seen:
                    seen.add(child)
                    queue.append((f"{path}/{name}" if path else name, child))
        return found

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
            nodes.append(node)
    except (IndexError, KeyError, UnicodeDecodeError, AttributeError) as error:
        raise CorruptCheckpointError(f"{bundle.prefix}: its object graph is damaged.") from error
    if not nodes or any(c >= len(nodes) for node in nodes for c in node.children.values()):
        raise CorruptCheckpointError(f"{bundle.prefix}: its object graph is damaged.")
    return nodes
