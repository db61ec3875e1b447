"""Applies the dialects' tables to a state dict and a model of ours."""

import re
from collections.abc import Mapping
from typing import Any, Optional

import keras

from hortus.core.checkpoints.errors import CheckpointError
from hortus.core.checkpoints.foreign import Convert, Origin, Translation, as_is
from hortus.core.checkpoints.layout import module_items
from hortus.core.checkpoints.state_dict import StateDict
from hortus.vision.weights import conventions
from hortus.vision.weights.ours import ALL, LAYERS, by_class, part_of, weight_paths
from hortus.vision.weights.pytorch import conversions
from hortus.vision.weights.pytorch.dialects import ATTENTION, DIALECTS, TENSORS, Dialect
from hortus.vision.weights.rules import Rules, fill

BACKBONE = "backbone"
_LOGITS = "layers/logits/"
# Where detectors and segmenters of torchvision keep their backbone.
_PREFIXES = ("", "backbone.body.", "backbone.features.", "backbone.", "encoder.", "features.")
_BLOCK = re.compile(r"(?:blocks\.(\d+)\.(\d+)|features\.(\d+)\.(\d+)\.block)\..*")
_LEAVES = {
    "gamma": "weight",
    "beta": "bias",
    "moving_mean": "running_mean",
    "moving_variance": "running_var",
    "kernel": "weight",
    "bias": "bias",
    "scale": "gamma",
}
# Counters that normalisation keeps there, and that nothing needs.
_IGNORED = ("num_batches_tracked",)

Origins = dict[str, Origin]


def translate(model: Any, source: StateDict, module: str) -> Optional[Translation]:
    """What a module of a model, or all of it, takes from a state dict.

    Returns:
        None where nothing is known of the backbone's class.

    Raises:
        CheckpointError: the names are of no known kind, or the module is not in such files.
    """
    backbone = module_items(model).get(BACKBONE, model)
    known = by_class(DIALECTS, backbone)
    if known is None:
        return None
    if module not in (BACKBONE, ALL) and backbone is not model:
        raise CheckpointError(
            f"{source.path} is a PyTorch file, of which only the backbone can be taken, and the "
            f"classes of a classifier; {module} is neither. Name the backbone in "
            "init_checkpoint_modules."
        )
    names, dialect, prefix = _recognize(source, known)
    if dialect is None:
        raise CheckpointError(
            f"{source.path} is a PyTorch file, but its names are of no {type(backbone).__name__} "
            f"that is known: {', '.join(source.keys()[:4])}, ... Known are those of "
            f"{', '.join(dict.fromkeys(d.name for d in known))}."
        )
    found = _backbone(backbone, names, dialect)
    # What detectors have besides their backbone is not to be accounted for.
    scope = [k for k in source.keys() if k.startswith(prefix) and not k.endswith(_IGNORED)]  # noqa: SIM118
    head = [path for path in weight_paths(backbone) if _is_head(backbone, path)]
    if module == ALL and backbone is not model:
        found = {f"{BACKBONE}/{path}": origin for path, origin in found.items()}
        found |= _logits(model, names, dialect)
        head = [f"{BACKBONE}/{path}" for path in head]
    else:
        logits = {key for name, key in names.items() if name.startswith(f"{dialect.logits}.")}
        scope = [key for key in scope if key not in logits]
    kind = f"{type(backbone).__name__} of PyTorch, as {dialect.name} names it"
    # Detectors and segmenters lack the layer between features and classes.
    optional = frozenset(head) if prefix else frozenset()
    told = conventions.notes(backbone, dialect.name, source.path)
    return Translation(found, tuple(scope), kind, told, optional)


def _recognize(
    source: StateDict, known: tuple[Dialect, ...]
) -> tuple[dict[str, str], Optional[Dialect], str]:
    """The names without what stands before the backbone's, each to that of the file; and that."""
    for prefix in _PREFIXES:
        names = {k[len(prefix) :]: k for k in source.keys() if k.startswith(prefix)}  # noqa: SIM118
        for candidate in (names, {f"features.{name}": key for name, key in names.items()}):
            for dialect in known:
                if any(name.startswith(f"{dialect.proof}.") for name in candidate):
                    return candidate, dialect, prefix
    return {}, None, ""


def _backbone(backbone: Any, names: Mapping[str, str], dialect: Dialect) -> Origins:
    roles = _roles(backbone)
    numbers = _numbers(roles, names)
    best: Origins = {}
    for rules in dialect.rules:
        found: Origins = {}
        for path in weight_paths(backbone):
            place = path.removeprefix(LAYERS)
            layer_name, _, inner = place.partition("/")
            role = roles.get(layer_name, layer_name)
            origin = _origin(
                backbone, path, f"{role}/{inner}", numbers.get(role, {}), names, rules, dialect
            )
            if origin is not None:
                found[path] = origin
        if len(found) > len(best):
            best = found
    return best


