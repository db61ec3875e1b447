"""What tables need to know of our own models: names of weights, and the layers that own them."""

from collections.abc import Mapping
from typing import Any

from hortus.core.checkpoints import names
from hortus.core.checkpoints.layout import module_items

ALL = "all"
LAYERS = "layers/"


def weight_paths(module: Any) -> list[str]:
    """The names of a module's weights within it."""
    found = names.named_variables(module)
    return [path for path, named in found.items() if named.kind == names.WEIGHT]


def rest(model: Any) -> list[str]:
    """Names of the weights of a model that are in none of its modules."""
    inside = {id(weight) for item in module_items(model).values() for weight in item.weights}
    return [
        path
        for path, named in names.named_variables(model).items()
        if named.kind == names.WEIGHT and id(named.variable) not in inside
    ]


def part_of(layer: Any, path: str) -> Any:
    """What a path of attributes, keys and indices leads to; None if there is nothing."""
    for part in path.split("/") if path else ():
        if isinstance(layer, Mapping):
            layer = layer.get(part)
        else:
            layer = layer[int(part)] if part.isdigit() else getattr(layer, part, None)
        if layer is None:
            return None
    return layer


def by_class(table: Mapping[str, Any], item: Any, default: Any = None) -> Any:
    """The entry of the item's class, or of the nearest parent that has one."""
    return next((table[c.__name__] for c in type(item).__mro__ if c.__name__ in table), default)
