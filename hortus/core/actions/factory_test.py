import pytest

from hortus import registry
from hortus.core import actions
from hortus.core.actions import factory


@pytest.fixture(autouse=True)
def own_table(monkeypatch):
    monkeypatch.setattr(factory, "_ACTIONS", registry.Registry("action"))


def test_actions_are_built_in_their_order_with_what_is_known():
    @actions.register_action("count")
    class Count(actions.Action):
        """Counts."""

        def __init__(self, context):
            self.context, self.calls = context, 0

        def __call__(self, logs):
            self.calls += 1

    seen = []

    @actions.register_action("note")
    def build(context):
        """Takes note."""
        return lambda logs: seen.append((context.model_dir, logs))

    context = actions.Context("params", "run", "trainer", True)
    note, count = actions.build_actions(["note", "count"], context)
    for action in (note, count):
        action({"loss": 1.0})
    assert seen == [("run", {"loss": 1.0})]
    assert count.calls == 1 and count.context is context
    assert actions.registered_actions() == {"count": "Counts.", "note": "Takes note."}


def test_an_unknown_action_is_told():
    actions.register_action("ring")(lambda context: print)
    with pytest.raises(registry.RegistryError, match="unknown action 'rign'; did you mean 'ring'"):
        actions.build_actions(["rign"], actions.Context(None, "", None, True))
