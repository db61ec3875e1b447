"""The `hortus` command as a user meets it: what it prints, where, and with which exit code."""

import json
import os
import subprocess
import sys
import tempfile

import pytest
import yaml

import hortus
from hortus.cli.main import main
from hortus.core import exp_factory

EXPERIMENT = "resnet_imagenet"
CONFIG_COMMANDS = (
    ("--help",),
    ("--version",),
    ("list", "experiments"),
    ("list", "backbones"),
    ("list", "decoders"),
    ("list", "heads"),
    ("list", "tasks"),
    ("list", "optimizers"),
    ("list", "schedules"),
    ("list", "formats"),
    ("list", "commands"),
    ("describe", EXPERIMENT),
    ("describe", EXPERIMENT, "--format", "tree", "--origins"),
    ("describe", EXPERIMENT, "--format", "json"),
    ("describe", EXPERIMENT, "--diff", "--params_override", "trainer.train_steps=1"),
    ("schema", EXPERIMENT),
    ("validate", "--experiment", EXPERIMENT),
)


@pytest.fixture
def run(capsys):
    """Runs the command here; returns (exit code, stdout, stderr)."""

    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def write(tmp_path):
    def write(text, name="own.yaml"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def spawn(*arguments, **kwargs):
    """Runs the command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "hortus.cli.main", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        **kwargs,
    )


# ---- what it shows --------------------------------------------------------------------------


def test_help_names_every_command(run):
    code, out, err = run("--help")
    assert (code, err) == (0, "")
    for command in ("list", "describe", "schema", "validate"):
        assert command in out


def test_version(run):
    assert run("--version") == (0, f"hortus {hortus.__version__}\n", "")


def test_without_arguments_it_shows_the_help():
    # Older versions of typer end with 0 here, newer ones with 2.
    done = spawn()
    assert "Usage: hortus" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("experiments", ["resnet_imagenet", "retinanet_resnetfpn_coco", "seg_deeplabv3_pascal"]),
        ("backbones", ["resnet", "mobilenet", "vit", "spinenet", "resnet_3d"]),
        ("decoders", ["fpn", "nasfpn", "aspp", "identity"]),
        ("heads", ["RetinaNetHead", "SegmentationHead"]),
        ("tasks", ["ImageClassificationTask", "RetinaNetTask", "SemanticSegmentationTask"]),
        ("optimizers", ["sgd", "adamw", "lamb", "lars"]),
        ("schedules", ["stepwise", "cosine", "exponential", "polynomial"]),
    ],
)
def test_list(kind, names):
    # In a process of its own: other tests register things of theirs.
    done = spawn("list", kind)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    listed = [line.split()[0] for line in lines]
    assert set(names) <= set(listed)
    assert listed == sorted(set(listed))
    assert [line for line in lines if len(line.split()) == 1] == [], "no description"


def test_list_shows_experiments_by_default_and_takes_a_pattern(run):
    assert run("list")[1] == run("list", "experiments")[1]
    code, out, _ = run("list", "experiments", "*imagenet")
    assert code == 0
    names = [line.split()[0] for line in out.splitlines()]
    assert "resnet_imagenet" in names
    assert all(name.endswith("imagenet") for name in names)
    assert run("list", "backbones", "resnet_3d")[1].startswith("resnet_3d")


def test_describe_yaml_loads_again_and_is_the_config(run):
    code, out, err = run("describe", EXPERIMENT)
    assert (code, err) == (0, "")
    config = exp_factory.get_exp_config(EXPERIMENT)
    assert out == config.to_yaml()
    again = exp_factory.get_exp_config(EXPERIMENT)
    again.override(out)
    assert again == config


def test_describe_with_origins_is_the_same_yaml_with_comments(run, write):
    path = write("trainer:\n  train_steps: 3\n")
    arguments = ("describe", EXPERIMENT, "--config_file", path)
    override = ("--params_override", "trainer.max_to_keep=2")
    _, plain, _ = run(*arguments, *override)
    code, out, _ = run(*arguments, *override, "--origins")
    assert code == 0
    assert yaml.safe_load(out) == yaml.safe_load(plain)
    assert f"train_steps: 3  # {path}:2\n" in out
    assert "max_to_keep: 2  # --params_override\n" in out
    assert f"# experiment {EXPERIMENT}\n" in out
    assert "# default\n" in out


def test_describe_json(run):
    code, out, _ = run("describe", EXPERIMENT, "--format", "json")
    assert code == 0
    config = exp_factory.get_exp_config(EXPERIMENT).as_dict()
    assert json.loads(out) == json.loads(json.dumps(config))
    _, out, _ = run("describe", EXPERIMENT, "--format", "json", "--origins")
    assert json.loads(out)["trainer.train_steps"] == {
        "value": config["trainer"]["train_steps"],
        "origin": f"experiment {EXPERIMENT}",
    }


def test_describe_tree_explains_each_field(run):
    code, out, _ = run("describe", EXPERIMENT, "--format", "tree", "--origins")
    assert code == 0
    (line,) = [line for line in out.splitlines() if "─ checkpoint_interval" in line]
    assert f"[experiment {EXPERIMENT}] Steps between two checkpoints;" in line
    assert line.endswith("at the end only. (0 or more)")


def test_describe_diff_without_overrides_is_what_the_experiment_states(run):
    code, out, _ = run("describe", EXPERIMENT, "--diff")
    assert code == 0
    assert out.startswith("# what differs from the defaults\n")
    steps = exp_factory.get_exp_config(EXPERIMENT).trainer.train_steps
    assert f"train_steps: {steps}  # was 0\n" in out
    assert "max_time" not in out
    # It says everything that the experiment sets: put on the defaults, it gives the experiment.
    config = exp_factory.get_exp_config(EXPERIMENT)
    fresh = type(config)(task=type(config.task)())
    fresh.override(out)
    assert fresh == config


def test_describe_diff_with_overrides_is_what_they_change(run, write):
    path = write("trainer:\n  train_steps: 3\n")
    arguments = ["describe", EXPERIMENT, "--config_file", path]
    arguments += ["--params_override", "runtime.engine=jax", "--diff"]
    steps = exp_factory.get_exp_config(EXPERIMENT).trainer.train_steps
    code, out, _ = run(*arguments, "--origins")
    assert code == 0
    assert out.splitlines() == [
        f"# what differs from experiment {EXPERIMENT}",
        "trainer:",
        f"  train_steps: 3  # was {steps}; {path}:2",
        "runtime:",
        '  engine: jax  # was "tensorflow"; --params_override',
    ]
    assert json.loads(run(*arguments, "--format", "json")[1]) == [
        {"path": "trainer.train_steps", "old": steps, "new": 3, "origin": f"{path}:2"},
        {
            "path": "runtime.engine",
            "old": "tensorflow",
            "new": "jax",
            "origin": "--params_override",
        },
    ]
    assert run(*arguments, "--format", "tree")[1].splitlines() == [
        f"trainer.train_steps: 3  was {steps}",
        'runtime.engine: "jax"  was "tensorflow"',
    ]


def test_describe_diff_of_another_branch_shows_what_was_set_in_it_only(run):
    override = "task.model.backbone={type: mobilenet, mobilenet: {model_id: MobileNetV1}}"
    code, out, err = run("describe", EXPERIMENT, "--diff", "--params_override", override)
    assert (code, err) == (0, "")
    assert yaml.safe_load(out) == {
        "task": {
            "model": {"backbone": {"type": "mobilenet", "mobilenet": {"model_id": "MobileNetV1"}}}
        }
    }


def test_describe_diff_of_nothing_is_still_yaml(run):
    steps = exp_factory.get_exp_config(EXPERIMENT).trainer.train_steps
    override = f"trainer.train_steps={steps}"
    _, out, _ = run("describe", EXPERIMENT, "--diff", "--params_override", override)
    assert yaml.safe_load(out) == {}


def test_option_names_take_dashes_too(run, write):
    path = write("trainer:\n  train_steps: 3\n")
    code, out, _ = run(
        *("describe", EXPERIMENT, "--config-file", path),
        *("--params-override", "trainer.max_to_keep=2", "--diff"),
    )
    assert code == 0
    assert yaml.safe_load(out) == {"trainer": {"train_steps": 3, "max_to_keep": 2}}


def test_schema_is_json_with_descriptions(run):
    code, out, _ = run("schema", EXPERIMENT)
    assert code == 0
    schema = json.loads(out)
    trainer = schema["properties"]["trainer"]
    trainer = trainer.get("anyOf", [trainer])[0]
    assert trainer["properties"]["train_steps"]["type"] == "integer"
    assert "Steps to train" in trainer["properties"]["train_steps"]["description"]


def test_validate_says_that_all_is_well(run, write):
    path = write("trainer:\n  train_steps: 3\n")
    assert run("validate", "--experiment", EXPERIMENT, "--config_file", path) == (
        0,
        f"{EXPERIMENT}: valid, 1 value changed\n",
        "",
    )


def test_validate_tells_of_weights_that_cannot_be_had(run):
    experiment = ("--experiment", "retinanet_resnetfpn_coco")
    code, out, err = run("validate", *experiment)
    assert (code, out) == (2, "")
    for text in ("task.init_checkpoint", "gs://", "task.init_checkpoint=null", "name the copy"):
        assert text in err
    code, out, _ = run("validate", *experiment, "--params_override", "task.init_checkpoint=null")
    assert (code, out) == (0, "retinanet_resnetfpn_coco: valid, 1 value changed\n")
    code, out, _ = run("validate", "--experiment", "video_classification_ucf101")
    assert code == 0 and out.endswith("; there is no task for it yet\n")


@pytest.mark.parametrize("command", ["describe", "schema", "validate"])
def test_the_experiment_is_positional_or_an_option(run, command):
    positional = run(command, EXPERIMENT)
    assert positional[0] == 0 and positional[1]
    assert run(command, "-e", EXPERIMENT) == run(command, "--experiment", EXPERIMENT) == positional


def test_overrides_may_follow_the_experiment(run):
    assert "1 value changed" in run("validate", EXPERIMENT, "trainer.train_steps=1")[1]


def test_a_value_in_an_unused_branch_is_a_warning_on_stderr(run):
    override = "task.model.backbone.mobilenet.model_id=MobileNetV1"
    code, out, err = run("validate", "--experiment", EXPERIMENT, "--params_override", override)
    assert code == 0
    assert out == f"{EXPERIMENT}: valid, 0 values changed\n"
    assert err == (
        "warning: task.model.backbone.mobilenet (--params_override) has no effect: "
        f"task.model.backbone.type is 'resnet' ({_origin('task.model.backbone.type')})\n"
    )


def _origin(path):
    return exp_factory.get_exp_config(EXPERIMENT).origin(path)


# ---- mistakes -------------------------------------------------------------------------------


def mistake(result, *parts):
    """Checks that a result is a user's mistake, told in one message that has all the parts."""
    code, out, err = result
    assert code == 2
    assert out == ""
    assert err.startswith("error: ")
    assert "Traceback" not in err
    for part in parts:
        assert part in err


def test_unknown_key_in_a_file(run, write):
    path = write("task:\n  model:\n    num_clases: 10\n")
    mistake(
        run("validate", "--experiment", EXPERIMENT, "--config_file", path),
        f"task.model.num_clases ({path}:3): unknown key 'num_clases'",
        "Did you mean num_classes?",
    )


def test_unknown_key_in_an_override(run):
    mistake(
        run("describe", EXPERIMENT, "--params_override", "trainer.trian_steps=10"),
        "trainer.trian_steps (--params_override): unknown key 'trian_steps'",
        "train_steps",
    )


def test_wrong_type(run, write):
    path = write("trainer:\n  train_steps: soon\n")
    mistake(
        run("validate", "--experiment", EXPERIMENT, "--config_file", path),
        f"trainer.train_steps ({path}:2): expected a whole number of 0 or more, got 'soon' (str)\n",
    )


def test_broken_restriction(run, write):
    path = write("task:\n  model:\n    min_level: 2\n")
    mistake(
        run("validate", "--experiment", "retinanet_spinenet_coco", "--config_file", path),
        "'task.model.min_level == task.model.backbone.spinenet.min_level' does not hold",
        f"task.model.min_level is 2 ({path}:3)",
        "task.model.backbone.spinenet.min_level is 3",
    )


def test_broken_rule_of_a_config(run):
    mistake(
        run("describe", EXPERIMENT, "--params_override", "runtime.engine=torch"),
        "runtime.engine (--params_override): must be one of 'tensorflow', 'jax'; got 'torch'",
    )


def test_unknown_choice(run, write):
    path = write("task:\n  model:\n    backbone:\n      type: resnett\n")
    mistake(
        run("validate", "--experiment", EXPERIMENT, "--config_file", path),
        f"task.model.backbone.type ({path}:4)",
        "'resnett' is no choice of Backbone",
        "resnet",
    )


def test_missing_file(run, write, tmp_path):
    write("{}", "mine.yaml")
    missing = tmp_path / "mime.yaml"
    mistake(
        run("validate", "--experiment", EXPERIMENT, "--config_file", missing),
        f"{missing}: no such file",
        f"Did you mean {tmp_path / 'mine.yaml'}?",
    )


def test_missing_folder(run, tmp_path):
    missing = tmp_path / "nowhere" / "mine.yaml"
    mistake(
        run("validate", "--experiment", EXPERIMENT, "--config_file", missing),
        f"{missing}: no such file",
    )


def test_yaml_syntax(run, write):
    path = write("trainer:\n  train_steps: [1, 2\nruntime: 3\n")
    mistake(
        run("validate", "--experiment", EXPERIMENT, "--config_file", path),
        f"{path}:3: not valid YAML",
    )


def test_json_syntax(run, write):
    path = write('{"trainer":\n  {"train_steps": 1,}}', "own.json")
    mistake(
        run("validate", "--experiment", EXPERIMENT, "--config_file", path),
        f"{path}:2: not valid JSON",
    )


def test_a_file_that_is_no_mapping(run, write):
    path = write("- 1\n- 2\n")
    mistake(
        run("validate", "--experiment", EXPERIMENT, "--config_file", path),
        str(path),
        "expected keys with values",
    )


def test_a_file_cannot_run_code(run, write, tmp_path):
    trap = tmp_path / "trap"
    path = write(f"trainer: !!python/object/apply:os.mkdir ['{trap}']\n")
    mistake(run("validate", "--experiment", EXPERIMENT, "--config_file", path), f"{path}:1")
    assert not trap.exists()


def test_a_folder_instead_of_a_file(run, tmp_path):
    mistake(
        run("validate", "--experiment", EXPERIMENT, "--config_file", tmp_path),
        f"{tmp_path}: cannot be read: Is a directory",
    )


@pytest.mark.parametrize("content", [b"\x89PNG\r\n\x1a\n\x00\x00\xff", b"\x00\x01\x02", b"a: \x07"])
def test_a_binary_file(run, write, content):
    path = write(content)
    mistake(run("validate", "--experiment", EXPERIMENT, "--config_file", path), str(path))


def test_an_unreadable_override(run):
    mistake(
        run("describe", EXPERIMENT, "--params_override", "trainer.train_steps=[1,"),
        "--params_override",
        "not closed",
    )


@pytest.mark.parametrize("command", [("describe",), ("schema",), ("validate", "--experiment")])
def test_unknown_experiment(run, command):
    mistake(
        run(*command, "resnet_imagnet"),
        "unknown experiment 'resnet_imagnet'; did you mean 'resnet_imagenet'",
        "hortus.vision.experiments",
    )


def test_several_mistakes_are_told_at_once(run):
    result = run(
        "describe", EXPERIMENT, "--params_override", "trainer.a=1,runtime.b=2,trainer.train_steps=x"
    )
    mistake(result, "3 problems", "trainer.a ", "runtime.b ", "trainer.train_steps ")


def test_a_pattern_that_matches_nothing(run):
    mistake(run("list", "backbones", "resnt*"), "no backbones match 'resnt*'")


@pytest.mark.parametrize(
    "arguments",
    [
        ("descibe", EXPERIMENT),
        ("list", "flowers"),
        ("describe",),
        ("describe", EXPERIMENT, "--format", "xml"),
        ("describe", EXPERIMENT, "--orgins"),
        ("validate",),
        ("--import",),
    ],
)
def test_a_wrong_call_is_a_usage_error(run, arguments):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert "Error: " in err
    assert "Traceback" not in err


@pytest.mark.parametrize("way", ["--debug", "HORTUS_DEBUG"])
def test_debug_shows_the_traceback(run, monkeypatch, way):
    if way == "--debug":
        code, _, err = run("describe", "nonsense", "--debug")
    else:
        monkeypatch.setenv(way, "1")
        code, _, err = run("describe", "nonsense")
    assert code == 2
    assert "Traceback" in err
    assert "error: unknown experiment 'nonsense'" in err


# ---- a user's own modules -------------------------------------------------------------------

GARDEN = '''
import dataclasses
from hortus.core import config_definitions as cfg, exp_factory
from hortus.vision.configs import backbones

@dataclasses.dataclass
class Ivy(backbones.ResNet):
    """Climbs walls."""

@dataclasses.dataclass
class Backbone(backbones.Backbone):
    ivy: Ivy = Ivy()

@exp_factory.register_config_factory("garden_ivy")
def garden_ivy():
    """Ivy on a wall."""
    return cfg.ExperimentConfig(trainer=cfg.TrainerConfig(train_steps=12))
'''


@pytest.mark.parametrize(
    ("before", "after", "variable"),
    [(["--import", "garden"], [], ""), ([], ["--import=garden"], ""), ([], [], "garden")],
)
def test_experiments_of_ones_own_are_found(tmp_path, before, after, variable):
    (tmp_path / "garden.py").write_text(GARDEN)
    env = {**os.environ, "HORTUS_IMPORT": variable}
    done = spawn(*before, "list", "experiments", "garden", *after, cwd=tmp_path, env=env)
    facts = "no task yet  from scratch  not measured"
    assert (done.stdout, done.stderr) == (f"garden_ivy  Ivy on a wall.  {facts}\n", "")


def test_backbones_of_ones_own_are_listed(tmp_path):
    (tmp_path / "garden.py").write_text(GARDEN)
    done = spawn("--import", "garden", "list", "backbones", "ivy", cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("ivy  Climbs walls.\n", "")


def in_folder(folder, *arguments):
    done = spawn(*arguments, cwd=folder)
    return done.returncode, done.stdout, done.stderr


def test_a_module_that_is_not_there(tmp_path):
    mistake(in_folder(tmp_path, "list", "--import", "gardn"), "--import gardn: there is no such")
    mistake(in_folder(tmp_path, "list", "--import", "a/b.py"), "without folder and ending: a.b")


def test_a_module_that_fails(tmp_path):
    (tmp_path / "garden.py").write_text("x = 1\ny = 1 / 0\n")
    mistake(
        in_folder(tmp_path, "list", "--import", "garden"),
        "--import garden: ZeroDivisionError: division by zero",
        "garden.py:2",
    )


def test_a_name_registered_twice(tmp_path):
    (tmp_path / "garden.py").write_text(GARDEN.replace("garden_ivy", EXPERIMENT))
    mistake(
        in_folder(tmp_path, "list", "--import", "garden"),
        f"experiment '{EXPERIMENT}' is registered twice",
        "hortus.vision.experiments",
        "garden.resnet_imagenet",
    )


# ---- as a process ---------------------------------------------------------------------------


def imported(*arguments):
    """Runs a command in a process of its own; returns its exit code and what it imported."""
    script = (
        "import sys\n"
        "from hortus.cli.main import main\n"
        "code = main(sys.argv[2:])\n"
        "open(sys.argv[1], 'w').write(' '.join(sys.modules))\n"
        "sys.exit(code)\n"
    )
    with tempfile.NamedTemporaryFile("r") as file:
        done = subprocess.run(
            [sys.executable, "-c", script, file.name, *arguments],
            stdout=subprocess.DEVNULL,
            timeout=60,
        )
        return done.returncode, set(file.read().split())


HEAVY = {"tensorflow", "keras", "jax", "jaxlib", "numpy", "torch"}


@pytest.mark.parametrize("arguments", CONFIG_COMMANDS, ids=" ".join)
def test_no_numerical_library_is_imported(arguments):
    code, modules = imported(*arguments)
    assert code == 0
    assert "hortus" in modules
    assert modules & HEAVY == set()


def test_no_numerical_library_is_imported_to_tell_a_mistake():
    code, modules = imported("describe", "nonsense")
    assert code == 2
    assert modules & HEAVY == set()


def test_the_installed_command_is_this_one():
    command = os.path.join(os.path.dirname(sys.executable), "hortus")
    if not os.path.exists(command):
        pytest.skip("hortus is not installed in this environment")
    done = subprocess.run([command, "--version"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, f"hortus {hortus.__version__}\n")


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", [("list",), ("schema", EXPERIMENT)])
def test_a_reader_that_goes_away_is_quiet(arguments, unbuffered):
    # `| head -1`: the pipe breaks while the command writes, or only when it ends and flushes.
    command = [sys.executable, "-m", "hortus.cli.main", *arguments]
    env = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, env=env) as process:
        process.stdout.close()
        err = process.stderr.read()
        process.wait(timeout=60)
    assert err == b""
    assert process.returncode == 1


def test_output_is_the_same_whatever_the_terminal_says():
    usual = spawn("list", "experiments").stdout
    narrow = spawn("list", "experiments", env={**os.environ, "COLUMNS": "20", "TERM": "dumb"})
    forced = spawn("list", "experiments", env={**os.environ, "FORCE_COLOR": "1"})
    assert narrow.stdout == usual
    assert forced.stdout == usual


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("list",),
        ("describe", EXPERIMENT, "--diff"),
        ("describe", EXPERIMENT, "--format", "json"),
        ("describe", EXPERIMENT, "--format", "tree"),
    ],
    ids=" ".join,
)
def test_a_terminal_gets_colours(arguments):
    pty = pytest.importorskip("pty")
    leader, follower = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    env.pop("NO_COLOR", None)
    command = [sys.executable, "-m", "hortus.cli.main", *arguments]
    with subprocess.Popen(command, stdout=follower, stderr=follower, env=env) as process:
        os.close(follower)
        shown = b""
        while True:
            try:
                part = os.read(leader, 65536)
            except OSError:  # Linux reports the end like this
                break
            if not part:
                break
            shown += part
    os.close(leader)
    assert process.returncode == 0
    assert b"\x1b[" in shown
    assert b"Traceback" not in shown


def test_a_narrow_encoding_is_no_error():
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = spawn("describe", EXPERIMENT, "--format", "tree", env=env)
    assert (done.returncode, done.stderr) == (0, "")
