import io
import json
import math
import os
import signal
import types

import pytest

from hortus.core import actions, event_file
from hortus.core import controller as controller_lib
from hortus.core.controller import Controller
from hortus.core.metrics_history import MetricsHistory
from hortus.core.progress import Progress
from hortus.core.summary_manager import SummaryManagerInterface


class KillError(BaseException):
    """The process ends here."""


class Step:
    """A variable that counts."""

    def __init__(self):
        self.value = 0

    def numpy(self):
        return self.value


class Trainer:
    """Its weight after step n is the sum of 1 to n; its loss is the mean weight of a loop."""

    def __init__(self, bomb=None):
        self.global_step = Step()
        self.weight = 0
        self.loops = []
        self.evaluations = []
        self.nan_at = set()
        self.on_step = lambda step: None
        self.on_batch = lambda step, batch: None
        self.poll = lambda: None
        self.timing = types.SimpleNamespace(
            examples=64, seconds=2.0, data_wait_seconds=0.5, reset=lambda: None
        )
        self._bomb = bomb or (lambda: None)

    def train(self, num_steps):
        seen = self._steps(num_steps)
        self._bomb()
        self.loops.append(self.global_step.value)
        return {"training_loss": sum(seen) / len(seen), "learning_rate": 0.1}

    def _steps(self, num_steps):
        seen = []
        for _ in range(num_steps):
            self.global_step.value += 1
            self.weight += self.global_step.value
            bad = self.global_step.value in self.nan_at
            seen.append(math.nan if bad else float(self.weight))
            self.on_step(self.global_step.value)
        return seen

    def evaluate(self, num_steps):
        self._bomb()
        step = self.global_step.value
        for batch in range(3):
            self.poll()
            self.on_batch(step, batch)
        self.evaluations.append((step, num_steps))
        return {"accuracy": self.weight / 1000, "sub": {"score": step}}


class SplittingTrainer(Trainer):
    """Loops may come in parts, as those of real trainers."""

    def __init__(self):
        super().__init__()
        self.parts = []
        self.seen = []

    def train_part(self, num_steps, first, last):
        self.seen = ([] if first else self.seen) + self._steps(num_steps)
        self.parts.append(num_steps)
        if not last:
            return {}
        self.loops.append(self.global_step.value)
        return {"training_loss": sum(self.seen) / len(self.seen)}


class Manager:
    """A checkpoint manager of one trainer: a file per checkpoint."""

    def __init__(self, trainer, directory, bomb=None):
        self.trainer, self.directory = trainer, str(directory)
        self.saved, self.waits = [], 0
        self._bomb = bomb or (lambda: None)

    @property
    def checkpoints(self):
        found = [f for f in os.listdir(self.directory) if f.startswith("ckpt-")]
        found.sort(key=lambda name: int(name[5:]))
        return [os.path.join(self.directory, name) for name in found]

    @property
    def latest_checkpoint(self):
        return self.checkpoints[-1] if self.checkpoints else None

    def save(self, step, force=False):
        path = os.path.join(self.directory, f"ckpt-{step}")
        if path not in self.checkpoints or force:
            self._bomb()
            with open(path, "w") as file:
                json.dump([step, self.trainer.weight], file)
            self.saved.append(step)
            self._bomb()
        return path

    def restore(self, path=None):
        path = path or self.latest_checkpoint
        if path is None:
            return None
        with open(path) as file:
            self.trainer.global_step.value, self.trainer.weight = json.load(file)
        return self.trainer.global_step.value

    def wait(self):
        self.waits += 1


def build(folder, trainer=None, bomb=None, **options):
    """A controller over a fake trainer, with everything that a run writes below `folder`."""
    trainer = trainer or Trainer(bomb)
    options = {
        "steps_per_loop": 10,
        "summary_interval": 20,
        "checkpoint_interval": 30,
        "summary_dir": folder / "train",
        "eval_summary_dir": folder / "validation",
        "history": MetricsHistory(folder / "metrics.jsonl"),
        **options,
    }
    return Controller(
        trainer=trainer,
        evaluator=trainer,
        global_step=trainer.global_step,
        checkpoint_manager=Manager(trainer, folder, bomb),
        **options,
    )


