"""`hortus predict`: what a model says of image files."""

import sys
import time
from collections.abc import Sequence
from typing import Optional

from hortus.cli.errors import CommandError
from hortus.cli.progress_bar import ProgressBar

SOME_UNREADABLE = 1
INTERRUPTED = 130
_SAVE_SECONDS = 10.0
_SHOWN = 10


def predict(
    model: str,
    images: Sequence[str],
    output: str,
    *,
    checkpoint: str = "best",
    experiment: Optional[str] = None,
    batch_size: int = 8,
    pictures: bool = True,
    upright: bool = True,
    max_pixels: Optional[int] = None,
    resume: bool = False,
) -> int:
    """Writes the predictions; returns the exit code: 1 if an image could not be read."""
    if not images:
        raise CommandError("which images? Name files, folders or patterns after the model")
    from hortus import engine

    engine.load()
    from hortus.vision.serving.images import MAX_PIXELS, find_images

    found = find_images(images)
    from hortus.vision.serving.predictor import Predictor
    from hortus.vision.serving.results import ResultFolder

    results = ResultFolder(output, found, pictures, resume)
    todo = [image for image in found if image.path not in results.done]
    if len(todo) < len(found):
        print(f"{len(found) - len(todo)} of {len(found)} images have results in {output} already")
    if not todo:
        return 0
    predictor = Predictor.load(model, checkpoint, experiment=experiment)
    print(f"Predicting with {predictor.origin}", file=sys.stderr)
    skipped: list[str] = []
    done, saved = 0, time.monotonic()
    progress = ProgressBar()
    stream = predictor.stream(
        todo, batch_size, upright=upright, max_pixels=max_pixels or MAX_PIXELS
    )
    try:
        with progress:
            for result in stream:
                results.add(result)
                done += 1
                if result.problem:
                    skipped.append(result.source.path)
                    if len(skipped) <= _SHOWN:
                        progress.clear()
                        more = " (further ones are counted)" if len(skipped) == _SHOWN else ""
                        text = f"skipped {result.source.path}: {result.problem}{more}"
                        print(text, file=sys.stderr)
                progress("predicting", done, len(todo))
                if time.monotonic() - saved > _SAVE_SECONDS:
                    results.save()
                    saved = time.monotonic()
    except KeyboardInterrupt:
        print(
            f"\nStopped: {done} of {len(todo)} images have results in {output}. The same command "
            "with --resume goes on with the others.",
            file=sys.stderr,
        )
        return INTERRUPTED
    finally:
        results.save()
    noun = "image" if done - len(skipped) == 1 else "images"
    print(f"{done - len(skipped)} {noun} predicted: {results.predictions_path}")
    if skipped:
        what = "1 file was" if len(skipped) == 1 else f"{len(skipped)} files were"
        print(f"{what} skipped, see images.json for the reasons", file=sys.stderr)
        return SOME_UNREADABLE
    return 0
