"""`hortus predict`: what a model says of image files."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Optional

from hortus.cli.progress_bar import ProgressBar

if TYPE_CHECKING:
    from hortus.vision.serving.predictor import Result

SOME_UNREADABLE = 1
INTERRUPTED = 130
_SHOWN = 10


def predict(model: str, images: Sequence[str], output: Optional[str], **options: Any) -> int:
    """Writes the predictions; returns the exit code: 1 if an image could not be read.

    Args:
        model: folder of a run, or an export.
        images: files, folders or patterns.
        output: folder to write; None for the usual one.
        **options: of `file_predictions.predict_files`.
    """
    from hortus import engine

    engine.load()
    from hortus.vision.serving import file_predictions

    class Listener(file_predictions.Listener):
        """Shows a bar, and what is skipped."""

        done, total, skipped = 0, 0, 0

        def resuming(self, done: int, total: int, output: str) -> None:
            print(f"{done} of {total} images have results in {output} already")

        def begin(self, origin: str) -> None:
            print(f"Predicting with {origin}", file=sys.stderr)

        def result(self, result: "Result", done: int, total: int) -> None:
            self.done, self.total = done, total
            if result.problem:
                self.skipped += 1
                if self.skipped <= _SHOWN:
                    bar.clear()
                    more = " (further ones are counted)" if self.skipped == _SHOWN else ""
                    text = f"skipped {result.source.path}: {result.problem}{more}"
                    print(text, file=sys.stderr)
            bar("predicting", done, total)

    output = output or file_predictions.default_output(model)
    listener, bar = Listener(), ProgressBar()
    try:
        with bar:
            written = file_predictions.predict_files(
                model, images, output, listener=listener, **options
            )
    except KeyboardInterrupt:
        print(
            f"\nStopped: {listener.done} of {listener.total} images have results in {output}. The "
            "same command with --resume goes on with the others.",
            file=sys.stderr,
        )
        return INTERRUPTED
    if not listener.done:
        return 0
    noun = "image" if written.predicted == 1 else "images"
    print(f"{written.predicted} {noun} predicted: {written.predictions_path}")
    if written.skipped:
        count = len(written.skipped)
        what = "1 file was" if count == 1 else f"{count} files were"
        print(f"{what} skipped, see images.json for the reasons", file=sys.stderr)
        return SOME_UNREADABLE
    return 0
