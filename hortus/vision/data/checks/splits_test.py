from hortus.vision.configs import image_classification as configs
from hortus.vision.data.checks import splits


def test_only_data_that_is_named_counts():
    task = configs.ImageClassificationTask()
    assert splits.named_splits(task) == {}
    task.override({"validation_data": {"input_path": "somewhere"}})
    assert list(splits.named_splits(task)) == ["validation_data"]


def test_a_finding_names_some_places_and_counts_all():
    finding = splits.some("warning", "files that are odd", [f"{n}.png" for n in range(100)])
    assert finding.count == 100 and len(finding.where) < 100
    assert finding.what == "files that are odd: 100"


def test_copies_are_told_with_their_share():
    seen = {"train_data": {b"a": "1.png"}, "validation_data": {b"a": "7.png", b"b": "8.png"}}
    (finding,) = splits.copies_across(seen)
    assert finding.level == "error" and finding.where == ("7.png = 1.png",)
    assert "(50.0% of validation_data)" in finding.what
    assert not list(splits.copies_across({"train_data": {b"a": "1.png"}}))
