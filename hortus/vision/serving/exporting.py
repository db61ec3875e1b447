"""Exports the model of a run, and looks whether the export says the same as the model."""

import contextlib
import dataclasses
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Optional

import numpy as np

from hortus import engine
from hortus.core import user_modules
from hortus.core.checkpoints import atomic_folder
from hortus.engine import disk
from hortus.vision.dataloaders.errors import DataError
from hortus.vision.serving.description import describe, description_path
from hortus.vision.serving.formats import ExportError, get_format
from hortus.vision.serving.images import Picture, decode, find_images, read_image
from hortus.vision.serving.parity import Parity, compare
from hortus.vision.serving.run import BEST, load_run
from hortus.vision.serving.services.differences import LIMIT
from hortus.vision.serving.services.service import Service, service_of

COMPARED_IMAGES = 4
"""Images that an export is tried on."""


@dataclasses.dataclass(frozen=True)
class Export:
    """What was exported."""

    path: str
    checkpoint: str
    parity: Parity


def export_run(
    model_dir: str,
    form: str,
    output: str,
    checkpoint: str = BEST,
    *,
    experiment: Optional[str] = None,
    images: Sequence[str] = (),
    force: bool = False,
    overrides: Sequence[str] = (),
) -> Export:
    """Exports the model of a run with what comes before and after it, in float32.

    TensorFlow writes all formats. On the JAX engine a process of its own does so, and what it wrote
    is compared with the model on JAX.

    Args:
        model_dir: folder of the run.
        form: name of the format: saved_model, onnx, litert, openvino, or one that was registered.
        output: file to write, or folder for a SavedModel. A JSON file that describes it is written
            beside, or inside.
        checkpoint: see `load_run`.
        experiment: see `load_run`.
        images: files, folders or patterns to compare export and model on; by default the first
            images of the validation data.
        force: replace an earlier export at `output`.
        overrides: see `load_run`.

    Raises:
        ExportError: a package is missing, the format cannot hold the model, or export and model
            differ by more than `LIMIT`. What was at `output` before is as it was.
    """
    wanted = get_format(form)
    wanted.require()
    output = output.rstrip("/")
    if wanted.ending and not output.endswith(wanted.ending):
        output += wanted.ending
    if os.path.lexists(output) and not force:
        raise ExportError(f"output {output}: is there already; `force` replaces it")
    if os.path.isdir(output) and not os.path.isfile(description_path(output)):
        raise ExportError(f"output {output}: is a folder with other things than an export")
    run = load_run(
        model_dir, checkpoint, experiment=experiment, in_float32=True, overrides=overrides
    )
    service = service_of(run.task, run.class_names)
    pictures = _pictures(service, images)
    expected = _expected(service, run.model, pictures)
    parent = os.path.dirname(os.path.abspath(output))
    with _workplace(output) as folder:
        path = os.path.join(folder, os.path.basename(output))
        if engine.name() == "tensorflow":
            wanted.write(service, run.model, path)
        else:
            checkpoint = os.path.abspath(run.checkpoint)
            _write_elsewhere(
                [
                    user_modules.asked(),
                    model_dir,
                    form,
                    path,
                    checkpoint,
                    experiment,
                    list(overrides),
                ]
            )
        parity = compare(service, expected, wanted.open_runtime(path), pictures)
        if not parity.holds:
            raise ExportError(
                f"the {wanted.name} export is not as good as the model and was not kept: {parity}; "
                f"the limit is {LIMIT}"
            )
        description = describe(run, service, wanted, tuple(sorted(expected[0])))
        with open(description_path(path), "w", encoding="utf-8") as file:
            file.write(description.to_json())
        _move(folder, parent)
    return Export(output, run.checkpoint, parity)


@contextlib.contextmanager
def _workplace(output: str) -> Iterator[str]:
    """A folder beside `output` for what is not finished; it is gone afterwards.

    What killed exports left there goes too. A full disk becomes one sentence.
    """
    parent = os.path.dirname(os.path.abspath(output))
    try:
        os.makedirs(parent, exist_ok=True)
        atomic_folder.remove_abandoned(parent)
        folder = atomic_folder.begin(output)
        try:
            yield folder
        finally:
            atomic_folder.discard(folder)
    except Exception as error:
        if disk.is_full(error):
            raise disk.full_error(parent) from error
        raise


def _pictures(service: Service, images: Sequence[str]) -> list[Picture]:
    if images:
        return [read_image(found.path) for found in find_images(images)[:COMPARED_IMAGES]]
    data = service.task_config.validation_data
    if not (data.input_path or data.tfds_name):
        raise ExportError("which images shall the export be tried on? Name some: `images`")
    try:
        pairs = service.build_reader().pairs().take(COMPARED_IMAGES)
        found = [decode(example[service.image_key].numpy(), False) for example, _ in pairs]
    except DataError as error:
        raise ExportError(
            f"the validation data, on which the export is to be tried, cannot be read: {error}. "
            "Name others: `images`"
        ) from error
    return found


def _expected(
    service: Service, model: Any, pictures: Sequence[Picture]
) -> list[dict[str, np.ndarray]]:
    """The model's outputs for the pixels of each picture."""
    from hortus.vision.serving.compiled import Compiled

    compiled = Compiled(service, model)
    return [
        dict(compiled.run([service.prepare(dataclasses.replace(picture, encoded=None))])[0])
        for picture in pictures
    ]


def _write_elsewhere(arguments: list[Any]) -> None:
    """Has a process with the TensorFlow engine write the export; see `_write`."""
    done = subprocess.run(
        [sys.executable, "-m", "hortus.vision.serving.exporting", json.dumps(arguments)],
        env={**os.environ, "KERAS_BACKEND": "tensorflow"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        failure = RuntimeError(done.stdout)
        if disk.is_full(failure):
            raise failure
        lines = done.stdout.strip().splitlines()
        raise ExportError(f"writing the {arguments[2]} export failed: {lines[-1] if lines else ''}")


def _write(arguments: str) -> None:
    """What the process of `_write_elsewhere` does."""
    modules, model_dir, form, path, checkpoint, experiment, overrides = json.loads(arguments)
    for module in modules:
        user_modules.load(module)
    run = load_run(
        model_dir, checkpoint, experiment=experiment, in_float32=True, overrides=overrides
    )
    get_format(form).write(service_of(run.task, run.class_names), run.model, path)


def _move(folder: str, parent: str) -> None:
    """Moves all that is in `folder`; an earlier export makes way."""
    for name in sorted(os.listdir(folder)):
        target = os.path.join(parent, name)
        if os.path.isdir(target):
            shutil.rmtree(target)
        os.replace(os.path.join(folder, name), target)


if __name__ == "__main__":
    engine.select("tensorflow")
    engine.load()
    _write(sys.argv[1])
