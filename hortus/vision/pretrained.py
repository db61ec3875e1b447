"""Weights of other programs as checkpoints of ours: what a file is, what it fits, its import.

    found = pretrained.inspect("mobilenet_v2-b0353104.pth")
    print(found.summary())
    pretrained.take_over("mobilenet_v2-b0353104.pth", "weights/mobilenet_v2")

`hortus weights` is a thin layer over these functions.
"""

import dataclasses
import hashlib
import json
import os
from typing import Any, Optional

import keras
import numpy as np

from hortus.core import atomic_file, checkpoints, exp_factory, task_factory
from hortus.core.checkpoints import foreign
from hortus.core.checkpoints.errors import CheckpointError
from hortus.core.checkpoints.sources import NamedTensors, open_source
from hortus.core.checkpoints.state_dict import StateDict
from hortus.core.checkpoints.tf2.object_graph import ObjectGraph
from hortus.vision import registry_imports
from hortus.vision.weights.catalog import KNOWN, KnownModel

_EXPERIMENT = "image_classification"
_STATISTICS = ("running_mean", "running_var", "num_batches_tracked")
# Candidates are built to be compared; a file of another size need not be.
_NEAR = 0.04
# float32 through many layers, on the kernels of another engine or machine.
_TOLERANCE = 1e-4


@dataclasses.dataclass
class Inspection:
    """What a file of weights is.

    Attributes:
        path: the file.
        kind: what it is, in words.
        tensors: number of tensors.
        parameters: number of trained numbers in them.
        names: of the first tensors.
        fits: known models whose every weight is in the file, best first.
    """

    path: str
    kind: str
    tensors: int
    parameters: int
    names: list[str]
    fits: list[KnownModel] = dataclasses.field(default_factory=list)

    def summary(self) -> str:
        """A few lines for a person."""
        millions = f"{self.parameters / 1e6:.2f} million parameters"
        lines = [
            f"{self.path}: {self.kind}, {self.tensors} tensors, {millions}",
            f"  begins with {', '.join(self.names)}",
        ]
        if self.fits:
            lines.append(f"  fits {', '.join(known.name for known in self.fits)}")
        elif self.kind.startswith("PyTorch"):
            lines.append("  fits no model of `hortus weights list` as a whole")
        return "\n".join(lines)


def inspect(path: str) -> Inspection:
    """Says what a file holds, and which known models it fits.

    Raises:
        CheckpointError: it cannot be read.
    """
    source = open_source(os.path.expanduser(os.fspath(path)))
    if isinstance(source, NamedTensors):
        shapes = {name: source.tensors[key].shape for name, key in source.names.items()}
        return _described(path, "hortus checkpoint or tensor file", shapes)
    if isinstance(source, ObjectGraph):
        shapes = {p: source.bundle.shape(key) for p, key in source.variables().items()}
        return _described(path, "TensorFlow checkpoint with its object graph", shapes)
    shapes = {key: source.shape(key) for key in source.keys()}  # noqa: SIM118
    found = _described(path, "PyTorch state dict", shapes)
    found.fits = [known for known in _near(found, shapes) if _fits(source, known, shapes)]
    return found


def choose(path: str, name: Optional[str] = None) -> KnownModel:
    """The known model that a PyTorch file is of.

    Args:
        path: the file.
        name: of the model, where the file alone does not tell.

    Raises:
        CheckpointError: none fits, or several do that want other settings.
    """
    if name is not None:
        if name not in KNOWN:
            raise CheckpointError(f"{name} is not known; `hortus weights list` shows what is.")
        return KNOWN[name]
    fits = inspect(path).fits
    converted = "tf_" in os.path.basename(path)
    fits = [known for known in fits if ("/tf_" in known.name) == converted] or fits
    if not fits:
        raise CheckpointError(f"{path} fits no model of `hortus weights list` as a whole.")
    if any(known.settings != fits[0].settings for known in fits):
        raise CheckpointError(
            f"{path} fits models that want other settings: {', '.join(k.name for k in fits)}. "
            "Say which it is."
        )
    return fits[0]


def build(known: KnownModel, classes: int = 1000) -> keras.Model:
    """A classifier of ours that computes as a known model does."""
    registry_imports.load_tasks()
    config = exp_factory.get_exp_config(_EXPERIMENT)
    size = known.preprocessing.size
    model = {**known.settings, "num_classes": classes, "input_size": [size, size, 3]}
    config.override({"task": {"model": model}})
    return task_factory.get_task(config.task).build_model()


def take_over(path: str, target: str, name: Optional[str] = None) -> list[str]:
    """Writes a checkpoint of ours from a PyTorch file, and beside it what belongs to it.

    Besides the checkpoint's folder `target` these are `<target>.yaml`, what an experiment has to
    set so that its model computes as the file's did, and `<target>.json`: where the weights come
    from, what they expect of images, and an answer by which `verify` can tell that all is well.

    Args:
        path: the file.
        target: folder of the checkpoint; replaced if it is there.
        name: of the known model, where the file alone does not tell.

    Returns:
        The paths that were written.
    """
    path, target = os.path.expanduser(os.fspath(path)), os.path.expanduser(os.fspath(target))
    known = choose(path, name)
    source = open_source(path)
    model = build(known, _classes(source))
    report = checkpoints.load_modules(model, path)
    if report.skipped or report.missing or report.unused:
        raise CheckpointError(f"{path} does not fit {known.name} as a whole: {report.summary()}")
    checkpoints.Checkpoint(model=model).save(target)
    told = {
        "source": os.path.abspath(path),
        "sha256": _sha256(path),
        "model": known.name,
        "licence": known.licence,
        "preprocessing": dataclasses.asdict(known.preprocessing),
        "classes": model.output_shape[-1],
        "answer": _answer(model, known)[:64],
    }
    settings = {"task": {"model": known.settings}}
    atomic_file.replace(f"{target}.json", (json.dumps(told, indent=2) + "\n").encode())
    atomic_file.replace(f"{target}.yaml", _yaml(settings, known, path).encode())
    return [target, f"{target}.yaml", f"{target}.json"]


