import numpy as np
import pytest
from keras import ops

from hortus.testing import reference_dir
from hortus.vision.losses import classification

CASES = {
    "one_hot": ("softmax", "onehot", {}, 1.0),
    "one_hot_ls0.1": ("softmax", "onehot", {"label_smoothing": 0.1}, 1.0),
    "sparse": ("softmax", "labels", {}, 1.0),
    "soft_labels": ("softmax", "soft", {}, 1.0),
    "bce": ("sigmoid", "onehot", {}, 1.0),
    "multilabel": ("sigmoid", "multilabel", {}, 5.0),
    "multilabel_ls0.1": ("sigmoid", "multilabel", {"label_smoothing": 0.1}, 5.0),
    "one_hot_lossweight2": ("softmax", "onehot", {}, 2.0),
}


@pytest.mark.parametrize("name", CASES)
def test_equals_reference(name):
    golden = np.load(reference_dir() / "golden/losses_classification.npz")
    kind, labels, options, factor = CASES[name]
    function = getattr(classification, f"{kind}_loss")
    loss = function(golden[labels], ops.convert_to_tensor(golden["logits"]), **options)
    # float32 sums of 30 terms in another order
    np.testing.assert_allclose(factor * np.asarray(loss), golden[f"{name}/loss"], rtol=2e-6)


def test_class_weights_count_each_class():
    logits = ops.convert_to_tensor(np.random.RandomState(0).normal(size=(4, 3)).astype("float32"))
    labels = np.array([0, 1, 2, 1])
    weights = [1.0, 0.0, 3.0]
    sparse = classification.softmax_loss(labels, logits, class_weights=weights)
    one_hot = classification.softmax_loss(np.eye(3)[labels], logits, class_weights=weights)
    log_p = np.asarray(ops.log_softmax(logits))
    expected = -(1 * log_p[0, 0] + 3 * log_p[2, 2]) / 4
    np.testing.assert_allclose(np.asarray(sparse), expected, rtol=1e-5)
    np.testing.assert_allclose(np.asarray(one_hot), expected, rtol=1e-5)


def test_probabilities_equal_logits():
    logits = np.random.RandomState(0).normal(size=(4, 3)).astype("float32")
    labels = np.array([0, 1, 2, 1])
    a = classification.softmax_loss(labels, ops.convert_to_tensor(logits))
    b = classification.softmax_loss(labels, ops.softmax(logits), from_logits=False)
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-5)
