"""Structural names of variables: how a variable is reached from its owner, not how it is called.

`backbone/stem/kernel` says: attribute `backbone`, its attribute `stem`, its variable `kernel`. Such
a name is the same in every build of a model, in every process and on every engine, whereas the
names that Keras counts up (`conv2d_17`) depend on what was built before. The rules:

- An attribute gives its name, without leading underscores; an element of a list its index; an
  element of a dict its key.
- A layer of a Functional or Sequential model that no attribute holds is `layers/<name>` if its
  author named it, otherwise `layers/<class>-<n>`, counted within its class and model.
- A metric in a list gives the name that its author gave it.
- A slot of an optimizer is `<slot>/<name of the weight>`, so that it finds its weight again when
  the order of weights has changed.
- What can be reached in several ways has the shortest name; ties go to the alphabet.
"""

import collections
import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Optional

import keras

from hortus.core.checkpoints import optimizer_slots

WEIGHT, OPTIMIZER, METRIC, SEED, VARIABLE = "weight", "optimizer", "metric", "seed", "variable"
# Holds what the config says, and no state: restoring it would undo a change of the config.
SETTING = "setting"

Path = tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class NamedVariable:
    """A variable and what it is to its owner: weight, optimizer, metric, seed or variable."""

    variable: Any
    kind: str


def named_variables(
    root: Any, weight_names: Optional[Mapping[int, str]] = None
) -> dict[str, NamedVariable]:
    """All variables of a Keras object, or of a list or dict of them, under structural names.

    Args:
        root: Layer, Model, Optimizer, Metric, SeedGenerator, Variable, a list, tuple or dict of
            those, or an object that holds them in attributes and has `variables`.
        weight_names: `id(weight)` to the name after which the optimizer's slots are named.

    Returns:
        Names, each of parts joined by "/", to variables; a variable is named once. The name of a
        lone Variable is empty.
    """
    found: dict[str, NamedVariable] = {}
    state = _state(root)
    for path, variable, kind in _walk(root, weight_names or {}):
        is_state = state.pop(id(variable), None) is not None
        # An attribute may lead to what is not state, such as a teacher hidden from tracking; but
        # Keras lists metrics separately, and those of `compile` with them.
        if kind != SETTING and (is_state or kind == METRIC):
            found[_unique("/".join(path), found)] = NamedVariable(variable, kind)
    # What Keras counts as state although no attribute leads to it, as in a set of layers.
    for index, (variable, kind) in enumerate(state.values()):
        found[_unique(f"other/{index}", found)] = NamedVariable(variable, kind)
    return found


def is_keras_object(item: Any) -> bool:
    """Whether `item` itself is something that holds variables, or one."""
    kinds = (
        keras.Variable,
        keras.layers.Layer,
        keras.optimizers.Optimizer,
        keras.metrics.Metric,
        keras.random.SeedGenerator,
    )
    return isinstance(item, kinds)


def has_auto_name(item: Any) -> bool:
    """Whether `item.name` looks counted up by Keras from its class: `conv2d`, `conv2d_17`."""
    stem, _, number = item.name.rpartition("_")
    name = stem if number.isdigit() and stem else item.name
    plain = name.replace("_", "").lower()
    return any(plain == cls.__name__.replace("_", "").lower() for cls in type(item).__mro__)


def _walk(root: Any, weight_names: Mapping[int, str]) -> Iterator[tuple[Path, Any, str]]:
    """Breadth first, so that the shortest name comes first; each object once."""
    queue: collections.deque[tuple[Path, Any, str]] = collections.deque([((), root, VARIABLE)])
    # Holds the objects, as the id of one that is gone may be given to another.
    seen: dict[int, Any] = {}
    while queue:
        path, item, kind = queue.popleft()
        if id(item) in seen:
            continue
        seen[id(item)] = item
        if isinstance(item, keras.Variable):
            yield path, item, kind
            continue
        kind = _kind(item, kind)
        for parts, child in children(item, weight_names, is_root=not path):
            is_setting = kind == OPTIMIZER and parts == ("learning_rate",)
            queue.append(((*path, *parts), child, SETTING if is_setting else kind))


def children(
    item: Any, weight_names: Mapping[int, str], is_root: bool = False
) -> Iterator[tuple[Path, Any]]:
    """What `item` holds, each with the parts that its name adds. See `named_variables`."""
    if isinstance(item, keras.random.SeedGenerator):
        yield ("state",), item.state
    elif isinstance(item, keras.optimizers.Optimizer):
        yield from optimizer_slots.children(item, weight_names)
    elif isinstance(item, keras.layers.Layer):
        for name, child in _attributes(item, _base_attributes(item)):
            # A compiled model's optimizer is an item of its own, or none.
            if not isinstance(child, keras.optimizers.Optimizer):
                yield (name,), child
        if isinstance(item, keras.Model):
            yield ("layers",), GraphLayers(item.layers)
    elif isinstance(item, keras.metrics.Metric):
        for name, child in _attributes(item, _base_attributes(item)):
            yield (name,), child
    elif isinstance(item, GraphLayers):
        yield from item.named()
    elif isinstance(item, Mapping):
        for key in sorted(item, key=str):
            yield (_part(str(key)),), item[key]
    elif isinstance(item, (list, tuple)):
        yield from _elements(item)
    elif is_root and hasattr(item, "__dict__"):
        for name, child in _attributes(item, frozenset()):
            yield (name,), child


