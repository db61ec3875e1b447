"""Who may import whom. docs/architecture.md tells the same in words.

The tables are complete: what a row does not name is forbidden, and a file that no row covers fails.
Imports inside functions count too; sibling tests (`*_test.py`) are free to import what they test.
"""

import ast
import pathlib
import sys
from collections.abc import Iterator

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent

EVERYTHING = ("hortus",)
CONFIG_CORE = ("hortus.core.config_definitions", "hortus.core.exp_factory")
VISION_BLOCKS = (
    "hortus.vision.configs",
    "hortus.vision.dataloaders",
    "hortus.vision.evaluation",
    "hortus.vision.losses",
    "hortus.vision.modeling",
    "hortus.vision.ops",
    "hortus.vision.visualization",
)

# The longest matching row counts. A folder may always import itself.
OURS = {
    "hortus": ("hortus.engine.environment",),
    "hortus.hyperparams": (),
    "hortus.lazy": (),
    "hortus.registry": ("hortus.hyperparams",),
    "hortus.optimization": (
        "hortus.hyperparams",
        "hortus.lazy",
        "hortus.registry",
        "hortus.engine.kernels",
    ),
    "hortus.engine": ("hortus.hyperparams",),
    "hortus.core": (
        "hortus.hyperparams",
        "hortus.lazy",
        "hortus.registry",
        "hortus.optimization",
        "hortus.engine",
    ),
    "hortus.vision": (),
    "hortus.vision.ops": (),
    "hortus.vision.visualization": (),
    "hortus.vision.configs": ("hortus.hyperparams", "hortus.optimization.configs", *CONFIG_CORE),
    "hortus.vision.experiments": (
        "hortus.hyperparams",
        "hortus.registry",
        "hortus.optimization.configs",
        "hortus.vision.configs",
        *CONFIG_CORE,
    ),
    "hortus.vision.modeling": (
        "hortus.engine.collectives",  # batch normalisation over replicas
        "hortus.engine.kernels",  # the one place where a backend's faster kernel is chosen
        "hortus.hyperparams",  # a builder's signature says hyperparams.Config
        "hortus.lazy",
        "hortus.registry",
        "hortus.vision.configs",
        "hortus.vision.ops",
        "hortus.vision.weights",  # a model says what it takes from a file of another program
    ),
    # Tables of names, and how they are applied: knows checkpoints, but no model.
    "hortus.vision.weights": ("hortus.core.checkpoints",),
    "hortus.vision.dataloaders": (
        "hortus.core.config_definitions",
        "hortus.core.run_folder",  # the names of classes are kept in the folder of the run
        "hortus.engine.tensorflow.startable",  # what the engine goes on from after a restart
        "hortus.registry",
        "hortus.vision.configs",
        "hortus.vision.ops.segmentations",  # NumPy; evaluation reads the same files by it
    ),
    "hortus.vision.losses": (
        "hortus.engine.kernels",
        "hortus.registry",
        "hortus.vision.configs",  # a loss is registered for its config
        "hortus.vision.ops",
    ),
    "hortus.vision.evaluation": ("hortus.vision.ops",),
    "hortus.vision.tasks": (
        "hortus.core",
        "hortus.engine",
        "hortus.hyperparams",
        "hortus.optimization",  # Task.create_optimizer
        "hortus.registry",
        "hortus.vision.data.tools",  # Task.build_data_tools
        "hortus.vision.serving.services",  # Task.build_service
        *VISION_BLOCKS,
    ),
    "hortus.vision.summary_manager": (
        "hortus.core.run_folder",
        "hortus.core.summary_factory",
        "hortus.core.summary_manager",
    ),
    "hortus.vision.registry_imports": ("hortus.vision.experiments", "hortus.vision.tasks"),
    "hortus.vision.data": (*VISION_BLOCKS, "hortus.core.checkpoints.atomic_folder"),
    # From a config to its task: for those who have the one and want the tools of the other.
    "hortus.vision.data.of_config": (
        "hortus.core.task_factory",
        "hortus.vision.data",
        "hortus.vision.registry_imports",
    ),
    # From a file of another program to a checkpoint of ours.
    "hortus.vision.pretrained": (
        "hortus.core",
        "hortus.vision.registry_imports",
        "hortus.vision.weights",
    ),
    "hortus.vision.serving": EVERYTHING,
    "hortus.vision.serving.images": ("hortus.vision.dataloaders",),
    "hortus.vision.serving.services": (
        "hortus.core.base_task",
        "hortus.vision.serving.images",
        *VISION_BLOCKS,
    ),
    "hortus.vision.train": EVERYTHING,
    "hortus.reports": ("hortus.core", "hortus.hyperparams", "hortus.registry"),
    "hortus.cli": EVERYTHING,
    "hortus.testing": EVERYTHING,
}
# Packages whose `__init__` shows names of heavier modules on first use only: importing the package
# itself is as light as importing the named part of it.
LIGHT_PACKAGES = {"hortus.optimization": "hortus.optimization.configs"}

