import json

from hortus.core import config_definitions as cfg
from hortus.core import machine, run_record


def test_each_start_is_added_with_its_command_machine_and_origins(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["/bin/hortus", "train", "a b"])
    params = cfg.ExperimentConfig()
    params.override({"trainer": {"train_steps": 7}})
    for engine in ("tensorflow", "jax"):
        run_record.write(tmp_path, params, engine)
    first, second = run_record.read(tmp_path)
    assert (first["engine"], second["engine"]) == ("tensorflow", "jax")
    assert first["command"] == "hortus train 'a b'"
    assert "trainer.train_steps" in first["origins"]
    assert "trainer.steps_per_loop" not in first["origins"]
    assert second["time"] >= first["time"]
    assert json.loads((tmp_path / "run.json").read_text())["starts"][0] == first


def test_a_record_that_cannot_be_read_is_begun_anew(tmp_path):
    (tmp_path / "run.json").write_text("{broken")
    assert run_record.read(tmp_path) == []
    run_record.write(tmp_path, cfg.ExperimentConfig(), "jax")
    assert len(run_record.read(tmp_path)) == 1


def test_facts_name_what_is_installed():
    facts = machine.facts()
    assert facts["cpus"] >= 1
    assert facts["packages"]["hortus"] == machine.version("hortus")
    assert machine.version("no-such-package") is None
