"""Interrupts small runs again and again within one pass over the data, and compares how they end.

    python tests/soak/resume.py                              10 runs on each engine
    python tests/soak/resume.py --runs 200 --engine jax      as many as one likes
    python tests/soak/resume.py --minutes 30                 as many as fit
    python tests/soak/resume.py --engine jax --seed 17 --runs 1      one of them again

A run is interrupted two to five times, by SIGKILL or SIGTERM, all within the same pass, and started
again by the same command. Its weights, the state of its optimizer, its history of metrics, its best
checkpoint and the order of its data have to be those of a run that was left alone, bit for bit. The
seed of a run gives its kind of data, the steps after which it is interrupted, how, and how long
after: what the machine does in that time is chance. At the first difference it ends with exit code
1, names the command that does the same run again, and leaves the folders and logs of both runs.

Importing the framework takes longer than such a run. So a process imports it once, touches no
device, which would start threads, and forks for each run.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from typing import Any, Optional

ENGINES = ("tensorflow", "jax")
KINDS = ("table", "records", "mix", "broken", "copies", "foreign")
"""How the data is read; see `resume_task`."""
STEPS = 28
PASS = 12
"""Steps of a pass over the data, of the kinds that have one."""
STOPPED = 75
"""Exit code of a run that SIGTERM has ended."""
_PATIENCE = 300.0


@dataclasses.dataclass(frozen=True)
class Interruption:
    """A signal, once a step is reached and some time has passed since."""

    step: int
    signal: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.signal}@{self.step}+{1000 * self.seconds:.0f}ms"


@dataclasses.dataclass(frozen=True)
class Attempt:
    """A run, and how it is interrupted: all of it a function of the engine and a seed."""

    engine: str
    seed: int
    kind: str
    interruptions: tuple[Interruption, ...]

    @classmethod
    def of(cls, engine: str, seed: int) -> "Attempt":
        rng = random.Random(f"{engine} {seed}")
        kind, begin = rng.choice(KINDS), PASS * rng.randrange(2)
        steps = sorted(rng.sample(range(1, PASS), rng.randint(2, 5)))
        return cls(
            engine,
            seed,
            kind,
            tuple(
                Interruption(
                    begin + step,
                    rng.choice(["SIGKILL", "SIGTERM"]),
                    rng.choice([0.0, rng.uniform(0, 0.02), rng.uniform(0, 0.1)]),
                )
                for step in steps
            ),
        )

    @property
    def command(self) -> str:
        """What does the same again."""
        return f"python tests/soak/resume.py --engine {self.engine} --seed {self.seed} --runs 1"


# ---- in the process of a run ----------------------------------------------------------------


def train(folder: str, data: str, kind: str, steps: int, interruption: Optional[dict]) -> None:
    """A deterministic run with everything that has a state of its own."""
    import resume_task

    from hortus.core import (
        controller,
        distribute_utils,
        exp_factory,
        performance,
        task_factory,
        train_lib,
    )

    if not os.path.isdir(data):
        resume_task.write_files(data)
    params = exp_factory.get_exp_config("interrupted")
    params.override(resume_task.settings(kind, data, steps))
    performance.set_seed_and_determinism(params.runtime)
    strategy = distribute_utils.get_distribution_strategy("one_device")
    with strategy.scope():
        task = task_factory.get_task(params.task)
    reached = threading.Event()  # in the loop whose last step is the one, or a later one

    class Controller(controller.Controller):
        def _train_part(self, steps: int, first: bool, last: bool) -> Any:
            if interruption and self.step + steps > interruption["step"]:
                reached.set()
            return super()._train_part(steps, first, last)

    def interrupt(number: int, seconds: float) -> None:
        reached.wait()
        time.sleep(seconds)
        os.kill(os.getpid(), number)

    if interruption:
        arguments = (getattr(signal, interruption["signal"]), interruption["seconds"])
        threading.Thread(target=interrupt, args=arguments, daemon=True).start()
    train_lib.run_experiment(
        strategy, task, "train_and_eval", params, folder, controller_cls=Controller
    )


def serve(engine_name: str) -> None:
    """Forks a run for each line of the input, which has its arguments, and answers how it ended."""
    from hortus import engine

    engine.select(engine_name)
    import resume_task  # noqa: F401

    import hortus.core.train_lib

    if engine_name == "jax":
        import hortus.engine.jax.engine  # noqa: F401
    print("ready", flush=True)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            arguments, code = json.loads(line), 1
            log = os.open(f"{arguments['folder']}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(log, 1)
            os.dup2(log, 2)
            try:
                train(**arguments)
                code = 0
            except SystemExit as stop:
                code = int(stop.code or 0)
            except BaseException:  # noqa: BLE001, the process ends here, whatever it was
                traceback.print_exc()
            sys.stderr.flush()
            os._exit(code)  # without what this process would do at its end
        print(f"started {child}", flush=True)
        status = os.waitpid(child, 0)[1]
        print(f"ended {os.waitstatus_to_exitcode(status)}", flush=True)


# ---- in the process that starts runs --------------------------------------------------------


class Runs:
    """Starts runs on an engine, one after another, with all their files below `folder`."""

    def __init__(self, engine: str, folder: "str | os.PathLike[str]"):
        from hortus.testing.engines import child_environment

        self.engine, self.folder = engine, pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--serve", engine],
            env=child_environment(engine),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._whole: dict[str, dict[str, Any]] = {}
        assert self._answer() == "ready"

    def __enter__(self) -> "Runs":
        return self

    def __exit__(self, *unused: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=_PATIENCE)

    def start(
        self,
        name: str,
        kind: str = "table",
        steps: int = STEPS,
        interruption: Optional[Interruption] = None,
    ) -> int:
        """Starts a run in the folder of this name, and returns the id of its process."""
        assert self._process.stdin is not None
        arguments = {
            "folder": str(self.folder / name),
            "data": str(self.folder / "data"),
            "kind": kind,
            "steps": steps,
            "interruption": interruption and dataclasses.asdict(interruption),
        }
        self._process.stdin.write(json.dumps(arguments) + "\n")
        self._process.stdin.flush()
        return int(self._answer().removeprefix("started "))

    def end(self) -> int:
        """Waits for the run, and returns its exit code, negative for a signal."""
        return int(self._answer().removeprefix("ended "))

    def run(self, name: str, kind: str = "table", steps: int = STEPS) -> None:
        """A run that comes to its end."""
        self.start(name, kind, steps)
        code = self.end()
        assert code == 0, f"a run ended with {code}, see {self.folder / name}.log"

    def whole(self, kind: str) -> dict[str, Any]:
        """The outcome of the run of this kind of data that is left alone."""
        if kind not in self._whole:
            self.run(f"whole_{kind}", kind)
            self._whole[kind] = outcome(self.folder / f"whole_{kind}")
        return self._whole[kind]

    def attempt(self, attempt: Attempt) -> tuple[int, list[str]]:
        """Interrupts a run; returns how often, and what differs in the end."""
        expected, name = self.whole(attempt.kind), f"run_{attempt.seed}"
        count = 0
        for interruption in attempt.interruptions:
            self.start(name, attempt.kind, interruption=interruption)
            code = self.end()
            if code == 0:  # it was quicker than the signal
                break
            wanted = STOPPED if interruption.signal == "SIGTERM" else -signal.SIGKILL
            if code != wanted:
                return count, [f"exit code {code} instead of {wanted} after {interruption}"]
            count += 1
        else:
            self.run(name, attempt.kind)
        found = outcome(self.folder / name)
        return count, [part for part in expected if found.get(part) != expected[part]]

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        assert line, "the process that starts runs has ended"
        return line


def history(folder: "str | os.PathLike[str]") -> list[dict[str, Any]]:
    """The lines of metrics.jsonl, without the time."""
    path = pathlib.Path(folder, "metrics.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [{k: v for k, v in line.items() if k != "wall_time"} for line in lines]


def outcome(folder: pathlib.Path, steps: int = STEPS) -> dict[str, Any]:
    """All that a run leaves behind that has to be the same: tensors bit for bit, and metrics.

    The order of the data is one of the tensors.
    """
    found: dict[str, Any] = {"history": history(folder)}
    found["best"] = json.loads((folder / "best" / "info.json").read_text())
    manifest = json.loads((folder / f"ckpt-{steps}" / "manifest.json").read_text())
    found["position"] = manifest["state"]["data"]
    names = [
        f"ckpt-{steps}",
        f"ema_checkpoints/ckpt-{steps}",
        f"best/{found['best']['best_ckpt_name']}",
    ]
    for name in names:
        files = sorted((folder / name).glob("*.safetensors"))
        found[name] = [file.read_bytes() for file in files]
        if not files:
            raise FileNotFoundError(f"no tensors in {folder / name}")
    return found


def soak(
    engines: tuple[str, ...], first_seed: int, runs: Optional[int], minutes: Optional[float]
) -> int:
    """Interrupts runs on each engine in turn, tells of each, and returns the exit code."""
    seconds = None if minutes is None else 60 * minutes / len(engines)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="hortus_soak_"))
    done = {engine: [0, 0, 0] for engine in engines}
    print(
        f"{'run':>4}  {'engine':10}  {'seed':>5}  {'data':8}  {'outcome':8}  {'s':>5}  interrupted"
    )
    for engine in engines:
        until = None if seconds is None else time.monotonic() + seconds
        with Runs(engine, folder / engine) as server:
            for number in range(runs if runs is not None else sys.maxsize):
                if until is not None and time.monotonic() > until:
                    break
                attempt, start = Attempt.of(engine, first_seed + number), time.monotonic()
                count, differences = server.attempt(attempt)
                how = "DIFFERS" if differences else "equal"
                where = " ".join(map(str, attempt.interruptions[: count + bool(differences)]))
                print(
                    f"{number + 1:4}  {engine:10}  {attempt.seed:5}  {attempt.kind:8}  {how:8}  "
                    f"{time.monotonic() - start:5.1f}  {where}",
                    flush=True,
                )
                done[engine][0] += 1
                done[engine][1] += count
                if differences:
                    print(f"\nother than in the run that was left alone: {', '.join(differences)}")
                    print(f"the folders are in {folder / engine}; again: {attempt.command}")
                    return 1
                done[engine][2] += 1
                shutil.rmtree(folder / engine / f"run_{attempt.seed}")
    shutil.rmtree(folder)
    print(f"\n{'engine':10}  {'runs':>5}  {'interruptions':>13}  {'equal':>5}")
    for engine, (attempts, count, equal) in done.items():
        print(f"{engine:10}  {attempts:5}  {count:13}  {equal:5}")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--engine", choices=ENGINES, help="one of them; both by default")
    parser.add_argument("--runs", type=int, help="runs per engine; 10, unless --minutes is given")
    parser.add_argument("--minutes", type=float, help="how long, for all engines together")
    parser.add_argument("--seed", type=int, default=1, help="of the first run; then one by one")
    parser.add_argument("--serve", choices=ENGINES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return 0
    engines = (options.engine,) if options.engine else ENGINES
    runs = 10 if options.runs is None and options.minutes is None else options.runs
    return soak(engines, options.seed, runs, options.minutes)


if __name__ == "__main__":
    sys.exit(main())