# Other people's packages. Only what is named; the standard library is free.
NUMERIC = ("keras", "numpy")
THIRD_PARTY = {
    "hortus": (),
    "hortus.hyperparams": ("pydantic", "pydantic_core", "typing_extensions", "yaml"),
    "hortus.lazy": (),
    "hortus.registry": (),
    "hortus.optimization": NUMERIC,
    "hortus.optimization.configs": (),
    "hortus.engine": NUMERIC,
    "hortus.engine.tensorflow": (*NUMERIC, "tensorflow"),
    "hortus.engine.jax": (*NUMERIC, "jax"),
    "hortus.core": (*NUMERIC, "absl", "rich", "safetensors"),
    "hortus.core.config_definitions": (),
    "hortus.core.distribute_utils": (*NUMERIC, "absl", "tensorflow"),
    "hortus.core.event_file": ("numpy", "PIL", "tensorboard", "google"),  # protobuf
    "hortus.core.exp_factory": (),
    "hortus.core.init_weights": (),
    "hortus.core.launch": (),
    "hortus.core.machine": (),
    "hortus.core.modes": (),
    "hortus.core.run_folder": (),
    "hortus.core.run_identity": (),
    "hortus.core.run_lock": ("absl",),
    "hortus.core.run_record": (),
    "hortus.core.exp_parser": (),
    "hortus.core.flags": ("absl",),
    "hortus.core.registry": (),
    "hortus.core.summary_manager": (*NUMERIC, "absl", "tensorflow"),
    "hortus.core.task_factory": (),
    "hortus.core.train_utils": ("absl", "gin"),
    "hortus.core.user_modules": (),
    "hortus.vision": (),
    "hortus.vision.ops": NUMERIC,
    "hortus.vision.ops.segmentations": (*NUMERIC, "faster_coco_eval"),
    "hortus.vision.visualization": (*NUMERIC, "PIL"),
    "hortus.vision.configs": (),
    "hortus.vision.experiments": (),
    "hortus.vision.modeling": NUMERIC,
    "hortus.vision.weights": NUMERIC,
    "hortus.vision.pretrained": NUMERIC,
    "hortus.vision.dataloaders": (*NUMERIC, "tensorflow", "tensorflow_datasets", "PIL"),
    "hortus.vision.losses": NUMERIC,
    "hortus.vision.evaluation": (*NUMERIC, "faster_coco_eval"),
    "hortus.vision.tasks": (*NUMERIC, "absl"),
    "hortus.vision.summary_manager": NUMERIC,
    "hortus.vision.data": (*NUMERIC, "tensorflow", "tensorflow_datasets", "PIL"),
    "hortus.vision.serving": (*NUMERIC, "tensorflow", "PIL"),
    "hortus.vision.serving.description": ("pydantic",),
    "hortus.vision.serving.images": ("numpy", "tensorflow", "PIL"),
    "hortus.vision.serving.services": (*NUMERIC, "tensorflow", "PIL"),
    "hortus.vision.serving.formats.litert": (*NUMERIC, "tensorflow", "ai_edge_litert"),
    "hortus.vision.serving.formats.onnx": (*NUMERIC, "onnxruntime", "tf2onnx"),
    "hortus.vision.serving.formats.openvino": (*NUMERIC, "openvino"),
    "hortus.vision.train": ("absl", "gin"),
    "hortus.reports": ("yaml",),
    "hortus.cli": ("click", "rich", "typer", "yaml"),
    "hortus.testing.fuzz": ("hypothesis",),
    "hortus.testing": (*NUMERIC, "PIL", "pytest", "tensorflow"),
}


def row(table: dict, module: str) -> str | None:
    """The longest key of `table` that is `module` or one of its parents."""
    parts = module.split(".")
    for end in range(len(parts), 0, -1):
        prefix = ".".join(parts[:end])
        if prefix in table:
            return prefix
    return None


def within(module: str, prefixes: tuple[str, ...]) -> bool:
    return any(module == prefix or module.startswith(prefix + ".") for prefix in prefixes)