def verify(target: str) -> float:
    """Loads a checkpoint that `take_over` wrote, and compares its answer with the one then.

    Returns:
        The largest difference, relative to the largest answer.

    Raises:
        CheckpointError: there is no such checkpoint, or its answer is another one.
    """
    target = os.path.expanduser(os.fspath(target))
    try:
        with open(f"{target}.json", encoding="utf-8") as file:
            told = json.load(file)
        known, expected = KNOWN[told["model"]], np.array(told["answer"])
    except (OSError, ValueError, KeyError) as error:
        raise CheckpointError(
            f"{target}.json is missing or damaged; `hortus weights import` writes it."
        ) from error
    model = build(known, told["classes"])
    checkpoints.load_modules(model, target)
    found = np.array(_answer(model, known)[:64])
    off = float(np.abs(found - expected).max() / np.abs(expected).max())
    if not off < _TOLERANCE:
        raise CheckpointError(
            f"{target} answers otherwise than when it was imported: by {off:.1e} of the largest "
            f"answer, where {_TOLERANCE:.0e} is rounding."
        )
    return off


def _described(path: str, kind: str, shapes: dict[str, tuple[int, ...]]) -> Inspection:
    sizes = {name: int(np.prod(shape, dtype=np.int64)) for name, shape in shapes.items()}
    trained = sum(size for name, size in sizes.items() if not name.endswith(_STATISTICS))
    return Inspection(os.fspath(path), kind, len(shapes), trained, list(shapes)[:3])


def _near(found: Inspection, shapes: dict[str, tuple[int, ...]]) -> list[KnownModel]:
    """The known models of about as many parameters, whatever the number of classes."""
    heads = [shape for name, shape in shapes.items() if name.endswith("weight") and len(shape) == 2]
    parameters = found.parameters
    if heads:
        parameters += (1000 - heads[-1][0]) * (heads[-1][1] + 1)
    return [k for k in KNOWN.values() if abs(parameters / (k.parameters * 1e6) - 1) < _NEAR]


def _fits(source: StateDict, known: KnownModel, shapes: dict[str, tuple[int, ...]]) -> bool:
    # Variables without values: only their names and shapes are looked at.
    with keras.StatelessScope(initialize_variables=False):
        model = build(known, _classes(source))
    keras.utils.clear_session()  # or Keras would give the variables values later
    try:
        translation = foreign.translate(model, source, "all")
    except CheckpointError:
        return False
    if translation is None or translation.unused():
        return False
    if known.name.split("/")[0] not in translation.origin:  # named as another program names it
        return False
    named = checkpoints.named_variables(model)
    weights = {n: tuple(v.variable.shape) for n, v in named.items() if v.kind == "weight"}
    return all(
        name in translation.origins
        and translation.origins[name].shape(shapes[translation.origins[name].key]) == shape
        for name, shape in weights.items()
    )


def _classes(source: Any) -> int:
    """How many classes a PyTorch classifier has: the rows of its last matrix."""
    if not isinstance(source, StateDict):
        raise CheckpointError("only files of PyTorch are imported; other checkpoints load directly")
    matrices = [k for k in source.keys() if k.endswith("weight") and len(source.shape(k)) == 2]  # noqa: SIM118
    return source.shape(matrices[-1])[0] if matrices else 1000


def _answer(model: keras.Model, known: KnownModel) -> list[float]:
    """What the model says to an image that a formula gives."""
    side = known.preprocessing.size
    i, j, c = np.meshgrid(*map(np.arange, (side, side, 3)), indexing="ij")
    image = np.cos(0.05 * i * (c + 1) + 0.11 * j) + 0.5 * np.sin(0.37 * i - 0.23 * j * (c + 1))
    logits = model(image[None].astype("float32"), training=False)
    return [float(x) for x in keras.ops.convert_to_numpy(logits)[0]]


def _sha256(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def _yaml(settings: dict[str, Any], known: KnownModel, path: str) -> str:
    """As a file for `--config_file`; JSON is YAML, but nobody likes to read it."""
    lines = [
        f"# What a model has to be for the weights of {os.path.basename(path)} ({known.name}).",
        f"# Images: mean {list(known.preprocessing.mean)}, std {list(known.preprocessing.std)} of",
        "# values from 0 to 1.",
    ]

    def write(item: dict[str, Any], depth: int) -> None:
        for key, value in item.items():
            if isinstance(value, dict):
                lines.append(f"{'  ' * depth}{key}:")
                write(value, depth + 1)
            else:
                lines.append(f"{'  ' * depth}{key}: {_scalar(value)}")

    write(settings, 0)
    return "\n".join(lines) + "\n"


def _scalar(value: Any) -> str:
    # YAML reads 1e-05 as text.
    return f"{value:.10f}".rstrip("0") if isinstance(value, float) and value else json.dumps(value)
