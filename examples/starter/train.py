"""The launch script; README.md shows how to call it."""

from absl import app, flags

from hortus import engine
from hortus.core import flags as hortus_flags
from hortus.vision import train


def main(argv: list[str]) -> None:
    """Registers what is ours, and runs what the flags ask for."""
    engine.select()  # before anything loads Keras
    import starter.task  # noqa: F401  registers the experiment, the backbone and the task

    train.main(argv)


if __name__ == "__main__":
    hortus_flags.define_flags()
    flags.mark_flags_as_required(["experiment", "mode", "model_dir"])
    app.run(main)
