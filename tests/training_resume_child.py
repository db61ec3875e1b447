"""Trains the tiny task again and again, to be killed: a process per run, forked from this one.

Importing the framework takes longer than such a run. So this process imports it once, touches no
device, which would start threads, and forks for each line `run FOLDER STEPS` of its input. It
answers `started PID` and, when that run has ended, `ended CODE`, negative for a signal. A line
`stop FOLDER STEPS` is for a run that gets SIGTERM amid its first loop.

By hand, this kills a run twenty times at random moments and compares the result:

    python tests/training_resume_child.py --engine jax --kills 20
"""

import argparse
import os
import signal
import sys
import tempfile
import traceback
from typing import Any

from hortus import engine


def train(folder: str, steps: int, stops: bool) -> None:
    """A deterministic run with everything that has a state of its own."""
    from hortus.core import distribute_utils, exp_factory, performance, task_factory, train_lib

    params = exp_factory.get_exp_config("tiny")
    params.override(
        {
            "runtime": {"deterministic": True, "seed": 3},
            "task": {"model": {"dropout": 0.3}, "train_data": {"shuffle": True}},
            "trainer": {
                "train_steps": steps,
                "steps_per_loop": 4,
                "summary_interval": 4,
                "checkpoint_interval": 4,
                "validation_interval": 8,
                "best_checkpoint_export_subdir": "best",
                "best_checkpoint_eval_metric": "validation_loss",
                "best_checkpoint_metric_comp": "lower",
                "optimizer_config": {
                    "learning_rate": {
                        "type": "cosine",
                        "cosine": {"initial_learning_rate": 0.1, "decay_steps": 100},
                    },
                    "ema": {"average_decay": 0.9},
                },
            },
        }
    )
    performance.set_seed_and_determinism(params.runtime)
    strategy = distribute_utils.get_distribution_strategy("one_device")
    with strategy.scope():
        task = task_factory.get_task(params.task)

    class Controller(train_lib.Controller):
        def _train_part(self, steps: int, first: bool, last: bool) -> Any:
            if stops:
                os.kill(os.getpid(), signal.SIGTERM)
            return super()._train_part(steps, first, last)

    train_lib.run_experiment(
        strategy, task, "train_and_eval", params, folder, controller_cls=Controller
    )


def run(command: str, folder: str, steps: str) -> int:
    """What a forked process does; returns its exit code."""
    try:
        train(folder, int(steps), stops=command == "stop")
    except SystemExit as stop:
        return int(stop.code or 0)
    except BaseException:  # noqa: BLE001, the process ends here, whatever it was
        traceback.print_exc()
        return 1
    return 0


def serve() -> None:
    """Reads commands and answers them until the input ends."""
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            code = run(*line.split())
            sys.stderr.flush()
            os._exit(code)  # without what this process would do at its end
        print(f"started {child}", flush=True)
        status = os.waitpid(child, 0)[1]
        print(f"ended {os.waitstatus_to_exitcode(status)}", flush=True)


def main() -> None:
    """Serves, or kills as often as asked."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--engine", default="tensorflow")
    parser.add_argument("--kills", type=int, default=0)
    options = parser.parse_args()
    if options.kills:
        import training_resume_test

        with tempfile.TemporaryDirectory() as folder:
            training_resume_test.kill_and_compare(options.engine, folder, options.kills)
        return
    engine.select(options.engine)
    import hortus.core.train_lib
    import hortus.testing.tiny_task

    if options.engine == "jax":
        import hortus.engine.jax.engine  # noqa: F401
    print("ready", flush=True)
    serve()


if __name__ == "__main__":
    main()
