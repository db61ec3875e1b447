"""The weights that an experiment starts from: which they are, and whether they can be had here."""

import os
from typing import Optional

from hortus import hyperparams
from hortus.core import config_definitions as cfg


def problem(path: str) -> Optional[str]:
    """Why weights cannot be read from a path; None if something is there.

    What is there is not opened, which would take a numerical library.
    """
    if not path:
        return None
    if "://" in path:
        scheme = path.partition("://")[0]
        return f"{scheme}:// is no local or mounted file system"
    if os.path.exists(path) or os.path.exists(f"{path}.index"):
        return None
    return "there is no such file or folder"


def check(params: cfg.ExperimentConfig) -> None:
    """Sees whether a new run could start from the weights that the config names.

    Raises:
        ConfigError: they cannot be read; it says what to do instead.
    """
    path = params.task.init_checkpoint
    found = problem(path)
    if found is None:
        return
    modules = params.task.get("init_checkpoint_modules", "all")
    parts = ", ".join([modules] if isinstance(modules, str) else modules)
    raise hyperparams.ConfigError(
        f"task.init_checkpoint ({params.origin('task.init_checkpoint')}): {path} cannot be read: "
        f"{found}. Start from random weights with task.init_checkpoint=null; or name a checkpoint, "
        f"or the folder of a run, with the same parts (init_checkpoint_modules: {parts}); or copy "
        "it here, and name the copy"
    )