def imports(tree: ast.AST, is_module) -> Iterator[tuple[int, str]]:
    """All (line, module) that the code imports, wherever the statement stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            for alias in node.names:
                name = f"{base}.{alias.name}"
                yield node.lineno, name if is_module(name) else base
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            function = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if function in ("import_module", "__import__") and isinstance(node.args[0].value, str):
                yield node.lineno, node.args[0].value


def violations(root: pathlib.Path) -> list[str]:
    """Every import below `root`/hortus that the tables do not allow, as `file:line: what`."""

    def is_module(name: str) -> bool:
        path = root.joinpath(*name.split("."))
        return path.with_suffix(".py").is_file() or path.is_dir()

    found = []
    for path in sorted((root / "hortus").rglob("*.py")):
        if path.name.endswith("_test.py") or path.name == "conftest.py":
            continue
        parts = path.relative_to(root).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        own, other = row(OURS, module), row(THIRD_PARTY, module)
        # The bottom row is for hortus/__init__.py alone; it must not cover a new folder.
        if own is None or (own in ("hortus", "hortus.vision") and module != own):
            found.append(f"{path.relative_to(root)}: no row of the table covers {module}")
            continue
        for line, name in imports(ast.parse(path.read_text("utf-8"), str(path)), is_module):
            top = name.split(".")[0]
            where = f"{path.relative_to(root)}:{line}"
            if top == "":
                found.append(f"{where}: relative import")
            elif top == "hortus":
                target = LIGHT_PACKAGES.get(name, name)
                if name != "hortus" and not within(target, (own, *OURS[own])):
                    found.append(f"{where}: {own} may not import {name}")
            elif top not in sys.stdlib_module_names and top not in THIRD_PARTY[other or "hortus"]:
                found.append(f"{where}: {other} may not import {top}")
    return found


def test_every_import_is_allowed():
    assert violations(ROOT) == []


def test_both_tables_have_the_same_folders():
    assert {row(OURS, module) for module in THIRD_PARTY} == set(OURS) - {
        "hortus.vision.data.of_config",  # these import ours only
        "hortus.vision.registry_imports",
    }


@pytest.mark.parametrize(
    ("module", "source", "complaint"),
    [
        ("hyperparams/a.py", "import hortus.core.registry", "may not import hortus.core"),
        ("hyperparams/a.py", "from hortus.core import registry", "may not import hortus.core"),
        ("hyperparams/a.py", "from hortus import core", "may not import hortus.core"),
        ("core/a.py", "def f():\n    from hortus.vision import ops", "a.py:2: hortus.core may not"),
        ("core/a.py", "def f():\n    import tensorflow as tf", "may not import tensorflow"),
        ("core/exp_parser.py", "import numpy", "may not import numpy"),
        ("vision/configs/a.py", "import keras", "may not import keras"),
        ("vision/configs/a.py", "from hortus.core import train_utils", "may not import"),
        ("vision/configs/a.py", "from hortus.optimization import ema", "may not import"),
        ("vision/ops/a.py", "import importlib\nimportlib.import_module('jax')", "import jax"),
        ("engine/tensorflow.py", "import jax.numpy", "may not import jax"),
        ("core/a.py", "from . import registry", "relative import"),
        ("zoo/a.py", "", "no row of the table covers hortus.zoo"),
        ("vision/zoo.py", "", "no row of the table covers hortus.vision.zoo"),
    ],
)
def test_a_forbidden_import_is_found(tmp_path, module, source, complaint):
    for known in ("core/registry.py", "vision/ops/__init__.py", "optimization/ema.py"):
        path = tmp_path / "hortus" / known
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    path = tmp_path / "hortus" / module
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)
    found = violations(tmp_path)
    assert len(found) == 1
    assert complaint in found[0]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("core/a.py", "import keras\nfrom hortus import hyperparams, optimization"),
        ("vision/configs/a.py", "from hortus import hyperparams, optimization"),
        ("vision/configs/a.py", "from hortus.core import config_definitions as cfg"),
        ("vision/tasks/a.py", "from hortus.vision.modeling import factory"),
        ("engine/jax.py", "import os.path\nimport jax.numpy as jnp"),
        ("core/a_test.py", "import tensorflow\nfrom hortus.vision import ops"),
    ],
)
def test_an_allowed_import_passes(tmp_path, module, source):
    for folder in ("hyperparams", "optimization", "core", "vision/modeling"):
        (tmp_path / "hortus" / folder).mkdir(parents=True)
    (tmp_path / "hortus" / "core" / "config_definitions.py").write_text("")
    path = tmp_path / "hortus" / module
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)
    assert violations(tmp_path) == []