class GraphLayers:
    """The layers of a model's graph, one step further away than its attributes."""

    def __init__(self, layers: Sequence[Any]):
        self.layers = layers

    def named(self) -> Iterator[tuple[Path, Any]]:
        counts: collections.Counter[str] = collections.Counter()
        for layer in self.layers:
            if has_auto_name(layer):
                kind = _snake_case(type(layer).__name__)
                yield (f"{kind}-{counts[kind]}",), layer
                counts[kind] += 1
            else:
                yield (_part(layer.name),), layer


def _elements(items: Sequence[Any]) -> Iterator[tuple[Path, Any]]:
    names = collections.Counter(i.name for i in items if isinstance(i, keras.metrics.Metric))
    for index, item in enumerate(items):
        is_named = isinstance(item, keras.metrics.Metric) and not has_auto_name(item)
        if is_named and names[item.name] == 1:
            yield (_part(item.name),), item
        else:
            yield (str(index),), item


def _attributes(item: Any, ignored: frozenset[str]) -> Iterator[tuple[str, Any]]:
    """The attributes that may hold variables, sorted, without leading underscores."""
    attributes = {name: value for name, value in vars(item).items() if name not in ignored}
    shown = {name: name.lstrip("_") or name for name in attributes}
    counts = collections.Counter(shown.values())
    for name in sorted(attributes, key=lambda name: (shown[name], name)):
        value = attributes[name]
        if is_keras_object(value) or isinstance(value, (list, tuple, Mapping)):
            yield shown[name] if counts[shown[name]] == 1 else name, value


def _state(root: Any) -> dict[int, tuple[Any, str]]:
    """What Keras takes for the state of `root`, by id, with its kind."""
    if isinstance(root, keras.Variable):
        return {id(root): (root, VARIABLE)}
    if isinstance(root, keras.layers.Layer):
        return {id(v): (v, SEED) for v in root.variables} | {
            id(v): (v, WEIGHT) for v in root.weights
        }
    if isinstance(root, keras.random.SeedGenerator):
        return {id(root.state): (root.state, SEED)}
    if isinstance(root, Mapping):
        root = list(root.values())
    if isinstance(root, (list, tuple)):
        return {key: value for item in root for key, value in _state(item).items()}
    return {id(v): (v, _kind(root, VARIABLE)) for v in getattr(root, "variables", ())}


def _kind(item: Any, inherited: str) -> str:
    if isinstance(item, keras.random.SeedGenerator):
        return SEED
    if isinstance(item, keras.metrics.Metric):
        return METRIC
    if isinstance(item, keras.optimizers.Optimizer):
        return OPTIMIZER
    if isinstance(item, keras.layers.Layer):
        return WEIGHT
    return inherited


def _base_attributes(item: Any) -> frozenset[str]:
    if isinstance(item, keras.metrics.Metric):
        return _attributes_of_base("metric")
    return _attributes_of_base("model" if isinstance(item, keras.Model) else "layer")


@functools.cache
def _attributes_of_base(kind: str) -> frozenset[str]:
    """What Keras itself keeps in every such object: its own lists of layers, variables, losses.

    Found by looking at empty objects, so none of Keras' private names is written down here. They
    are named, as an unnamed one would count Keras' counters up.
    """
    name = "hortus_empty"
    if kind == "metric":
        return frozenset(vars(keras.metrics.Metric(name=name)))
    if kind == "layer":
        return frozenset(vars(keras.layers.Layer(name=name)))
    inputs = keras.Input((1,), name=name)
    outputs = keras.layers.Identity(name=f"{name}_identity")(inputs)
    graph = keras.Model(inputs, outputs, name=name)
    return frozenset(vars(graph)) | frozenset(vars(keras.Sequential(name=name)))


def _snake_case(name: str) -> str:
    text = ""
    for before, letter in zip(" " + name, name, strict=False):
        text += "_" if letter.isupper() and before.islower() else ""
        text += letter.lower()
    return text


def _part(text: str) -> str:
    return text.replace("/", ".")


def _unique(name: str, taken: Mapping[str, Any]) -> str:
    """`name`, or with a number if it is taken, which only slashes in authors' names can cause."""
    unique, number = name, 1
    while unique in taken:
        unique, number = f"{name}-{number}", number + 1
    return unique
