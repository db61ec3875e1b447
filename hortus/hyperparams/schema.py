"""What an editor and a reader want to know of a config: descriptions and a JSON schema."""

import ast
import functools
import inspect
import itertools
import re
import sys
from typing import Any, Optional

from hortus.hyperparams import types
from hortus.hyperparams.base_config import Config
from hortus.hyperparams.oneof import OneOfConfig

_JSON_TYPES = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    type(None): "null",
}


# ---- descriptions ---------------------------------------------------------------------------


def describe_field(cls: type[Config], name: str) -> str:
    """The description of a field: the text below it, and why it has no effect if it has none."""
    texts = (_docs(base.__module__).get((base.__qualname__, name), "") for base in cls.__mro__)
    text = next(filter(None, texts), "")
    spec = cls._fields().get(name)
    if spec is not None and spec.inert:
        text = f"{text} No effect: {spec.inert}.".strip()
    return text


def describe_bounds(cls: type[Config], name: str) -> str:
    """What the numbers of a field may be, such as `1 or more`; empty for a field without bounds."""
    return _bounds_in(cls._fields()[name].type)


def _bounds_in(kind: types.Type) -> str:
    if isinstance(kind, types.Number):
        return kind.bounds.words()
    if isinstance(kind, (types.List, types.Dict)):
        words = _bounds_in(kind.item)
        return f"each {words}" if words else ""
    several: tuple[types.Type, ...] = ()
    if isinstance(kind, types.FixedTuple):
        several = kind.items
    elif isinstance(kind, types.Either):
        several = kind.options
    found = list(dict.fromkeys(filter(None, map(_bounds_in, several))))
    if len(found) == 1 and isinstance(kind, types.FixedTuple):
        return f"each {found[0]}"
    return ", or ".join(found)


def summary(cls: type) -> str:
    """The first line of a class' docstring; empty for the one that dataclasses make up."""
    doc = cls.__dict__.get("__doc__") or ""
    return "" if doc.startswith(f"{cls.__name__}(") else doc.strip().split("\n")[0]


@functools.cache
def _docs(module_name: str) -> dict[tuple[str, str], str]:
    """(class, field) -> the text that stands below the field, for all classes of a module."""
    if module_name == "builtins":
        return {}
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module_name]))
    except (KeyError, OSError, TypeError, SyntaxError):
        return {}  # a class made in a console has no source
    docs: dict[tuple[str, str], str] = {}
    _collect_docs(tree, "", docs)
    return docs


def _collect_docs(node: ast.AST, prefix: str, docs: dict[tuple[str, str], str]) -> None:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            _collect_docs(child, f"{prefix}{child.name}.<locals>.", docs)
        elif isinstance(child, ast.ClassDef):
            name = f"{prefix}{child.name}"
            for statement, below in itertools.pairwise(child.body):
                if (
                    isinstance(statement, ast.AnnAssign)
                    and isinstance(statement.target, ast.Name)
                    and isinstance(below, ast.Expr)
                    and isinstance(below.value, ast.Constant)
                    and isinstance(below.value.value, str)
                ):
                    docs[name, statement.target.id] = " ".join(below.value.value.split())
            _collect_docs(child, f"{name}.", docs)


# ---- JSON schema ----------------------------------------------------------------------------


def json_schema(config: Config, title: Optional[str] = None) -> dict[str, Any]:
    """A JSON schema (2020-12) of the files that override `config`, with its values as defaults."""
    builder = _Builder()
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title or type(config).__name__,
        **builder.config(config),
        "type": "object",
    }
    if builder.definitions:
        schema["$defs"] = builder.definitions
    return schema


