import os
import warnings

import keras
import numpy as np
import pytest

from hortus import testing
from hortus.core.checkpoints import errors, values
from hortus.core.checkpoints.checkpoint import Checkpoint
from hortus.core.checkpoints.store import StoredCheckpoint


def test_on_jax():
    testing.run_under_engine(
        "jax", __file__, select="comes_back or learning_rate or precision or near_names"
    )


class Data:
    """A position in the data, kept both ways."""

    def __init__(self, position=0):
        self.position, self.shuffle = position, position

    def get_state(self):
        return {"position": self.position}

    def set_state(self, state):
        self.position = state["position"]

    def save_files(self, folder):
        with open(os.path.join(folder, "shuffle.txt"), "w") as file:
            file.write(str(self.shuffle))

    def load_files(self, folder):
        with open(os.path.join(folder, "shuffle.txt")) as file:
            self.shuffle = int(file.read())


class Run:
    """Everything that a training run saves, with values that depend on `seed`."""

    def __init__(self, seed, classes=3):
        self.model = keras.Sequential(
            [
                keras.layers.Conv2D(4, 3),
                keras.layers.BatchNormalization(),
                keras.layers.Dropout(0.5, seed=seed),
                keras.layers.Dense(classes, name="head"),
            ]
        )
        self.model.build((None, 8, 8, 3))
        self.optimizer = keras.optimizers.Adam(0.1)
        self.optimizer.build(self.model.trainable_variables)
        self.half = keras.Variable(np.zeros(5), dtype="bfloat16")
        self.step = keras.Variable(0, dtype="int", trainable=False)
        self.loss = keras.metrics.Mean("loss")
        self.data = Data(seed)
        random = np.random.default_rng(seed)
        for named in self.checkpoint().layout().variables.values():
            variable = named.variable
            if keras.backend.is_float_dtype(variable.dtype):
                variable.assign(random.standard_normal(tuple(variable.shape)))
            elif named.kind != "seed":
                variable.assign(seed)

    def checkpoint(self, **more):
        return Checkpoint(
            model=self.model,
            optimizer=self.optimizer,
            half=self.half,
            step=self.step,
            metrics=[self.loss],
            data=self.data,
            **more,
        )


def content(checkpoint):
    """Every value, to the bit."""
    variables = checkpoint.layout().variables
    return {name: values.read(named.variable) for name, named in variables.items()}


def same(a, b):
    return a.keys() == b.keys() and all(
        a[name].dtype == b[name].dtype and a[name].tobytes() == b[name].tobytes() for name in a
    )


def test_everything_comes_back(tmp_path):
    saved, restored = Run(1), Run(2)
    before = content(saved.checkpoint())
    assert not same(content(restored.checkpoint()), before)
    path = saved.checkpoint().save(tmp_path / "a", step=7)
    assert restored.checkpoint().restore(path) == 7
    assert same(content(restored.checkpoint()), before)
    assert content(restored.checkpoint())["half"].dtype.name == "bfloat16"
    assert (restored.data.position, restored.data.shuffle) == (1, 1)
    assert os.listdir(tmp_path) == ["a"]


def test_the_manifest_tells_what_it_is(tmp_path):
    path = Run(1).checkpoint().save(tmp_path / "a", step=7, config={"task": {"name": "x"}})
    manifest = StoredCheckpoint.open(path).manifest
    assert (manifest.step, manifest.engine) == (7, keras.config.backend())
    assert manifest.keras == keras.__version__
    assert manifest.config == {"task": {"name": "x"}}
    assert manifest.variables["model/layers/conv2d-0/kernel"] == {
        "shape": [3, 3, 3, 4],
        "dtype": "float32",
        "kind": "weight",
    }


def test_the_learning_rate_of_the_config_wins(tmp_path):
    saved, restored = Run(1), Run(2)
    path = saved.checkpoint().save(tmp_path / "a")
    restored.optimizer.learning_rate = 0.25
    restored.checkpoint().restore(path)
    assert float(restored.optimizer.learning_rate) == 0.25


def test_an_evaluation_may_leave_out_items(tmp_path):
    saved, restored = Run(1), Run(2)
    path = saved.checkpoint().save(tmp_path / "a")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Checkpoint(model=restored.model).restore(path)
    assert same(content(Checkpoint(model=restored.model)), content(Checkpoint(model=saved.model)))


def test_shared_items_are_found_whichever_of_them_is_asked_for(tmp_path):
    saved, restored = Run(1), Run(2)
    head = saved.model.layers[-1]
    path = Checkpoint(head=head, model=saved.model).save(tmp_path / "a")
    Checkpoint(model=restored.model).restore(path)
    assert same(content(Checkpoint(model=restored.model)), content(Checkpoint(model=saved.model)))


def test_other_shapes_are_an_error_that_changes_nothing(tmp_path):
    path = Run(1).checkpoint().save(tmp_path / "a")
    other = Run(2, classes=5)
    before = content(other.checkpoint())
    with pytest.raises(errors.CheckpointError) as caught:
        other.checkpoint().restore(path)
    message = str(caught.value)
    assert "other shape: model/layers/head/bias is (3,) there and (5,) here" in message
    assert "init_checkpoint" in message
    assert same(content(other.checkpoint()), before)


def test_missing_and_superfluous_weights_are_an_error_with_near_names(tmp_path):
    path = Checkpoint(model=[keras.Variable(1.0), keras.Variable(2.0)]).save(tmp_path / "a")
    with pytest.raises(errors.CheckpointError) as caught:
        Checkpoint(model=[keras.Variable(1.0)], other=keras.Variable(1.0)).restore(path)
    message = str(caught.value)
    assert "only in the checkpoint: model/1 ()" in message
    assert "not in the checkpoint: other ()" in message
    assert "The checkpoint has no item other; it has model." in message


