import keras
import numpy as np
from keras import ops

from hortus.testing import reference_dir
from hortus.testing.engines import run_under_engine
from hortus.vision.evaluation import classification


def golden():
    return np.load(reference_dir() / "golden/metrics_classification.npz")


def measure(metrics, batches):
    for labels, outputs in batches:
        for metric in metrics:
            metric.update_state(labels, outputs)
    return {metric.name: np.asarray(metric.result()) for metric in metrics}


def check(results, expected, prefix):
    keys = [key for key in expected.files if key.startswith(prefix + "/")]
    assert sorted(keys) == sorted(f"{prefix}/{name}" for name in results)
    for name, value in results.items():
        # float32 counts and quotients; AUC sums 200 thresholds
        np.testing.assert_allclose(value, expected[f"{prefix}/{name}"], rtol=1e-5, err_msg=name)


def test_one_hot():
    data = golden()
    metrics = classification.single_label_metrics(False, top_k=5)
    batches = [(np.eye(8)[y], x) for y, x in zip(data["labels"], data["logits"], strict=True)]
    check(measure(metrics, batches), data, "one_hot_top5")


def test_class_numbers():
    data = golden()
    metrics = classification.single_label_metrics(True, top_k=3)
    batches = zip(data["labels"], data["logits"], strict=True)
    check(measure(metrics, batches), data, "sparse_top3")


def test_precision_and_recall_at_thresholds():
    data = golden()
    metrics = classification.single_label_metrics(
        False, top_k=2, thresholds=[0.3, 0.5], num_classes=8, per_class=True
    )
    batches = [
        (np.eye(8)[y], ops.softmax(x)) for y, x in zip(data["labels"], data["logits"], strict=True)
    ]
    prefix = "one_hot_pr_thresholds_softmaxed_inputs_softmax"
    check(measure(metrics, batches), data, prefix)


def test_multi_label():
    data = golden()
    metrics = classification.multi_label_metrics(8)
    batches = zip(data["multilabel"], data["logits"], strict=True)
    check(measure(metrics, batches), data, "multilabel_eval")


def test_confusion_matrix():
    matrix = classification.ConfusionMatrix(3, ["cat", "dog", "bird"])
    matrix.update_state([0, 0, 1, 5], [0, 1, 1, 2])
    matrix.update_state(np.array([[1]]), np.array([[0]]))
    np.testing.assert_array_equal(matrix.result(), [[1, 1, 0], [1, 1, 0], [0, 0, 0]])
    assert matrix.per_class_accuracy() == {"cat": 0.5, "dog": 0.5}
    matrix.reset_states()
    assert matrix.result().sum() == 0


def test_on_jax():
    run_under_engine("jax", __file__)


def test_metrics_round_trip():
    for metric in classification.single_label_metrics(False, thresholds=[0.5]):
        assert type(metric).from_config(metric.get_config()).name == metric.name
    assert keras.metrics.AUC in map(type, classification.multi_label_metrics(3))
