import pytest

from hortus.core.actions import Action
from hortus.core.actions.action import FunctionAction, as_actions


def test_functions_become_actions_and_actions_stay():
    seen = []
    action = Action()
    actions = as_actions([seen.append, action])
    assert isinstance(actions[0], FunctionAction) and actions[1] is action
    actions[0]({"a": 1})
    assert seen == [{"a": 1}]


def test_one_action_and_none():
    assert as_actions(None) == []
    assert len(as_actions(print)) == 1


def test_a_subclass_must_say_what_it_does():
    with pytest.raises(NotImplementedError):
        Action()({})
