import pytest

from hortus.vision.data.checks import Finding, worst


def test_a_finding_shows_some_places_and_counts_the_rest():
    finding = Finding("error", "broken", tuple(f"{number}.png" for number in range(7)), 9)
    lines = str(finding).splitlines()
    assert lines[0] == "error: broken"
    assert lines[1] == "  0.png"
    assert lines[-1] == "  and 4 more"
    assert len(lines) == 7


def test_a_finding_about_no_place_is_one_line():
    assert str(Finding("note", "7 images", count=7)) == "note: 7 images"


def test_the_gravest_level_counts():
    note, warning, error = (Finding(level, "") for level in ("note", "warning", "error"))
    assert worst([]) == "note"
    assert worst([note, warning]) == "warning"
    assert worst([note, error, warning]) == "error"


def test_a_level_that_is_not_there_is_an_error():
    with pytest.raises(ValueError, match="level is one of error, warning, note"):
        Finding("bad", "")
