"""Draws pictures of shapes, trains a classifier on them and shows what it learnt.

    python examples/shapes/demo.py build/demo

The folder then holds the data, the run (checkpoints, summaries, metrics.jsonl) and two pictures:
predictions.png and confusion_matrix.png. Running it again goes on with the same run.
"""

import argparse
import pathlib

import numpy as np
from PIL import Image

from hortus import engine
from hortus.core import exp_parser
from hortus.vision import train
from hortus.vision.data import shapes
from hortus.vision.visualization.confusion_matrix import draw_confusion_matrix
from hortus.vision.visualization.contact_sheet import RIGHT, WRONG, draw_contact_sheet

CONFIG = pathlib.Path(__file__).with_name("shapes.yaml")


def main(
    folder: pathlib.Path, train_images: int = 400, overrides: "list[str] | None" = None
) -> float:
    """Runs the demo and returns the accuracy on the validation pictures."""
    data, run = folder / "data", folder / "run"
    if not data.exists():
        print(f"Drawing pictures into {data}", flush=True)
        shapes.write_folders(data, num_train=train_images, num_val=40, size=48)
    params = exp_parser.parse_config(
        exp_parser.ParseConfigOptions(
            experiment="image_classification",
            config_file=[str(CONFIG)],
            params_override=[
                f"task.train_data.input_path={data / 'train'}",
                f"task.validation_data.input_path={data / 'val'}",
                *(overrides or []),
            ],
        )
    )
    print("Training; Ctrl-C stops it, and the same command goes on", flush=True)
    model, _ = train.run(params, "train_and_eval", run)
    return show(model, data / "val", folder)


def show(model, folder: pathlib.Path, output: pathlib.Path) -> float:
    """Draws the model's answers for the pictures of a folder, and returns its accuracy."""
    paths = sorted(folder.rglob("*.png"))
    pictures = [np.asarray(Image.open(path)) for path in paths]
    classes = sorted(shapes.CLASSES)  # the order in which folders are numbered
    truth = np.array([classes.index(path.parent.name) for path in paths])
    logits = model.predict(_normalized(np.stack(pictures)), verbose=0)
    answers = np.argmax(logits, axis=-1)
    counts = np.zeros((len(classes),) * 2, int)
    np.add.at(counts, (truth, answers), 1)
    # Wrong answers first, as they are the interesting ones, then right ones of all classes.
    wrong, right = np.flatnonzero(answers != truth)[:20], np.flatnonzero(answers == truth)
    spread = np.linspace(0, len(right) - 1, min(40 - len(wrong), len(right))).astype(int)
    chosen = [*wrong, *right[spread]]
    sheet = draw_contact_sheet(
        [pictures[i] for i in chosen],
        captions=[classes[answers[i]] for i in chosen],
        colours=[RIGHT if answers[i] == truth[i] else WRONG for i in chosen],
    )
    Image.fromarray(sheet).save(output / "predictions.png")
    matrix = draw_confusion_matrix(counts, classes)
    Image.fromarray(matrix).save(output / "confusion_matrix.png")
    accuracy = float(np.mean(answers == truth))
    print(f"\n{accuracy:.1%} of {len(paths)} validation pictures are recognised.")
    print(f"Pictures: {output / 'predictions.png'}, {output / 'confusion_matrix.png'}")
    print(f"Curves:   tensorboard --logdir {output / 'run'}")
    return accuracy


def _normalized(images: np.ndarray) -> np.ndarray:
    """As the input pipeline does it."""
    from hortus.vision.dataloaders import preprocess

    return preprocess.normalize_image(images).numpy()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path, nargs="?", default="build/demo")
    engine.select()
    main(parser.parse_args().folder)
