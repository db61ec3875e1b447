"""Showing and checking the config of an experiment."""

from collections.abc import Iterator, Sequence
from typing import Any

from hortus import hyperparams
from hortus.cli import output
from hortus.core import config_definitions as cfg
from hortus.core import exp_factory, exp_parser, init_weights, task_factory
from hortus.hyperparams.diff import ABSENT
from hortus.hyperparams.overrides import dump_yaml


def show(
    experiment: str,
    config_files: Sequence[str],
    overrides: Sequence[str],
    *,
    origins: bool,
    diff: bool,
    form: str,
) -> None:
    """Prints an experiment's config, or what differs, as yaml, json or a tree."""
    config = _parse(experiment, config_files, overrides)
    if diff:
        if config_files or overrides:
            base, name = exp_factory.get_exp_config(experiment), f"experiment {experiment}"
        else:
            base, name = _class_defaults(config), "the defaults"
        _show_differences(config, base, name, origins, form)
    elif form == "json":
        _show_json(config, origins)
    elif form == "tree":
        head = ("", experiment, type(config).__name__, "")
        output.tree([head, *_tree(config, origins)])
    else:
        output.yaml("".join(_yaml(config, origins)))


def schema(experiment: str) -> None:
    """Prints the JSON schema of an experiment's override files."""
    config = exp_factory.get_exp_config(experiment)
    output.json(_dump_json(hyperparams.json_schema(config, title=experiment)))


def validate(experiment: str, config_files: Sequence[str], overrides: Sequence[str]) -> None:
    """Checks files and overrides; prints one line when all is well."""
    config = _parse(experiment, config_files, overrides)
    config.validate_for_run()
    init_weights.check(config)
    changed = len(_differences(config, exp_factory.get_exp_config(experiment)))
    note = "" if task_factory.has_task(type(config.task)) else "; there is no task for it yet"
    print(f"{experiment}: valid, {changed} value{'' if changed == 1 else 's'} changed{note}")


def _parse(
    experiment: str, config_files: Sequence[str], overrides: Sequence[str]
) -> cfg.ExperimentConfig:
    return exp_parser.parse_config(
        exp_parser.ParseConfigOptions(
            experiment=experiment, config_file=config_files, params_override=overrides
        )
    )


def _class_defaults(config: cfg.ExperimentConfig) -> cfg.ExperimentConfig:
    """A config of the same classes that nobody has changed."""
    return type(config)(
        task=type(config.task)(), trainer=type(config.trainer)(), runtime=type(config.runtime)()
    )


# ---- differences ----------------------------------------------------------------------------


def _differences(
    config: cfg.ExperimentConfig, base: cfg.ExperimentConfig
) -> list[hyperparams.Difference]:
    """What was set otherwise. The other values of a branch that is newly chosen are no news."""
    found = []
    for difference in hyperparams.diff(config, base):
        is_default = difference.origin is None or str(difference.origin) == "default"
        if difference.old is not ABSENT or not is_default:
            found.append(difference)
    return [one for one in found if one.new is not ABSENT]


def _show_differences(
    config: cfg.ExperimentConfig, base: cfg.ExperimentConfig, name: str, origins: bool, form: str
) -> None:
    differences = _differences(config, base)
    if form == "json":
        rows = [
            {"path": one.path, "old": _old(one), "new": one.new, "origin": str(one.origin)}
            for one in differences
        ]
        output.json(_dump_json(rows))
        return
    notes = {}
    for one in differences:
        note = "" if one.old is ABSENT else f"was {_scalar(one.old)}"
        if origins:
            note = f"{note}; {one.origin}" if note else str(one.origin)
        notes[one.path] = note
    if form == "tree":
        paths = [("", one.path, _scalar(one.new), notes[one.path]) for one in differences]
        output.tree(paths or [("", f"nothing differs from {name}", "", "")])
    elif not differences:
        output.yaml(f"# nothing differs from {name}\n{{}}\n")
    else:
        output.yaml(f"# what differs from {name}\n" + "".join(_nested(config, notes)))


def _old(difference: hyperparams.Difference) -> Any:
    return None if difference.old is ABSENT else difference.old


def _nested(
    config: hyperparams.Config, notes: dict[str, str], path: str = "", depth: int = 0
) -> Iterator[str]:
    """YAML of those values whose path is in `notes`, inside their parents."""
    for name in config.as_dict():
        value, where = config.get(name), f"{path}{name}"
        if isinstance(value, hyperparams.Config):
            inner = list(_nested(value, notes, f"{where}.", depth + 1))
            if inner:
                yield f"{'  ' * depth}{name}:\n"
                yield from inner
        elif where in notes:
            yield from _yaml_value(name, value, notes[where], depth)
        elif any(known.startswith(f"{where}[") for known in notes):
            yield from _yaml_value(name, value, "", depth)


# ---- the whole config -----------------------------------------------------------------------


def _yaml(config: hyperparams.Config, origins: bool, depth: int = 0) -> Iterator[str]:
    for name in config.as_dict():
        value = config.get(name)
        if isinstance(value, hyperparams.Config) and value.as_dict():
            yield f"{'  ' * depth}{name}:\n"
            yield from _yaml(value, origins, depth + 1)
        else:
            note = str(config.origin(name)) if origins else ""
            yield from _yaml_value(name, value, note, depth)


def _yaml_value(name: str, value: Any, note: str, depth: int) -> Iterator[str]:
    """The lines of `name: value`, the first one with a comment."""
    lines = dump_yaml({name: _plain(value)}).splitlines()
    if note:
        lines[0] += f"  # {note}"
    for line in lines:
        yield f"{'  ' * depth}{line}\n"


def _show_json(config: cfg.ExperimentConfig, origins: bool) -> None:
    if origins:
        values = {
            leaf.path: {"value": _plain(leaf.value), "origin": str(leaf.origin)}
            for leaf in hyperparams.walk(config)
        }
        output.json(_dump_json(values))
    else:
        output.json(_dump_json(config.as_dict()))


def _tree(
    config: hyperparams.Config, origins: bool, guide: str = ""
) -> Iterator[tuple[str, str, str, str]]:
    """Lines of (guide, name, value, note); the note explains the field, or tells its origin."""
    names = list(config.as_dict())
    for name in names:
        is_last = name == names[-1]
        value = config.get(name)
        note = _explained(type(config), name)
        if origins:
            note = f"[{config.origin(name)}] {note}".rstrip()
        branch = guide + ("└─ " if is_last else "├─ ")
        below = guide + ("   " if is_last else "│  ")
        if isinstance(value, hyperparams.Config):
            yield branch, name, type(value).__name__, note
            yield from _tree(value, origins, below)
        else:
            yield branch, name, _scalar(value), note


def _explained(cls: type[hyperparams.Config], name: str) -> str:
    """What a field means and, unless the text tells it, what its numbers may be."""
    if name not in cls._fields():  # added by a config that is not strict
        return ""
    text, bounds = hyperparams.describe_field(cls, name), hyperparams.describe_bounds(cls, name)
    return text if bounds.removeprefix("each ") in text else f"{text} ({bounds})".lstrip()


def _plain(value: Any) -> Any:
    if isinstance(value, hyperparams.Config):
        return value.as_dict()
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def _scalar(value: Any) -> str:
    """A value on one line, as JSON would write it."""
    return _dump_json(_plain(value), indent=None)


def _dump_json(value: Any, indent: int | None = 2) -> str:
    import json

    return json.dumps(value, indent=indent, ensure_ascii=False, default=str)
