"""Writes the API reference from docstrings: one Markdown page per package, without importing any.

python docs/build_reference.py build/reference
"""

import argparse
import ast
import dataclasses
import inspect
import pathlib
import re
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGES = (
    "hortus.hyperparams",
    "hortus.optimization",
    "hortus.engine",
    "hortus.core",
    "hortus.vision",
    "hortus.vision.configs",
    "hortus.vision.dataloaders",
    "hortus.vision.modeling",
    "hortus.vision.ops",
    "hortus.vision.losses",
    "hortus.vision.evaluation",
    "hortus.vision.tasks",
    "hortus.vision.visualization",
    "hortus.vision.serving",
    "hortus.vision.data",
    "hortus.testing",
)
"""Packages with a page; one that is inside of another has its own."""

_SECTION = re.compile(r"(Args|Attributes|Returns|Yields|Raises|The builder receives):")
_ITEM = re.compile(r"(\*{0,2}[\w.|`]+): (.*)")
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclasses.dataclass(frozen=True)
class Module:
    """A module's name and its parsed text."""

    name: str
    tree: ast.Module

    @property
    def summary(self) -> str:
        return _first_line(ast.get_docstring(self.tree))


def modules_of(package: str) -> list[Module]:
    """The public modules of a package, itself first, those with a page of their own left out."""
    folder = ROOT / package.replace(".", "/")
    others = [f"{other}." for other in PACKAGES if other.startswith(f"{package}.")]
    found = []
    for path in sorted(folder.rglob("*.py"), key=lambda path: (path.parent, path.stem)):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        if f"{name}.".startswith(tuple(others)):
            continue
        last = name.rpartition(".")[2]
        if last.startswith("_") or last.endswith("_test") or last in ("conftest", "keras_private"):
            continue
        found.append(Module(name, ast.parse(path.read_text("utf-8"))))
    return found


def page(package: str) -> str:
    """The page of a package, as Markdown."""
    modules = modules_of(package)
    lines = [f"# {package}", ""]
    lines += [
        f"- [{module.name}](#{_anchor(module.name)}): {module.summary}"
        for module in modules
        if module.name != package
    ]
    for module in modules:
        lines += ["", f"## {module.name}", "", *_docstring(module.tree), *_module_body(module)]
    return "\n".join(lines) + "\n"


def _module_body(module: Module) -> Iterator[str]:
    exported = [name for name in _names_in_all(module.tree) if name not in _defined(module.tree)]
    if exported:
        yield from ("Also here: " + ", ".join(f"`{name}`" for name in exported), "")
    for node, text in _with_text_below(module.tree.body):
        if isinstance(node, ast.ClassDef) and _is_public(node.name):
            yield from _class_lines(node)
        elif isinstance(node, Function) and _is_public(node.name):
            yield from (f"### {node.name}", "", *_signature(node), *_docstring(node))
        elif text and isinstance(node, ast.Assign | ast.AnnAssign):
            yield from _variable_lines(node, text)


def _class_lines(node: ast.ClassDef) -> Iterator[str]:
    bases = ", ".join(ast.unparse(base) for base in node.bases)
    yield from (f"### {node.name}", "")
    own = {item.name: item for item in node.body if isinstance(item, Function)}
    yield from _signature(own["__init__"], node.name) if "__init__" in own else ()
    if bases:
        yield from (f"Subclass of `{bases}`.", "")
    yield from _docstring(node)
    for item, text in _with_text_below(node.body):
        if text and isinstance(item, ast.Assign | ast.AnnAssign):
            yield from _variable_lines(item, text)
    yield ""
    for name, item in own.items():
        if _is_public(name) and ast.get_docstring(item):
            decorators = {ast.unparse(decorator) for decorator in item.decorator_list}
            yield from (f"#### {node.name}.{name}", "")
            if not decorators & {"property", "functools.cached_property"}:
                yield from _signature(item)
            yield from _docstring(item)


def _variable_lines(node: ast.Assign | ast.AnnAssign, text: str) -> Iterator[str]:
    """A field or a constant with the text below it."""
    target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
    name = ast.unparse(target)
    if not _is_public(name):
        return
    kind = f": {ast.unparse(node.annotation)}" if isinstance(node, ast.AnnAssign) else ""
    value = "" if node.value is None else ast.unparse(node.value)
    default = f" = {value}" if 0 < len(value) <= 40 else ""
    yield f"- `{name}{kind}{default}`: {' '.join(text.split())}"


