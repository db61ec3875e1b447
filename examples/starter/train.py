"""The launch script; README.md shows how to call it."""

import starter.config  # noqa: F401  registers the experiment
from absl import app, flags

from hortus.core import flags as hortus_flags
from hortus.core import launch, train_utils
from hortus.vision import train

FLAGS = flags.FLAGS


def main(argv: list[str]) -> None:
    """Registers what is ours, and runs what the flags ask for."""
    del argv
    params = train_utils.parse_configuration(FLAGS)
    strategy = launch.prepare(params)  # the engine is settled before anything loads Keras
    import starter.task  # noqa: F401  registers the backbone and the task

    train.run(params, FLAGS.mode, FLAGS.model_dir, strategy=strategy)


if __name__ == "__main__":
    hortus_flags.define_flags()
    flags.mark_flags_as_required(["experiment", "mode", "model_dir"])
    app.run(main)
