import threading

import keras
import pytest

from hortus.engine.dispatch import Dispatched, Setting

HERE = keras.backend.backend()


def plain(x, *, factor=1):
    """Multiplies."""
    return f"plain {x * factor}"


def way(x, *, factor=1):
    return f"fast {x * factor}" if x > 0 else None


def test_a_backend_comes_first_and_may_decline():
    function = Dispatched(plain)
    assert function(2, factor=3) == "plain 6"
    assert function.fast(2) is None
    function.on(HERE)(way)
    assert function(2, factor=3) == "fast 6"
    assert function(-1) == "plain -1"
    assert function.fast(-1) is None
    assert function.plain(2) == "plain 2"


def test_the_way_of_another_backend_is_not_taken():
    function = Dispatched(plain)
    function.on("numpy")(way)
    assert function(2) == "plain 2"


def test_it_tells_what_was_declared():
    assert (Dispatched(plain).__name__, Dispatched(plain).__doc__) == ("plain", "Multiplies.")


def test_a_second_way_on_a_backend_names_both_places():
    function = Dispatched(plain)
    function.on(HERE)(way)
    with pytest.raises(
        ValueError, match=rf"plain already has a way on {HERE}, from .*dispatch_test"
    ):
        function.on(HERE)(plain)


def test_a_setting_switches_what_it_lists():
    setting = Setting("some")
    governed, free = Dispatched(plain, setting), Dispatched(plain)
    for function in (governed, free):
        function.on(HERE)(way)
    assert setting.governs == ["plain"]
    with setting.scope(False):
        assert (governed(2), free(2)) == ("plain 2", "fast 2")
        with setting.scope(True):
            assert governed(2) == "fast 2"
        seen = []
        thread = threading.Thread(target=lambda: seen.append(governed(2)))
        thread.start()
        thread.join()
        assert seen == ["plain 2"]  # as a strategy's replicas would see it
    assert governed(2) == "fast 2"
    setting.allow(False)
    assert governed(2) == "plain 2"


def test_a_scope_ends_with_an_error_too():
    setting = Setting("some")
    with pytest.raises(KeyError), setting.scope(False):
        raise KeyError
    assert setting.allowed


def test_a_training_step_is_known_inside_only():
    setting = Setting("some")
    with setting.training_step():
        assert setting.in_training_step
    assert not setting.in_training_step


def test_a_replacement_comes_before_all_else():
    function = Dispatched(plain)
    function.on(HERE)(way)
    with function.replaced(lambda x: f"other {x}"):
        assert function(2) == "other 2"
    assert function(2) == "fast 2"
