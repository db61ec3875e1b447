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


def test_the_nearest_base_counts_where_a_class_is_the_key(animals):
    class Animal: ...

    class Bird(Animal): ...

    class Owl(Bird): ...

    registry.register(animals, Animal)("an animal")
    registry.register(animals, Bird)("a bird")
    assert registry.lookup_for(animals, Owl) == "a bird"
    assert registry.find_for(animals, int) is None
    with pytest.raises(registry.RegistryError, match="unknown animal int"):
        registry.lookup_for(animals, int)


def test_modules_of_a_package_are_imported_when_a_name_is_not_known(tmp_path, monkeypatch):
    package = tmp_path / "zoo_of_this_test"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from hortus import registry\nZOO = registry.Registry('animal', __name__)\n"
    )
    (package / "apes.py").write_text(
        "from hortus import registry\nfrom zoo_of_this_test import ZOO\n"
        "registry.register(ZOO, 'gibbon')('a gibbon')\n"
        "registry.register(ZOO, int)('a number')\n"
    )
    (package / "apes_test.py").write_text("raise AssertionError('a test is not imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    import zoo_of_this_test as zoo

    assert not zoo.ZOO
    assert registry.lookup_for(zoo.ZOO, bool) == "a number"
    assert registry.lookup(zoo.ZOO, "gibbon") == "a gibbon"
    with pytest.raises(registry.RegistryError, match="did you mean 'gibbon'"):
        registry.lookup(zoo.ZOO, "gibon")


def test_a_summary_is_the_first_line():
    def ape():
        """Climbs.

        And more.
        """

    assert registry.summary(ape) == "Climbs."
    assert registry.summary(lambda: 0) == ""
