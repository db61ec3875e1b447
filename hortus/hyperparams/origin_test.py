from hortus.hyperparams import origin


def test_text_is_the_name_and_the_line_if_there_is_one():
    assert str(origin.Origin("f.yaml", 12)) == "f.yaml:12"
    assert str(origin.Origin("--params_override")) == "--params_override"


def test_what_a_user_set_is_explicit():
    assert origin.Origin("f.yaml", 3).is_explicit
    assert origin.CODE.is_explicit
    assert not origin.DEFAULT.is_explicit
    assert not origin.Origin("default").is_explicit
    assert not origin.Origin("experiment resnet_imagenet").is_explicit