def _origin(
    backbone: Any,
    path: str,
    role: str,
    numbers: Mapping[str, int],
    names: Mapping[str, str],
    rules: Rules,
    dialect: Dialect,
) -> Optional[Origin]:
    tensor = TENSORS.get(dialect.name, {}).get(role)
    if tensor is not None:
        return Origin(names[tensor]) if tensor in names else None
    attention = re.fullmatch(r"block(\d+)/attention/(query|key|value|output)_(kernel|bias)", role)
    if attention:
        number, name, leaf = attention.groups()
        return _attention(backbone.num_heads, number, name, leaf, names, dialect)
    owner, _, leaf = role.rpartition("/")
    module = rules(owner, numbers)
    if module is None or leaf not in _LEAVES:
        return None
    key = f"{module}.{_LEAVES[leaf]}"
    if key not in names:
        return None
    return Origin(names[key], _conversion(_owner(backbone, path), leaf))


def _attention(
    heads: int, number: str, name: str, leaf: str, names: Mapping[str, str], dialect: Dialect
) -> Optional[Origin]:
    joined, after = ATTENTION[dialect.name]
    values = {"i": number, "leaf": {"kernel": "weight"}.get(leaf, leaf)}
    key = fill(after if name == "output" else joined, values)
    if key not in names:
        return None
    if name == "output":
        convert: Convert = conversions.FromHeads(heads) if leaf == "kernel" else as_is
    else:
        convert = conversions.Third(("query", "key", "value").index(name), heads)
    return Origin(names[key], convert)


def _logits(model: Any, names: Mapping[str, str], dialect: Dialect) -> Origins:
    found: Origins = {}
    for path in weight_paths(model):
        leaf = path.removeprefix(_LOGITS)
        key = f"{dialect.logits}.{_LEAVES.get(leaf, leaf)}"
        if path.startswith(_LOGITS) and key in names:
            found[path] = Origin(
                names[key], conversions.dense_kernel if leaf == "kernel" else as_is
            )
    return found


def _owner(backbone: Any, path: str) -> Any:
    layer_name, _, inner = path.removeprefix(LAYERS).rpartition("/")[0].partition("/")
    layers = {layer.name: layer for layer in backbone.layers}
    return part_of(layers[layer_name], inner)


def _conversion(layer: Any, leaf: str) -> Convert:
    if leaf == "scale":
        return conversions.Ranked(layer.rank)
    if leaf != "kernel":
        return as_is
    if isinstance(layer, keras.layers.DepthwiseConv2D):
        return conversions.depthwise_kernel
    if isinstance(layer, keras.layers.Dense):
        return conversions.dense_kernel
    return conversions.kernel


def _is_head(backbone: Any, path: str) -> bool:
    return _roles(backbone).get(path.split("/")[1]) == "head"


def _roles(backbone: Any) -> dict[str, str]:
    """What each layer is, in backbones that are a list of blocks: our layer's name to its role.

    `stem` and `head` are the first and the last layer; blocks are counted and named by their kind.
    """
    kinds = {
        "ConvNormAct": "conv",
        "InvertedBottleneckBlock": "inverted",
        "UniversalInvertedBottleneckBlock": "universal",
    }
    if not {"MobileNet", "EfficientNet"} & {cls.__name__ for cls in type(backbone).__mro__}:
        return {}
    layers = [layer for layer in backbone.layers if layer.weights]
    roles = {layers[0].name: "stem", layers[-1].name: "head"}
    for index, layer in enumerate(layers[1:-1], 1):
        kind = kinds.get(type(layer).__name__, type(layer).__name__)
        if kind == "inverted":
            kind = "fused" if layer.depthwise is None else kind
            kind = "separable" if layer.expand is None else kind
            kind += "_se" if layer.squeeze_excitation is not None else ""
        roles[layer.name] = f"{kind}{index}"
    return roles


def _numbers(roles: Mapping[str, str], names: Mapping[str, str]) -> dict[str, dict[str, int]]:
    """What the rules may put in for each role: its place here, and its stage in the file."""
    found = filter(None, map(_BLOCK.fullmatch, names))
    places = sorted({(int(m[1] or m[3]), int(m[2] or m[4])) for m in found})
    numbers: dict[str, dict[str, int]] = {}
    for k, role in enumerate(role for role in roles.values() if role not in ("stem", "head")):
        numbers[role] = {"k": k}
        if k < len(places):
            numbers[role] |= {"s": places[k][0], "j": places[k][1]}
    numbers["head"] = {"k": len(roles) - 2, "top": max((s for s, _ in places), default=0) + 1}
    return numbers
