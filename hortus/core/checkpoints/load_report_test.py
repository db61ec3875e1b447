import io

from rich import console

from hortus.core.checkpoints.load_report import LoadReport, Row


def example():
    return LoadReport(
        "/runs/a",
        ["backbone", "head"],
        loaded=[
            Row("backbone/stem/kernel", (3, 3), (3, 3), "model/backbone/stem/kernel"),
            Row("backbone/stem/bias", (3,), (3,), "model/backbone/stem/bias", by_order=True),
            Row("backbone/scale", (), (), "model/backbone/scale"),
        ],
        skipped=[Row("head/kernel", (4, 7), (4, 3), "model/head/kernel")],
        missing=[Row("head/extra", (7,))],
        unused=[Row("head/old", None, (2,), "model/head/old")],
    )


def test_summary():
    assert example().summary() == (
        "backbone, head from /runs/a: 3 loaded (1 of them by order and shape), 1 skipped for their "
        "shape, 1 missing, 1 unused"
    )


def test_plain_table_groups_what_was_loaded():
    assert str(example()).splitlines()[1:] == [
        "                      variable                     model   file",
        "loaded                backbone/stem (2 variables)",
        "loaded                backbone (1 variable)",
        "skipped, other shape  head/kernel                  (4, 7)  (4, 3)",
        "missing in the file   head/extra                   (7,)",
        "unused in the file    head/old                             (2,)",
    ]


def test_plain_table_of_every_variable():
    lines = example().plain_table(every=True).splitlines()
    assert lines[2].split() == ["loaded", "backbone/stem/kernel", "(3,", "3)", "(3,", "3)"]
    assert lines[3].startswith("loaded by order")
    assert len(lines) == 2 + 6


def test_rich_table():
    text = io.StringIO()
    console.Console(file=text, width=120).print(example().rich_table(every=True))
    for word in ("head/kernel", "(4, 7)", "(4, 3)", "missing in the file", "loaded by order"):
        assert word in text.getvalue()