def history(folder):
    with open(folder / "metrics.jsonl") as file:
        lines = [json.loads(line) for line in file]
    return [(line["step"], line["split"], line["values"]) for line in lines]


def event_steps(folder):
    """The steps of all events that TensorBoard would show of a folder, without version events."""
    found = []
    for path in event_file.paths(str(folder)):
        with open(path, "rb") as file:
            found += [step for step, _ in event_file._records(file.read()) if step]
    return sorted(found)


def splits(folder, split):
    return [step for step, name, _ in history(folder) if name == split]


# ---- the loop -------------------------------------------------------------------------------


def test_everything_falls_on_its_step(tmp_path):
    controller = build(tmp_path, steps_per_loop=7)
    logs = controller.train_and_evaluate(100, eval_steps=5, eval_interval=25)
    trainer, manager = controller.trainer, controller.checkpoint_manager
    assert trainer.global_step.value == 100
    sevens = set(range(7, 100, 7))
    assert set(trainer.loops) == sevens | {20, 40, 60, 80, 100, 30, 90, 25, 50, 75}
    assert trainer.loops == sorted(trainer.loops)
    assert manager.saved == [30, 60, 90, 100]
    assert trainer.evaluations == [(25, 5), (50, 5), (75, 5), (100, 5)]
    assert splits(tmp_path, "train") == [20, 40, 60, 80, 100]
    assert splits(tmp_path, "validation") == [25, 50, 75, 100]
    assert logs == {"accuracy": 5.05, "sub": {"score": 100}}
    assert manager.waits > 0


def test_tensorboard_gets_the_same_with_nested_logs_in_sub_folders(tmp_path):
    build(tmp_path).train_and_evaluate(40, eval_interval=20)
    # Four values per summary: loss, learning rate, examples per second, share of waiting.
    assert event_steps(tmp_path / "train") == [20] * 4 + [40] * 4
    assert event_steps(tmp_path / "validation" / "sub") == [20, 40]


def test_rates_are_in_the_summaries_but_not_in_the_history(tmp_path):
    written = []

    class Manager(SummaryManagerInterface):
        def flush(self):
            written.append("flush")

        def summary_writer(self, relative_path=""):
            raise NotImplementedError

        def write_summaries(self, summary_dict):
            written.append(summary_dict)

    build(tmp_path, summary_manager=Manager()).train(20)
    assert written == [
        {
            "training_loss": pytest.approx(sum(n * (n + 1) / 2 for n in range(11, 21)) / 10),
            "learning_rate": 0.1,
            "examples_per_second": 32.0,
            "data_wait_share": 0.25,
        },
        "flush",
    ]
    assert set(history(tmp_path)[0][2]) == {"training_loss", "learning_rate"}


def test_train_means_until_that_step_and_evaluates_nothing(tmp_path):
    controller = build(tmp_path)
    controller.train(20)
    controller.train(45)
    controller.train(45)
    assert controller.trainer.loops == [10, 20, 30, 40, 45]
    assert controller.checkpoint_manager.saved == [20, 30, 45]
    assert controller.trainer.evaluations == []


def test_steps_per_loop_may_be_a_function_or_nothing(tmp_path):
    controller = build(
        tmp_path,
        steps_per_loop=lambda step: 5 if step < 10 else 20,
        summary_interval=None,
        checkpoint_interval=None,
    )
    controller.train(50)
    assert controller.trainer.loops == [5, 10, 20, 40, 50]
    assert splits(tmp_path, "train") == [5, 10, 20, 40, 50]
    other = build(tmp_path, steps_per_loop=None, summary_interval=None, checkpoint_interval=None)
    other.train(50)
    assert other.trainer.loops == [50]


