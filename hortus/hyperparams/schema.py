"""What an editor and a reader want to know of a config: descriptions and a JSON schema."""

import ast
import dataclasses
import functools
import inspect
import sys
import textwrap
from typing import Any, Optional

from hortus.hyperparams.base_config import Config
from hortus.hyperparams.oneof import OneOfConfig


@functools.lru_cache(maxsize=None)
def _module_docs(module_name: str) -> dict[str, dict[str, str]]:
    """Class name -> field name -> the text that stands below the field."""
    module = sys.modules.get(module_name)
    try:
        tree = ast.parse(inspect.getsource(module)) if module else ast.Module([], [])
    except (OSError, TypeError, SyntaxError):
        return {}  # a class made in a console has no source
    docs: dict[str, dict[str, str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            fields = docs.setdefault(node.name, {})
            for statement, below in zip(node.body, node.body[1:]):
                if (
                    isinstance(statement, ast.AnnAssign)
                    and isinstance(statement.target, ast.Name)
                    and isinstance(below, ast.Expr)
                    and isinstance(below.value, ast.Constant)
                    and isinstance(below.value.value, str)
                ):
                    text = textwrap.dedent(below.value.value).strip()
                    fields[statement.target.id] = " ".join(text.split())
    return docs


def describe_field(cls: type[Config], name: str) -> str:
    """The description of a field: the text below it, and why it has no effect if it has none."""
    text = ""
    for base in cls.__mro__:
        text = _module_docs(base.__module__).get(base.__name__, {}).get(name, "")
        if text or base is Config:
            break
    spec = cls._fields().get(name)
    if spec is not None and spec.inert:
        text = f"{text} No effect: {spec.inert}.".strip()
    return text


def summary(cls: type) -> str:
    """The first line of a class' docstring; empty for the one that dataclasses make up."""
    doc = cls.__dict__.get("__doc__") or ""
    return "" if doc.startswith(f"{cls.__name__}(") else doc.strip().split("\n")[0]


def json_schema(config: Config, title: Optional[str] = None) -> dict[str, Any]:
    """A JSON schema (2020-12) of the files that override `config`, with its values as defaults."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title or type(config).__name__,
        **_object_schema(config),
    }


def class_schema(cls: type[Config]) -> dict[str, Any]:
    """The schema of a config class, with the class' own defaults."""
    return _object_schema(cls())


def _object_schema(config: Config) -> dict[str, Any]:
    cls = type(config)
    properties = {}
    for name, spec in cls._fields().items():
        value = config.__dict__[name]
        if isinstance(config, OneOfConfig) and name == "type":
            entry: dict[str, Any] = {"enum": [*cls.choices(), None]}
        elif isinstance(value, Config):
            entry = {"anyOf": [_object_schema(value), {"type": "null"}]}
        else:
            entry = spec.type.json_schema()
        description = describe_field(cls, name)
        if description:
            entry = {"description": description, **entry}
        if spec.inert:
            entry["deprecated"] = True
        if not isinstance(value, Config):
            entry["default"] = _jsonable(value)
        properties[name] = entry
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if summary(cls):
        schema["description"] = summary(cls)
    schema["additionalProperties"] = "_open" in vars(cls)
    return schema


def _jsonable(value: Any) -> Any:
    if isinstance(value, Config):
        return value.as_dict()
    if isinstance(value, (list, tuple)):
        return [_jsonable(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _jsonable(item) for key, item in value.items()}
    if dataclasses.is_dataclass(value) or not isinstance(
        value, (str, int, float, bool, type(None))
    ):
        return str(value)
    return value
