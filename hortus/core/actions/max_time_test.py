import types

from hortus.core.actions import MaxTime, max_time


def test_it_asks_to_stop_when_the_time_is_over(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(max_time, "time", types.SimpleNamespace(monotonic=lambda: now[0]))
    reasons = []
    action = MaxTime(60)
    action.bind(types.SimpleNamespace(request_stop=reasons.append))
    action.poll()  # before the beginning
    action.begin()
    now[0] += 59
    action.poll()
    action.begin()  # another call of train: one training all the same
    action({})
    assert reasons == []
    now[0] += 1
    action.poll()
    assert reasons == ["the time of 60 seconds is over"]
