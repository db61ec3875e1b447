"""What can be named in a config or on the command line, with a line about each.

What configs choose is read from config classes, without a numerical library.
"""

import fnmatch
import importlib
from collections.abc import Callable, Iterator
from typing import Optional, TypeVar

from hortus import hyperparams
from hortus.cli.errors import CommandError

Row = tuple[str, ...]
_T = TypeVar("_T")


def rows(kind: str, pattern: Optional[str] = None) -> list[Row]:
    """Returns (name, description) of everything of a kind, sorted by name.

    Of experiments also whether they train now, from which weights, and what was measured.

    Raises:
        CommandError: no name matches the pattern.
    """
    found = sorted(set(KINDS[kind]()))
    if pattern is None:
        return found
    # A plain word means "with this in its name".
    glob = pattern if any(char in pattern for char in "*?[") else f"*{pattern}*"
    matching = [row for row in found if fnmatch.fnmatchcase(row[0].lower(), glob.lower())]
    if not matching:
        near = hyperparams.did_you_mean(pattern, [row[0] for row in found])
        raise CommandError(f"no {kind} match {pattern!r}.{near}")
    return matching


def _experiments() -> Iterator[Row]:
    from hortus.core import exp_factory, init_weights, task_factory
    from hortus.vision.experiments import recipes

    for name in exp_factory.exp_names():
        task = exp_factory.get_exp_config(name).task
        problem = init_weights.problem(task.init_checkpoint)
        if not task_factory.has_task(type(task)):
            state = "no task yet"
        else:
            state = "trains" if problem is None else "trains from other weights only"
        weights = f"from {_short(task.init_checkpoint)}" if task.init_checkpoint else "from scratch"
        yield (
            name,
            _first_line(exp_factory.get_exp_factory(name).__doc__),
            state,
            weights if problem is None else f"{weights} (cannot be had)",
            "; ".join(recipes.results(name)) or "not measured",
        )


def _short(path: str) -> str:
    """A path with its last two parts only."""
    scheme, found, rest = path.rpartition("://")
    parts = rest.split("/")
    return path if len(parts) <= 2 else f"{scheme}{found}.../{'/'.join(parts[-2:])}"


def _backbones() -> Iterator[Row]:
    from hortus.vision.configs import backbones, backbones_3d

    yield from _choices(backbones.Backbone)
    yield from _choices(backbones_3d.Backbone3D)


def _decoders() -> Iterator[Row]:
    from hortus.vision.configs import decoders

    yield from _choices(decoders.Decoder)


def _heads() -> Iterator[Row]:
    from hortus.vision.configs import heads

    own = tuple(value for value in vars(heads).values() if isinstance(value, type))
    known = tuple(cls for cls in own if cls.__module__ == heads.__name__)
    for cls in _subclasses(hyperparams.Config):
        # One that is derived from a head of ours may have any name.
        if cls.__name__.endswith("Head") or issubclass(cls, known):
            yield cls.__name__, _summary(cls)


def _tasks() -> Iterator[Row]:
    from hortus.core import config_definitions as cfg

    for cls in _subclasses(cfg.TaskConfig):
        if cls().model is not None:  # without one it is a base for others
            yield cls.__name__, _summary(cls)


def _models() -> Iterator[Row]:
    yield from _parts_of_tasks("model")


def _losses() -> Iterator[Row]:
    yield from _parts_of_tasks("losses")


def _parts_of_tasks(field: str) -> Iterator[Row]:
    """The classes of the configs that tasks have in a field."""
    from hortus.core import config_definitions as cfg

    for cls in _subclasses(cfg.TaskConfig):
        part = cls().get(field)
        if isinstance(part, hyperparams.Config):
            kind = type(part)
            yield f"{kind.__module__.rpartition('.')[2]}.{kind.__name__}", _summary(kind)


def _metrics() -> Iterator[Row]:
    from hortus.core import metric_factory

    yield from metric_factory.registered_metrics().items()


def _augmentations() -> Iterator[Row]:
    from hortus.vision.configs import common

    yield from _choices(common.Augmentation)


def _file_types() -> Iterator[Row]:
    from hortus import registry
    from hortus.vision.dataloaders import file_types

    for name, compression in file_types.RECORDS.items():
        packed = f", packed with {compression}" if compression else ""
        yield name, f"all tasks: files of records{packed}"
    for known in (file_types.CLASSIFICATION, file_types.DETECTION, file_types.SEGMENTATION):
        known.load()
        task = known.noun.rpartition(" ")[2]
        for name, read in known.items():
            yield name, f"{task}: {registry.summary(read)}"


def _optimizers() -> Iterator[Row]:
    from hortus import optimization

    yield from _choices(optimization.OptimizerConfig)


def _schedules() -> Iterator[Row]:
    from hortus import optimization

    yield from _choices(optimization.LrConfig)


def _warmups() -> Iterator[Row]:
    from hortus import optimization

    yield from _choices(optimization.WarmupConfig)


def _actions() -> Iterator[Row]:
    from hortus.core import actions

    yield from actions.registered_actions().items()


def _summaries() -> Iterator[Row]:
    importlib.import_module("hortus.vision.summary_manager")  # it registers
    from hortus.core import summary_factory

    yield from summary_factory.registered_summaries().items()


def _sections() -> Iterator[Row]:
    from hortus.reports import page

    yield from page.registered_sections().items()


def _formats() -> Iterator[Row]:
    from hortus import registry
    from hortus.vision.serving import formats

    for name, form in formats.FORMATS.items():
        yield name, registry.summary(form)
    for alias, name in formats.ALIASES.items():
        yield alias, f"Another name of {name}."


def _commands() -> Iterator[Row]:
    from hortus.cli import commands

    yield from commands.described().items()


KINDS: dict[str, Callable[[], Iterator[Row]]] = {
    "experiments": _experiments,
    "backbones": _backbones,
    "decoders": _decoders,
    "heads": _heads,
    "models": _models,
    "tasks": _tasks,
    "losses": _losses,
    "metrics": _metrics,
    "augmentations": _augmentations,
    "file_types": _file_types,
    "optimizers": _optimizers,
    "schedules": _schedules,
    "warmups": _warmups,
    "actions": _actions,
    "summaries": _summaries,
    "sections": _sections,
    "formats": _formats,
    "commands": _commands,
}
"""What can be listed."""


def _choices(one_of: type[hyperparams.OneOfConfig]) -> Iterator[Row]:
    """The branches of a choice, those that subclasses of a user's add included."""
    for cls in (one_of, *_subclasses(one_of)):
        default = cls()
        for name in cls.choices():
            branch = default.get(name)
            yield name, _summary(type(branch)) if branch is not None else ""


def _subclasses(cls: type[_T]) -> Iterator[type[_T]]:
    for subclass in cls.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


def _summary(cls: type) -> str:
    """The first line of a class' own docstring, not of the one that dataclasses make up."""
    doc = cls.__dict__.get("__doc__") or ""
    return "" if doc.startswith(f"{cls.__name__}(") else _first_line(doc)


def _first_line(doc: Optional[str]) -> str:
    return (doc or "").strip().split("\n")[0]
