import pytest

from hortus.core.pace import Pace


def run(pace, loop, seconds_per_step):
    """The parts that a loop is cut into."""
    parts = []
    while sum(parts) < loop:
        parts.append(pace.part(loop - sum(parts)))
        pace.learn(parts[-1], parts[-1] * seconds_per_step)
    return parts


def test_parts_grow_while_they_are_quick_up_to_the_whole_loop():
    pace = Pace(10, bool, can_split=True)
    assert run(pace, 20, 0.001) == [1, 2, 4, 8, 5]
    assert run(pace, 10, 0.001) == [10]


@pytest.mark.parametrize("can_split", [True, False])
def test_parts_of_slow_steps_stay_within_the_time(can_split):
    pace = Pace(10, bool, can_split)
    # A loop that cannot be cut without loss is cut once it is known to be slow: by halves.
    for _ in range(6):
        parts = run(pace, 100, 2.0)
    assert max(parts) * 2.0 <= 10
    assert sum(parts) == 100


def test_a_first_step_that_compiles_does_not_count_for_long():
    pace = Pace(10, bool, can_split=True)
    pace.learn(pace.part(1000), 60.0)
    assert run(pace, 1000, 0.01)[:4] == [1, 2, 4, 8]


def test_a_quick_loop_that_cannot_be_cut_is_never_cut():
    pace = Pace(10, bool, can_split=False)
    assert run(pace, 1000, 0.001) == [1000]


def test_the_slowest_host_decides():
    pace = Pace(10, lambda flag: True, can_split=False)
    for _ in range(2):
        assert pace.part(100) == 100
        pace.learn(100, 0.1)
    assert pace.part(100) == 50