def test_without_files_it_trains_all_the_same(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trainer = Trainer()
    controller = Controller(
        trainer=trainer, evaluator=trainer, global_step=trainer.global_step, steps_per_loop=5
    )
    assert controller.restore_checkpoint() is None
    assert controller.save_checkpoint() is None
    assert controller.train_and_evaluate(10)["sub"] == {"score": 10}
    assert os.listdir(tmp_path) == []


def test_the_scope_of_the_strategy_is_open_while_training_and_evaluating(tmp_path):
    import contextlib

    opened = []

    @contextlib.contextmanager
    def scope():
        opened.append(True)
        yield
        opened.append(False)

    build(tmp_path, strategy=types.SimpleNamespace(scope=scope)).train_and_evaluate(10)
    assert opened == [True, False, True, False]


def test_sanity_check_leaves_no_trace(tmp_path):
    controller = build(tmp_path, eval_actions=lambda logs: 1 / 0)
    controller.sanity_check(2)
    controller.sanity_check(0)
    assert controller.trainer.evaluations == [(0, 2)]
    assert os.listdir(tmp_path) == []


# ---- restarts -------------------------------------------------------------------------------


def test_a_restart_goes_on_where_the_checkpoint_is_and_writes_nothing_twice(tmp_path):
    first = build(tmp_path)

    def on_step(step):
        if step == 55:
            raise KillError

    first.trainer.on_step = on_step
    with pytest.raises(KillError):
        first.train_and_evaluate(100, eval_interval=20)
    assert splits(tmp_path, "train") == [20, 40]
    second = build(tmp_path)
    assert second.restore_checkpoint() == 30
    second.train_and_evaluate(100, eval_interval=20)
    assert second.trainer.loops == [40, 50, 60, 70, 80, 90, 100]
    assert splits(tmp_path, "train") == [20, 40, 60, 80, 100]
    assert splits(tmp_path, "validation") == [20, 40, 60, 80, 100]
    assert event_steps(tmp_path / "validation" / "sub") == [20, 40, 60, 80, 100]


def test_a_run_that_is_complete_does_nothing(tmp_path):
    build(tmp_path).train_and_evaluate(40)
    before = history(tmp_path)
    again = build(tmp_path)
    again.restore_checkpoint()
    assert again.train_and_evaluate(40) == {}
    assert again.trainer.loops == [] and again.trainer.evaluations == []
    assert history(tmp_path) == before


class BombedHistory(MetricsHistory):
    def __init__(self, path, bomb):
        super().__init__(path)
        self._bomb = bomb

    def record(self, step, split, logs):
        self._bomb()
        super().record(step, split, logs)
        self._bomb()


@pytest.mark.parametrize("fuse", range(1, 49))  # as many things as happen
def test_a_kill_anywhere_leaves_the_history_of_an_uninterrupted_run(tmp_path, monkeypatch, fuse):
    """Kills between any two things that a run does, actions included, then runs it again."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # for speed
    intervals = {"steps_per_loop": 6, "summary_interval": 12, "checkpoint_interval": 24}

    def run(folder, bomb):
        folder.mkdir(exist_ok=True)
        stopping = actions.EarlyStopping("accuracy", 9, filename=folder / "stop.json")
        best = actions.NewBestMetric("accuracy", filename=folder / "best.json")
        controller = build(
            folder,
            bomb=bomb,
            train_actions=lambda logs: bomb(),
            eval_actions=[lambda logs: bomb(), stopping, best, lambda logs: bomb()],
            history=BombedHistory(folder / "metrics.jsonl", bomb),
            **intervals,
        )
        controller.restore_checkpoint()
        controller.train_and_evaluate(48, eval_interval=12)
        return controller

    count = []
    whole = run(tmp_path / "whole", lambda: count.append(1))
    assert len(count) == 48
    left = [fuse]

    def bomb():
        left[0] -= 1
        if left[0] == 0:
            raise KillError

    with pytest.raises(KillError):
        run(tmp_path / "killed", bomb)
    resumed = run(tmp_path / "killed", lambda: None)
    assert resumed.trainer.weight == whole.trainer.weight
    assert history(tmp_path / "killed") == history(tmp_path / "whole")
    for name in ("stop.json", "best.json"):
        assert (tmp_path / "killed" / name).read_text() == (tmp_path / "whole" / name).read_text()
    for name in ("train", "validation"):
        assert event_steps(tmp_path / "killed" / name) == event_steps(tmp_path / "whole" / name)


def test_an_evaluation_alone_leaves_the_history_alone(tmp_path):
    controller = build(tmp_path)
    controller.train_and_evaluate(60, eval_interval=30)
    before = history(tmp_path)
    again = build(tmp_path)
    again.restore_checkpoint(again.checkpoint_manager.checkpoints[0])
    assert again.evaluate(3)["sub"] == {"score": 30}
    assert again.trainer.evaluations == [(30, 3)]
    assert history(tmp_path) == before
    assert event_steps(tmp_path / "validation" / "sub") == [30, 60]


def test_a_trainer_hears_of_a_restore(tmp_path):
    build(tmp_path).train(30)
    controller = build(tmp_path)
    heard = []
    controller.trainer.after_restore = lambda: heard.append(controller.step)
    controller.restore_checkpoint()
    assert heard == [30]


# ---- actions --------------------------------------------------------------------------------


def test_actions_get_the_logs_and_hear_of_beginning_and_end(tmp_path):
    told = []

    class Recorder(actions.Action):
        def rewind(self, step):
            told.append(("from", step))

        def begin(self):
            told.append("begin")

        def __call__(self, logs):
            told.append((self.controller.step, "accuracy" in logs))

        def end(self):
            told.append("end")

    recorder = Recorder()
    controller = build(tmp_path, train_actions=[recorder], eval_actions=Recorder())
    controller.train_and_evaluate(20, eval_interval=10)
    start = [("from", 0)] * 2 + ["begin"] * 2
    assert told == start + [(10, False), (10, True), (20, False), (20, True)] + ["end"] * 2


def test_early_stopping_ends_with_a_checkpoint_and_stays(tmp_path):
    def run():
        stop = actions.EarlyStopping(
            lambda logs: -logs["accuracy"], patience=2, filename=tmp_path / "stop.json"
        )
        controller = build(tmp_path, eval_actions=[stop])
        controller.restore_checkpoint()
        controller.train_and_evaluate(1000, eval_interval=20)
        return controller

    assert run().checkpoint_manager.saved == [30, 60]
    assert run().trainer.loops == []


def test_max_time_ends_with_a_checkpoint(tmp_path):
    stream = io.StringIO()
    controller = build(
        tmp_path, train_actions=actions.MaxTime(1e-9), progress=Progress(stream=stream)
    )
    controller.trainer.global_step.value = 5
    controller.train_and_evaluate(1000, eval_interval=10)
    assert controller.checkpoint_manager.saved == [5]
    assert "Stopped at step 5: the time of 1e-09 seconds is over" in stream.getvalue()


def test_recovery_goes_back_and_nothing_of_the_failure_remains(tmp_path):
    (tmp_path / "good").mkdir()
    build(tmp_path / "good").train_and_evaluate(100, eval_interval=20)
    (tmp_path / "bad").mkdir()
    controller = build(
        tmp_path / "bad", train_actions=actions.Recovery(recovery_max_trials=1, folder="x")
    )
    trainer = controller.trainer
    trainer.nan_at = {55}
    trainer.on_step = lambda step: step == 60 and trainer.nan_at.clear()
    controller.train_and_evaluate(100, eval_interval=20)
    assert controller.checkpoint_manager.saved == [0, 30, 30, 60, 90, 100]
    assert trainer.loops == [10, 20, 30, 40, 50, 60, 40, 50, 60, 70, 80, 90, 100]
    assert history(tmp_path / "bad") == history(tmp_path / "good")
    assert event_steps(tmp_path / "bad" / "train") == event_steps(tmp_path / "good" / "train")


def test_a_diverged_state_is_never_saved(tmp_path):
    controller = build(tmp_path, train_actions=actions.Recovery())
    controller.trainer.nan_at = {58}
    with pytest.raises(actions.DivergedError, match="step 60: training_loss is nan"):
        controller.train(100)
    assert controller.checkpoint_manager.saved == [0, 30]
    assert math.isnan(history(tmp_path)[-1][2]["training_loss"])


# ---- signals --------------------------------------------------------------------------------


def kill(signum):
    os.kill(os.getpid(), signum)


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGTERM, 75), (signal.SIGINT, 130)])
def test_a_signal_lets_the_loop_end_then_saves_then_exits(tmp_path, signum, code):
    stream = io.StringIO()
    first = build(tmp_path, train_actions=actions.Preemption(), progress=Progress(stream=stream))
    first.trainer.on_step = lambda step: step == 13 and kill(signum)
    with pytest.raises(actions.Preempted) as stop:
        first.train_and_evaluate(60, eval_interval=20)
    assert stop.value.code == code
    assert first.checkpoint_manager.saved == [20] and first.trainer.evaluations == []
    assert "run the same command again" in stream.getvalue()
    second = build(tmp_path)
    assert second.restore_checkpoint() == 20
    second.train_and_evaluate(60, eval_interval=20)
    # The evaluation that was due at step 20 is made up for.
    assert splits(tmp_path, "validation") == [20, 40, 60]
    assert splits(tmp_path, "train") == [20, 40, 60]


def test_a_second_ctrl_c_stops_at_once(tmp_path):
    controller = build(tmp_path, train_actions=actions.Preemption())
    controller.trainer.on_step = lambda step: step in (12, 15) and kill(signal.SIGINT)
    former = signal.getsignal(signal.SIGINT)  # a process in the background ignores it
    with pytest.raises(KeyboardInterrupt):
        controller.train(60)
    assert controller.step == 15 and controller.checkpoint_manager.saved == []
    assert signal.getsignal(signal.SIGINT) is former


def test_a_signal_leaves_an_evaluation_before_its_next_batch(tmp_path):
    first = build(tmp_path, train_actions=actions.Preemption())
    batches = []

    def on_batch(step, batch):
        batches.append((step, batch))
        if step == 40 and batch == 1:
            kill(signal.SIGTERM)

    first.trainer.on_batch = on_batch
    with pytest.raises(actions.Preempted) as stop:
        first.train_and_evaluate(60, eval_interval=20)
    assert batches[-1] == (40, 1)
    assert stop.value.checkpoint.endswith("ckpt-40")
    assert splits(tmp_path, "validation") == [20]
    second = build(tmp_path)
    second.restore_checkpoint()
    second.train_and_evaluate(60, eval_interval=20)
    assert splits(tmp_path, "validation") == [20, 40, 60]


@pytest.fixture
def clock(monkeypatch):
    clock = types.SimpleNamespace(now=0.0)
    clock.monotonic = lambda: clock.now
    clock.sleep = lambda seconds: setattr(clock, "now", clock.now + seconds)
    monkeypatch.setattr(controller_lib, "time", clock)
    return clock


def test_long_loops_are_cut_without_a_trace(tmp_path, clock):
    trainer = SplittingTrainer()
    trainer.on_step = lambda step: clock.sleep(1.0)
    build(
        tmp_path, trainer, steps_per_loop=100, summary_interval=100, checkpoint_interval=None
    ).train(200)
    assert trainer.loops == [100, 200]
    assert trainer.parts[:4] == [1, 2, 4, 8] and max(trainer.parts) <= 10
    whole = Trainer()
    (tmp_path / "whole").mkdir()
    build(
        tmp_path / "whole",
        whole,
        steps_per_loop=100,
        summary_interval=100,
        checkpoint_interval=None,
    ).train(200)
    losses = [values["training_loss"] for _, _, values in history(tmp_path)]
    assert losses == [values["training_loss"] for _, _, values in history(tmp_path / "whole")]


def test_a_signal_in_a_long_loop_is_answered_soon(tmp_path, clock):
    trainer = SplittingTrainer()
    asked = []

    def on_step(step):
        clock.sleep(1.0)
        if step == 350:
            asked.append(clock.now)
            kill(signal.SIGTERM)

    trainer.on_step = on_step
    controller = build(
        tmp_path,
        trainer,
        steps_per_loop=1000,
        summary_interval=None,
        checkpoint_interval=1000,
        train_actions=[actions.Preemption()],
    )
    with pytest.raises(actions.Preempted):
        controller.train(5000)
    assert clock.now - asked[0] < 10
    assert controller.checkpoint_manager.saved == [controller.step]
    assert trainer.parts[-1] == 0  # the loop was brought to its end
    assert not (tmp_path / "metrics.jsonl").exists()  # and no summary stands amid a loop


def test_loops_of_a_trainer_that_cannot_split_them_get_shorter(tmp_path, clock):
    trainer = Trainer()
    trainer.on_step = lambda step: clock.sleep(1.0)
    build(
        tmp_path, trainer, steps_per_loop=100, summary_interval=None, checkpoint_interval=None
    ).train(1000)
    assert trainer.loops[0] == 100
    steps = [b - a for a, b in zip(trainer.loops[10:], trainer.loops[11:], strict=False)]
    assert max(steps) <= 10


# ---- several hosts --------------------------------------------------------------------------


def test_another_host_is_told_to_stop(tmp_path):
    """The first question of each round is whether anyone stops; here someone got SIGTERM."""
    controller = build(tmp_path, any_host=lambda flag: flag or controller.step >= 20)
    with pytest.raises(actions.Preempted) as stop:
        controller.train(100)
    assert stop.value.signum == signal.SIGTERM
    assert controller.checkpoint_manager.saved == [20]


def test_an_evaluation_that_other_hosts_take_part_in_is_not_left(tmp_path):
    controller = build(tmp_path, train_actions=actions.Preemption(), any_host=bool)
    controller.trainer.on_batch = lambda step, batch: batch == 0 and kill(signal.SIGTERM)
    with pytest.raises(actions.Preempted):
        controller.train_and_evaluate(60, eval_interval=20)
    assert splits(tmp_path, "validation") == [20]
    assert controller.checkpoint_manager.saved == [20]


def test_a_host_without_history_follows_the_one_that_has_it(tmp_path):
    build(tmp_path).train_and_evaluate(30, eval_interval=30)
    answers = []

    def any_host(flag):
        answers.append(flag)
        # Nobody stops; but the chief has the evaluation on record.
        return len(answers) == 2

    other = build(tmp_path, history=None, any_host=any_host)
    other.restore_checkpoint()
    other.train_and_evaluate(30, eval_interval=30)
    assert other.trainer.evaluations == []


# ---- continuous evaluation ------------------------------------------------------------------


def test_each_new_checkpoint_is_evaluated_until_none_comes(tmp_path, clock):
    writer = Manager(Trainer(), tmp_path)
    evaluator = build(tmp_path)

    def write(step):
        writer.trainer.weight = step
        writer.save(step)

    write(10)
    sleep = clock.sleep

    def sleep_and_write(seconds):
        sleep(seconds)
        if clock.now in (3, 7):
            write(int(clock.now * 10))

    clock.sleep = sleep_and_write
    logs = evaluator.evaluate_continuously(steps=4, timeout=30)
    assert evaluator.trainer.evaluations == [(10, 4), (30, 4), (70, 4)]
    assert logs["sub"] == {"score": 70}
    assert 37 <= clock.now <= 39
    assert splits(tmp_path, "validation") == [10, 30, 70]


def test_a_checkpoint_that_is_gone_before_it_is_read_is_passed_over(tmp_path, clock):
    manager = Manager(Trainer(), tmp_path)
    manager.save(10)
    evaluator = build(tmp_path)
    restore = evaluator.checkpoint_manager.restore

    def restore_too_late(path):
        if path.endswith("ckpt-10"):
            os.remove(path)
            manager.save(20)
        return restore(path)

    evaluator.checkpoint_manager.restore = restore_too_late
    evaluator.evaluate_continuously(timeout=5)
    assert evaluator.trainer.evaluations == [(20, -1)]


def test_a_checkpoint_that_cannot_be_restored_is_an_error(tmp_path, clock):
    (tmp_path / "ckpt-10").write_text("[]")
    with pytest.raises(ValueError, match="unpack"):
        build(tmp_path).evaluate_continuously(timeout=5)


def test_it_ends_after_the_last_step_or_when_asked(tmp_path, clock):
    Manager(Trainer(), tmp_path).save(10)
    evaluator = build(tmp_path)
    assert evaluator.evaluate_continuously(last_step=10)["sub"] == {"score": 10}
    answers = iter([False, True])
    build(tmp_path).evaluate_continuously(timeout=5, timeout_fn=lambda: next(answers))
    assert next(answers, "asked twice") == "asked twice"
