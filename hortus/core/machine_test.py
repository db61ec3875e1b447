import importlib.metadata
import json
import os

from hortus.core import machine


def test_versions_are_those_of_the_installed_packages(monkeypatch):
    assert machine.version("numpy") == importlib.metadata.version("numpy")
    assert machine.version("no-such-package-here") is None

    def only_the_build_for_cpus(name):
        if name == "tensorflow-cpu":
            return "2.99"
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", only_the_build_for_cpus)
    assert machine.version("tensorflow") == "2.99"


def test_facts_go_into_json():
    facts = json.loads(json.dumps(machine.facts()))
    assert facts["packages"]["keras"] == importlib.metadata.version("keras")
    assert 1 <= facts["cpus"] <= os.cpu_count()
    assert facts["memory_gib"] > 0.1 and facts["processor"]


def test_what_the_system_does_not_tell_is_left_open(monkeypatch):
    monkeypatch.setattr(machine, "open", _no_file, raising=False)
    monkeypatch.setattr(machine.platform, "processor", lambda: "")
    monkeypatch.setattr(machine.platform, "machine", lambda: "pdp11")
    monkeypatch.setattr(os, "sysconf", _refuse)
    assert machine.memory_gib() is None
    assert machine.processor() == "pdp11"


def _no_file(*arguments, **options):
    raise FileNotFoundError("/proc/cpuinfo")


def _refuse(name):
    raise ValueError(name)