def test_loosely_what_fits_is_restored(tmp_path):
    path = Run(1).checkpoint().save(tmp_path / "a")
    other = Run(2, classes=5)
    with pytest.warns(errors.CheckpointWarning, match="does not fit in full"):
        other.checkpoint().restore(path, strict=False)
    ours, theirs = content(other.checkpoint()), content(Run(1).checkpoint())
    name = "model/layers/conv2d-0/kernel"
    assert ours[name].tobytes() == theirs[name].tobytes()


def test_new_metrics_and_seeds_are_no_error(tmp_path):
    saved, restored = Run(1), Run(2)
    path = saved.checkpoint().save(tmp_path / "a")
    more = [keras.metrics.Mean("new")]
    with pytest.warns(errors.CheckpointWarning, match="not in the checkpoint: more/new/total"):
        restored.checkpoint(more=more, seed=keras.random.SeedGenerator(1)).restore(path)
    assert same(content(restored.checkpoint()), content(saved.checkpoint()))


def test_unbuilt_things_are_recognised(tmp_path):
    path = Run(1).checkpoint().save(tmp_path / "a")
    model, optimizer = keras.Sequential([keras.layers.Dense(1)]), keras.optimizers.Adam(0.1)
    with pytest.raises(errors.CheckpointError, match="model has no variables yet"):
        Checkpoint(model=model).restore(path)
    with pytest.raises(errors.CheckpointError, match=r"optimizer\.build\(model"):
        Checkpoint(model=Run(1).model, optimizer=optimizer).restore(path)


def test_a_lower_precision_is_warned_about(tmp_path):
    path = Checkpoint(x=keras.Variable(1 / 3, dtype="float32")).save(tmp_path / "a")
    variable = keras.Variable(0.0, dtype="bfloat16")
    with pytest.warns(errors.CheckpointWarning, match="rounded"):
        Checkpoint(x=variable).restore(path)
    assert float(variable) == pytest.approx(1 / 3, rel=2**-8)  # bfloat16 has 8 bits


def test_missing_state_and_files_are_warned_about(tmp_path):
    path = Checkpoint(x=keras.Variable(1.0)).save(tmp_path / "a")
    data = Data(5)
    with pytest.warns(errors.CheckpointWarning) as caught:
        Checkpoint(x=keras.Variable(1.0), data=data).restore(path)
    messages = " ".join(str(warning.message) for warning in caught)
    assert "holds no state of data" in messages
    assert "holds no files of data" in messages
    assert (data.position, data.shuffle) == (5, 5)


def test_a_damaged_file_changes_nothing(tmp_path):
    path = Run(1).checkpoint().save(tmp_path / "a")
    for file in ("weights.safetensors", "host-00000/data/shuffle.txt"):
        full = os.path.join(path, file)
        with open(full, "rb") as opened:
            whole = opened.read()
        with open(full, "wb") as opened:
            opened.write(whole[:-1] + bytes([whole[-1] ^ 1]))
        run = Run(2)
        before = content(run.checkpoint())
        with pytest.raises(errors.CorruptCheckpointError, match=file):
            run.checkpoint().restore(path)
        assert same(content(run.checkpoint()), before)
        assert run.data.position == 2
        with open(full, "wb") as opened:
            opened.write(whole)


def test_a_failing_item_leaves_nothing_behind(tmp_path):
    class Failing(Data):
        def save_files(self, folder):
            raise RuntimeError("no position")

    with pytest.raises(RuntimeError, match="no position"):
        Checkpoint(data=Failing()).save(tmp_path / "a")
    assert os.listdir(tmp_path) == []


def test_state_that_json_cannot_hold_is_named(tmp_path):
    class Odd(Data):
        def get_state(self):
            return {"when": object()}

    with pytest.raises(errors.CheckpointError, match=r"data\.when is a object"):
        Checkpoint(data=Odd()).save(tmp_path / "a")


def test_an_address_is_refused():
    with pytest.raises(errors.CheckpointError, match="local or mounted"):
        Checkpoint(x=keras.Variable(1.0)).save("gs://bucket/a")


_OTHER_ENGINE = """
import numpy as np
from hortus.core.checkpoints import checkpoint_test as t
run = t.Run(2)
assert run.checkpoint().restore(OLD) == 7
np.savez(NEW + ".npz", **{name: value.astype("float64")
                          for name, value in t.content(run.checkpoint()).items()})
run.checkpoint().save(NEW, step=8)
"""


@pytest.mark.skipif(keras.config.backend() == "jax", reason="goes to JAX and back itself")
def test_the_other_engine_and_back_is_equal_to_the_bit(tmp_path):
    saved, returned = Run(1), Run(3)
    old, new = str(tmp_path / "old"), str(tmp_path / "new")
    before = content(saved.checkpoint())
    saved.checkpoint().save(old, step=7)
    testing.run_under_engine("jax", f"OLD, NEW = {old!r}, {new!r}\n{_OTHER_ENGINE}")
    there = np.load(new + ".npz")
    assert set(there) == set(before)
    for name, value in before.items():
        # float64 holds every value of these types.
        assert np.array_equal(there[name], value.astype("float64")), name
    assert StoredCheckpoint.open(new).manifest.engine == "jax"
    assert returned.checkpoint().restore(new) == 8
    assert same(content(returned.checkpoint()), before)
