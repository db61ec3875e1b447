from hortus.core.actions import Action, ConditionalAction


class Recorder(Action):
    def __init__(self, answer=None):
        self.told = []
        self.answer = answer

    def bind(self, controller):
        self.told.append(("bind", controller))

    def begin(self):
        self.told.append("begin")

    def poll(self):
        self.told.append("poll")

    def rewind(self, step):
        self.told.append(("rewind", step))

    def end(self):
        self.told.append("end")

    def __call__(self, logs):
        self.told.append(logs)
        return self.answer


def test_actions_are_done_in_order_when_the_condition_holds():
    done = []
    action = ConditionalAction(
        lambda logs: logs["a"] > 1, [lambda logs: done.append(1), lambda logs: done.append(2)]
    )
    action({"a": 1})
    assert done == []
    action({"a": 2})
    assert done == [1, 2]


def test_condition_and_action_hear_everything_that_the_controller_says():
    condition, inner = Recorder(answer=False), Recorder()
    action = ConditionalAction(condition, inner)
    action.bind("controller")
    action.begin()
    action.poll()
    action.rewind(3)
    action({})
    action.end()
    told = [("bind", "controller"), "begin", "poll", ("rewind", 3)]
    assert condition.told == [*told, {}, "end"]
    assert inner.told == [*told, "end"]