class _Builder:
    """Makes the schemas of configs and types; a class that a type names is defined once."""

    def __init__(self) -> None:
        self.definitions: dict[str, Any] = {}

    def config(self, config: Config) -> dict[str, Any]:
        cls = type(config)
        properties = {name: self._field(config, name) for name in cls._fields()}
        schema: dict[str, Any] = {"type": ["object", "null"], "properties": properties}
        if summary(cls):
            schema["description"] = summary(cls)
        schema["additionalProperties"] = cls is Config
        return schema

    def _field(self, config: Config, name: str) -> dict[str, Any]:
        cls, value = type(config), config.__dict__[name]
        spec = cls._fields()[name]
        if isinstance(config, OneOfConfig) and name == "type":
            entry: dict[str, Any] = {"enum": [*config.choices(), None]}
        elif isinstance(value, Config):
            entry = self._holding(value, spec.type)
        else:
            entry = self.of_type(spec.type)
            entry = entry if spec.empty is None else _or_null(entry)
        description = describe_field(cls, name)
        if description:
            entry["description"] = description
        if spec.inert:
            entry["deprecated"] = True
        if not isinstance(value, Config):
            entry["default"] = _jsonable(value)
        return entry

    def _holding(self, value: Config, kind: types.Type) -> dict[str, Any]:
        """The schema of a field that holds a config now, and can hold what its type allows."""
        schema = self.config(value)
        options = kind.options if isinstance(kind, types.Either) else ()
        others = [option for option in options if not option.accepts_exactly(value)]
        schemas = [self.of_type(option) for option in others if not option.accepts_exactly(None)]
        return {"anyOf": [schema, *schemas]} if schemas else schema

    def of_type(self, kind: types.Type) -> dict[str, Any]:
        if isinstance(kind, types.Scalar):
            return self._scalar(kind)
        if isinstance(kind, types.Nested):
            return self._reference(kind.cls)
        if isinstance(kind, types.List):
            return {"type": "array", "items": self.of_type(kind.item)}
        if isinstance(kind, types.FixedTuple):
            items = [self.of_type(item) for item in kind.items]
            return {"type": "array", "prefixItems": items, "minItems": len(items), "items": False}
        if isinstance(kind, types.Dict):
            return {"type": "object", "additionalProperties": self.of_type(kind.item)}
        if isinstance(kind, types.Either):
            return self._either(kind)
        return {}

    def _either(self, kind: types.Either) -> dict[str, Any]:
        options = [option for option in kind.options if not option.accepts_exactly(None)]
        schemas = [self.of_type(option) for option in options]
        schema = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
        return _or_null(schema) if len(options) < len(kind.options) else schema

    def _scalar(self, kind: types.Scalar) -> dict[str, Any]:
        if kind.choices:
            return {"enum": list(kind.choices)}
        if isinstance(kind, types.Number) and kind.is_ours:
            return {"type": _JSON_TYPES[kind.plain], **kind.bounds.schema()}
        if isinstance(kind.annotation, type) and kind.annotation in _JSON_TYPES:
            return {"type": _JSON_TYPES[kind.annotation]}
        import pydantic

        try:
            return kind.adapter.json_schema()
        except pydantic.errors.PydanticInvalidForJsonSchema:
            return {}

    def _reference(self, cls: type[Config]) -> dict[str, Any]:
        name = re.sub(r"[^\w.]", "", f"{cls.__module__}.{cls.__qualname__}")
        if name not in self.definitions:
            self.definitions[name] = {}  # so that a class that contains itself comes to an end
            self.definitions[name] = self.config(cls())
        return {"$ref": f"#/$defs/{name}"}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with null as one more value; in place, as an editor explains `anyOf` badly."""
    if "$ref" in schema or not schema:
        return schema  # a config may be null anyway
    if "const" in schema or not {"type", "enum"} & schema.keys():
        return {"anyOf": [*schema.get("anyOf", [schema]), {"type": "null"}]}
    schema = dict(schema)
    if "enum" in schema:
        schema["enum"] = [*schema["enum"], None]
    if "type" in schema:
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        schema["type"] = [*kinds, "null"]
    return schema


def _jsonable(value: Any) -> Any:
    if isinstance(value, Config):
        return value.as_dict()
    if isinstance(value, (list, tuple)):
        return [_jsonable(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _jsonable(item) for key, item in value.items()}
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)
