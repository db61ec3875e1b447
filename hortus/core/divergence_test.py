import numpy as np

from hortus.core import divergence


def test_broken_terms_are_those_not_finite_or_above_the_bound():
    logs = {"loss": 9.0, "parts": {"box": np.float32("nan"), "class": 1.0}, "index": np.array([7])}
    assert divergence.broken_terms(logs, "loss", 10.0) == ["parts|box is nan"]
    assert divergence.broken_terms({"loss": 9.0}, "loss", 5.0) == ["loss is 9"]
    assert divergence.broken_terms({"other": 9.0}, "loss", 5.0) == []
    assert divergence.broken_terms(None, "loss", 5.0) == []


def test_a_saved_batch_names_arrays_by_their_place(tmp_path):
    batch = ({"image": np.ones([2, 3], "float32")}, np.array([1, 2]))
    path = divergence.save_batch(batch, str(tmp_path / "new"), 12, "_host_1")
    assert path.endswith("batch_of_step_12_host_1.npz")
    with np.load(path) as saved:
        assert sorted(saved) == ["0/image", "1"]
        np.testing.assert_array_equal(saved["1"], [1, 2])


def test_the_message_tells_a_repeated_fault_from_one_that_came_once():
    again = divergence.Divergence(5, ["loss is nan"], "batch.npz")
    once = divergence.Divergence(5, [], "batch.npz", is_repeated=False)
    assert "Step 5 did it (loss is nan); its batch is in batch.npz" in str(again)
    assert "suspect the hardware" in str(once)
