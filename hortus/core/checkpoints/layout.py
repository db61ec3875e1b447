"""What a checkpoint's items consist of: named variables, and objects with other state."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import keras

from hortus.core.checkpoints import names
from hortus.core.checkpoints.names import NamedVariable


@dataclasses.dataclass
class Layout:
    """The parts of all items.

    Attributes:
        kinds: name of each item to what it is; see `Manifest.items`.
        variables: name of each variable, which begins with its item's name.
        aliases: further names of variables that several items share, to the one in `variables`.
        modules: name of each module of the model to `{name within it: name in variables}`.
        states: path to each object with `get_state` and `set_state`.
        files: path to each object with `save_files` and `load_files`.
    """

    kinds: dict[str, str] = dataclasses.field(default_factory=dict)
    variables: dict[str, NamedVariable] = dataclasses.field(default_factory=dict)
    aliases: dict[str, str] = dataclasses.field(default_factory=dict)
    modules: dict[str, dict[str, str]] = dataclasses.field(default_factory=dict)
    states: dict[str, Any] = dataclasses.field(default_factory=dict)
    files: dict[str, Any] = dataclasses.field(default_factory=dict)

    def all_names(self) -> dict[str, list[str]]:
        """The names of each variable: the one in `variables` to itself and its aliases."""
        found = {name: [name] for name in self.variables}
        for alias, name in self.aliases.items():
            found[name].append(alias)
        return found


def lay_out(items: Mapping[str, Any]) -> Layout:
    """Finds the parts of `items`.

    Raises:
        TypeError: something is of no kind that can be saved.
    """
    layout = Layout()
    for item, value in items.items():
        layout.kinds[item] = _kind(value)
        for path, part in _others(item, value):
            if _has(part, "get_state", "set_state"):
                layout.states[path] = part
            if _has(part, "save_files", "load_files"):
                layout.files[path] = part
    by_id: dict[int, str] = {}
    # Optimizers come last, as their slots are named after the weights.
    for item in sorted(items, key=lambda name: _holds_optimizer(items[name])):
        for name, named in names.named_variables(items[item], by_id).items():
            full = f"{item}/{name}" if name else item
            first = by_id.setdefault(id(named.variable), full)
            if first == full:
                layout.variables[full] = named
            else:
                layout.aliases[full] = first
    # The model's modules are those that count, should another item have some of the same name.
    for item in sorted(items, key=lambda name: name != "model"):
        for module, value in module_items(items[item]).items():
            layout.modules.setdefault(module, _within(value, by_id))
    return layout


def module_items(model: Any) -> dict[str, Any]:
    """The modules that a model names in `checkpoint_items`, a dict or a method; {} without."""
    modules = getattr(model, "checkpoint_items", None)
    modules = modules() if callable(modules) else modules
    return {name: part for name, part in (modules or {}).items() if part is not None}


def _within(module: Any, by_id: Mapping[int, str]) -> dict[str, str]:
    return {
        name: by_id[id(named.variable)]
        for name, named in names.named_variables(module).items()
        if named.kind == names.WEIGHT and id(named.variable) in by_id
    }


def _others(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The objects that are not, or not only, variables, with their paths."""
    if isinstance(value, Mapping):
        for key in sorted(value, key=str):
            yield from _others(f"{path}/{key}", value[key])
    elif isinstance(value, (list, tuple)):
        for index, part in enumerate(value):
            yield from _others(f"{path}/{index}", part)
    elif _has(value, "get_state", "set_state") or _has(value, "save_files", "load_files"):
        yield path, value
    elif not names.is_keras_object(value) and not hasattr(value, "variables"):
        raise TypeError(
            f"checkpoint item {path} is a {type(value).__name__}, which cannot be saved. Expected "
            "a Keras Model, Layer, Optimizer, Metric, SeedGenerator or Variable, a list or dict of "
            "those, or an object with get_state and set_state, or save_files and load_files."
        )


def _has(value: Any, *methods: str) -> bool:
    return all(callable(getattr(value, method, None)) for method in methods)


def _kind(value: Any) -> str:
    kinds = {
        keras.Variable: "variable",
        keras.metrics.Metric: "metric",
        keras.layers.Layer: "layer",
        keras.optimizers.Optimizer: "optimizer",
        keras.random.SeedGenerator: "seed",
    }
    for cls, kind in kinds.items():
        if isinstance(value, cls):
            return kind
    if isinstance(value, (list, tuple, Mapping)) or hasattr(value, "variables"):
        return "group"
    return "files" if _has(value, "save_files", "load_files") else "state"


def _holds_optimizer(value: Any) -> bool:
    """Whether `value`, or something right inside of it, is an optimizer."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if not isinstance(value, (list, tuple)):
        is_plain = not names.is_keras_object(value) and hasattr(value, "__dict__")
        value = [value, *vars(value).values()] if is_plain else [value]
    return any(isinstance(part, keras.optimizers.Optimizer) for part in value)
