import pytest

from hortus import registry


@pytest.fixture
def animals():
    animals = registry.Registry("animal")
    for name in ("badger", "beaver", "wolf"):
        registry.register(animals, name)(lambda name=name: name)
    return animals


def test_register_returns_the_item_and_lookup_finds_it(animals):
    @registry.register(animals, "fox")
    def fox():
        return "fox"

    assert fox() == "fox"
    assert registry.lookup(animals, "fox") is fox


def test_a_duplicate_raises_and_names_both_places(animals):
    @registry.register(animals, "fox")
    def first(): ...

    def second(): ...

    with pytest.raises(KeyError) as caught:
        registry.register(animals, "fox")(second)
    message = str(caught.value)
    assert "animal 'fox' is registered twice" in message
    assert "first" in message and "second" in message
    assert registry.lookup(animals, "fox") is first


def test_a_miss_lists_near_names_and_modules(animals):
    with pytest.raises(LookupError) as caught:
        registry.lookup(animals, "bever")
    message = str(caught.value)
    assert message.startswith("unknown animal 'bever'; did you mean 'beaver'")
    assert "wolf" not in message
    assert __name__ in message


def test_a_miss_lists_at_most_three_names():
    many = registry.Registry("step")
    for index in range(9):
        registry.register(many, f"step_{index}")(print)
    with pytest.raises(LookupError) as caught:
        registry.lookup(many, "step_x")
    assert str(caught.value).count("'step_") == 4  # the unknown one and three near ones


def test_a_miss_in_an_empty_registry_says_that_nothing_was_imported():
    with pytest.raises(LookupError, match="No decoder is registered yet"):
        registry.lookup(registry.Registry("decoder"), "fpn")


def test_classes_are_keys_too_and_a_plain_dict_will_do():
    class Key: ...

    class Keys: ...

    plain = {}
    registry.register(plain, Key)(len)
    assert registry.lookup(plain, Key) is len
    with pytest.raises(LookupError, match=r"unknown name .*Keys; did you mean .*Key\?"):
        registry.lookup(plain, Keys)
