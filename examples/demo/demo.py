"""Draws scenes of shapes, trains a detector on them and writes a report of what it learnt.

    python examples/demo/demo.py build/demo

The folder then holds the data, the run (checkpoints, summaries, metrics.jsonl) and report.html: one
page with curves, metrics and pictures. Running it again goes on with the same run.
"""

import argparse
import pathlib
import time

from hortus import engine
from hortus.core import exp_parser
from hortus.reports import page, runs
from hortus.vision import train
from hortus.vision.data import shapes

CONFIG = pathlib.Path(__file__).with_name("demo.yaml")


def main(
    folder: pathlib.Path, train_images: int = 400, overrides: "list[str] | None" = None
) -> float:
    """Runs the demo and returns the average precision at an IoU of 0.5."""
    data, run, begin = folder / "data", folder / "run", time.monotonic()
    if not (data / "val.json").exists():
        print(f"Drawing scenes into {data}", flush=True)
        shapes.write_scenes(data, num_train=train_images, num_val=60)
    params = exp_parser.parse_config(
        exp_parser.ParseConfigOptions(
            experiment="retinanet",
            config_file=[str(CONFIG)],
            params_override=[
                f"task.train_data.input_path={data / 'train.json'}",
                f"task.validation_data.input_path={data / 'val.json'}",
                *(overrides or []),
            ],
        )
    )
    print("Training; Ctrl-C stops it, and the same command goes on", flush=True)
    _, logs = train.run(params, "train_and_eval", run)
    report = folder / "report.html"
    report.write_text(page.render(runs.RecordedRun(run)), encoding="utf-8")
    precision = float(logs["AP50"])
    print(f"\nAP50 {precision:.2f} on 60 scenes, after {time.monotonic() - begin:.0f} seconds.")
    print(f"Report:  {report}")
    print(f"Curves:  tensorboard --logdir {run}")
    return precision


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path, nargs="?", default="build/demo")
    engine.select()
    main(parser.parse_args().folder)
