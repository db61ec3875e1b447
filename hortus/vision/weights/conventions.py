"""What differs between a backbone of ours and the model that weights were trained in.

Shapes do not tell it: with another padding, epsilon or activation everything loads, and the answers
are wrong by a little.
"""

import os
from collections.abc import Iterable
from typing import Any

from hortus.vision.weights.catalog import KNOWN, KnownModel

_IDENTITY = ("model_id", "model_name")
# Backbones whose activations are a part of the architecture.
_OWN_ACTIVATIONS = ("mobilenet", "vit")


def candidates(backbone: Any, dialect: str, path: str) -> list[KnownModel]:
    """The known models that a file with such names can be of, for a backbone of ours.

    Args:
        backbone: of ours.
        dialect: who names tensors so, as in `pytorch.dialects`.
        path: of the file; a name with `tf_` in it says that TensorFlow's weights were converted.
    """
    converted = "tf_" in os.path.basename(path)
    of_kind = [
        known
        for known in KNOWN.values()
        if known.name.split("/")[0] in dialect and _is_of(known, backbone)
    ]
    named = [known for known in of_kind if ("/tf_" in known.name) == converted]
    return named if converted and named else of_kind


def notes(backbone: Any, dialect: str, path: str) -> tuple[str, ...]:
    """What to set otherwise for the weights of a file; () where all is as they want it."""
    found = [(differences(backbone, k), k) for k in candidates(backbone, dialect, path)]
    if not found or any(not lines for lines, _ in found):
        return ()
    lines, known = min(found, key=lambda pair: len(pair[0]))
    return tuple(f"{line} ({known.name})" for line in lines)


def differences(backbone: Any, known: KnownModel) -> list[str]:
    """Each setting of a backbone that is another than a known model's."""
    wanted = [
        (f"backbone.{known.backbone}.{field}", getattr(backbone, field, None), value)
        for field, value in known.fields.items()
        if field not in (*_IDENTITY, "representation_size", "se_ratio")
    ]
    norm_act = getattr(backbone, "norm_act", None)
    if norm_act is not None and known.norm:
        epsilon = known.norm["norm_epsilon"]
        wanted.append(("norm_activation.norm_epsilon", norm_act.norm_epsilon, epsilon))
        if known.backbone not in _OWN_ACTIVATIONS and "activation" in known.norm:
            activation = known.norm["activation"]
            wanted.append(("norm_activation.activation", norm_act.activation_name, activation))
    return [
        f"task.model.{name} is {ours!r}, but the weights were trained with {theirs!r}"
        for name, ours, theirs in wanted
        if ours is not None and not _is_same(ours, theirs)
    ]


def _is_of(known: KnownModel, backbone: Any) -> bool:
    if known.backbone not in _types(type(backbone)):
        return False
    return all(
        str(getattr(backbone, field, value)) == str(value)
        for field, value in known.fields.items()
        if field in _IDENTITY
    )


def _types(cls: type) -> Iterable[str]:
    names = {
        "ResNet": "resnet",
        "DilatedResNet": "resnet",
        "MobileNet": "mobilenet",
        "EfficientNet": "efficientnet",
        "VisionTransformer": "vit",
    }
    return [names[c.__name__] for c in cls.__mro__ if c.__name__ in names]


def _is_same(ours: Any, theirs: Any) -> bool:
    if {ours, theirs} == {"swish", "silu"}:
        return True
    if isinstance(theirs, float):
        return abs(float(ours) - theirs) < 1e-12
    return bool(ours == theirs)
