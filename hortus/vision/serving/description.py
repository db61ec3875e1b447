"""What travels with an export: a JSON file that says what it is, so that it is of use by itself."""

import dataclasses
import json
import os
import warnings
from typing import Any, Optional

from hortus import engine, hyperparams
from hortus.core import config_definitions as cfg
from hortus.core import task_factory
from hortus.core.run_identity import RunIdentity
from hortus.vision import registry_imports
from hortus.vision.serving.formats import ExportError, Format, get_format
from hortus.vision.serving.run import LoadedRun
from hortus.vision.serving.run_config import config_of
from hortus.vision.serving.services.service import Service, service_of

VERSION = 1
_MAX_SIZE = 64 << 20
"""Characters of a description that are read: more than any config has."""
IN_FOLDER, BESIDE = "hortus_export.json", ".json"


@dataclasses.dataclass(frozen=True)
class Description:
    """The content of the file."""

    format: str
    """Name of the format."""
    class_names: tuple[str, ...]
    facts: dict[str, Any]
    """Of the service, see `Service.facts`."""
    preprocessing: dict[str, Any]
    """What the export does to an image, in words and numbers."""
    outputs: tuple[str, ...]
    checkpoint: str
    step: int
    """Global step of the checkpoint."""
    config: dict[str, Any]
    """Of the training."""
    identity: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Of the run, see `core.run_identity`; empty in exports of an older hortus."""

    @property
    def form(self) -> Format:
        """The format."""
        return get_format(self.format)

    def params(self) -> cfg.ExperimentConfig:
        """The config of the training."""
        identity = RunIdentity.from_dict(self.identity)
        if identity is not None:
            try:
                identity.load_modules()
            except hyperparams.ConfigError as error:
                # Most exports can do without what the training needed.
                warnings.warn(str(error), hyperparams.ConfigWarning, stacklevel=2)
        return config_of(self.config, "the config of the export", identity=identity)

    def service(self, params: Optional[cfg.ExperimentConfig] = None) -> Service:
        """The service of the task; `params` may say otherwise than the training."""
        registry_imports.load_tasks()
        task = task_factory.get_task((params or self.params()).task)
        try:
            return service_of(task, self.class_names, **self.facts)
        except TypeError as error:
            raise ExportError(
                f"the description of the export tells facts that its task does not know ({error})"
            ) from None

    def to_json(self) -> str:
        """The text of the file."""
        content = {"hortus_export": VERSION, **dataclasses.asdict(self)}
        return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def describe(
    run: LoadedRun, service: Service, form: Format, outputs: tuple[str, ...]
) -> Description:
    """The description of an export."""
    return Description(
        format=form.name,
        class_names=run.class_names,
        facts=service.facts(),
        preprocessing=service.preprocessing(),
        outputs=outputs,
        checkpoint=run.checkpoint,
        step=run.step,
        config=run.params.as_dict(),
        identity=RunIdentity.of(run.params, engine.name()).as_dict(),
    )


def description_path(path: str) -> str:
    """Where the description of an export is."""
    return os.path.join(path, IN_FOLDER) if os.path.isdir(path) else path + BESIDE


def is_export(path: str) -> bool:
    """Whether a path is that of an export with its description."""
    return os.path.isfile(description_path(path))


def read_description(path: str) -> Description:
    """The description of the export at `path`.

    Raises:
        ExportError: there is none, or it cannot be read.
    """
    import pydantic

    name = description_path(path)
    try:
        with open(name, encoding="utf-8") as file:
            content = json.loads(file.read(_MAX_SIZE))
    except FileNotFoundError:
        raise ExportError(
            f"{path} is no export of hortus: there is no {name}, which `hortus export` writes "
            "and which has to stay beside it"
        ) from None
    except (ValueError, RecursionError) as error:
        raise ExportError(f"{name}: not what `hortus export` writes ({error})") from None
    if not isinstance(content, dict) or "hortus_export" not in content:
        raise ExportError(f"{name}: not what `hortus export` writes (it has no 'hortus_export')")
    version = content.pop("hortus_export")
    if version != VERSION:
        raise ExportError(f"{name} is of version {version!r}; this hortus reads {VERSION}")
    try:
        return pydantic.TypeAdapter(Description).validate_python(content)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ExportError(f"{name}: {where}: {first['msg']}; the file was changed") from None