def _with_text_below(body: list[ast.stmt]) -> Iterator[tuple[ast.stmt, str]]:
    """Statements, each with the text literal that follows it, or nothing."""
    for node, following in zip(body, [*body[1:], None], strict=True):
        value = following.value if isinstance(following, ast.Expr) else None
        text = value.value if isinstance(value, ast.Constant) else ""
        yield node, text if isinstance(text, str) else ""


def _signature(node: Function, name: str = "") -> Iterator[str]:
    arguments = ast.unparse(node.args)
    arguments = re.sub(r"^(self|cls)(, )?", "", arguments)
    returns = f" -> {ast.unparse(node.returns)}" if node.returns and not name else ""
    text = f"{name or node.name}({arguments}){returns}"
    if len(text) > 90:
        text = text.replace(f"({arguments})", "(\n    " + _split_arguments(node) + "\n)")
    yield from ("```python", text, "```", "")


def _split_arguments(node: Function) -> str:
    """The arguments, one per line."""
    whole = node.args
    count = len(whole.posonlyargs) + len(whole.args)
    defaults = [None] * (count - len(whole.defaults)) + list(whole.defaults)
    parts = [
        _shown(argument, default)
        for argument, default in zip([*whole.posonlyargs, *whole.args], defaults, strict=True)
        if argument.arg not in ("self", "cls")
    ]
    if whole.vararg:
        parts.append(f"*{_shown(whole.vararg)}")
    elif whole.kwonlyargs:
        parts.append("*")
    parts += [_shown(a, d) for a, d in zip(whole.kwonlyargs, whole.kw_defaults, strict=True)]
    if whole.kwarg:
        parts.append(f"**{_shown(whole.kwarg)}")
    return ",\n    ".join(parts) + ","


def _shown(argument: ast.arg, default: ast.expr | None = None) -> str:
    kind = f": {ast.unparse(argument.annotation)}" if argument.annotation else ""
    equals = " = " if kind else "="
    return argument.arg + kind + (f"{equals}{ast.unparse(default)}" if default else "")


def _docstring(node: ast.Module | ast.ClassDef | Function) -> Iterator[str]:
    """A docstring as Markdown: sections become lists, indented code stays as it is."""
    inside = None  # how far the items of a section are indented; None outside of sections
    for line in (ast.get_docstring(node) or "").splitlines():
        indent = len(line) - len(line.lstrip())
        if _SECTION.fullmatch(line):
            inside = 0
            yield from (f"**{line.removesuffix(':')}**", "")
        elif inside is not None and indent:
            inside = inside or indent
            yield _list_line(line.strip(), nested=indent > inside)
        else:
            inside = inside if not line else None
            yield line
    yield ""


def _list_line(text: str, nested: bool) -> str:
    item = _ITEM.fullmatch(text)
    if item and not nested:
        return f"- `{item[1].strip('`')}`: {item[2]}"
    return f"  {text}"


def _names_in_all(tree: ast.Module) -> list[str]:
    lazily: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [str(name) for name in ast.literal_eval(node.value)]
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            # The list of a lazy package, see hortus.lazy.
            imports = (each for each in node.body if isinstance(each, ast.ImportFrom))
            lazily += [alias.name for each in imports for alias in each.names if alias.asname]
    return lazily


def _defined(tree: ast.Module) -> set[str]:
    return {node.name for node in tree.body if isinstance(node, ast.ClassDef | Function)}


def _is_public(name: str) -> bool:
    return not name.startswith("_")


def _anchor(title: str) -> str:
    return title.lower().replace(".", "")


def _first_line(text: str | None) -> str:
    return inspect.cleandoc(text or "").split("\n")[0]


def build(folder: pathlib.Path) -> list[pathlib.Path]:
    """Writes all pages and their index, `README.md`; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    index = ["# API reference", "", "Written from the docstrings by docs/build_reference.py.", ""]
    written = []
    for package in PACKAGES:
        path = folder / f"{package}.md"
        path.write_text(page(package), encoding="utf-8")
        written.append(path)
        index.append(f"- [{package}]({path.name}): {modules_of(package)[0].summary}")
    path = folder / "README.md"
    path.write_text("\n".join(index) + "\n", encoding="utf-8")
    return [path, *written]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path, nargs="?", default=ROOT / "build/reference")
    print(f"Reference: {build(parser.parse_args().folder)[0]}")
