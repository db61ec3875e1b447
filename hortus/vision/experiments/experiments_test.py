"""The 31 experiments equal those of the existing system, field by field."""

import inspect
import json
import subprocess
import sys

import pytest

from hortus.core import exp_factory
from hortus.testing import reference_dir
from hortus.vision import experiments

NAMES = [
    "cascadercnn_spinenet_coco",
    "deit_imagenet_pretrain",
    "fasterrcnn_resnetfpn_coco",
    "image_classification",
    "maskrcnn_mobilenet_coco",
    "maskrcnn_resnetfpn_coco",
    "maskrcnn_spinenet_coco",
    "mnv2_deeplabv3_cityscapes",
    "mnv2_deeplabv3_pascal",
    "mnv2_deeplabv3plus_cityscapes",
    "mobilenet_imagenet",
    "resnet_imagenet",
    "resnet_rs_imagenet",
    "retinanet",
    "retinanet_mobile_coco",
    "retinanet_resnetfpn_coco",
    "retinanet_spinenet_coco",
    "revnet_imagenet",
    "seg_deeplabv3_pascal",
    "seg_deeplabv3plus_cityscapes",
    "seg_deeplabv3plus_pascal",
    "seg_resnetfpn_pascal",
    "semantic_segmentation",
    "video_classification",
    "video_classification_kinetics400",
    "video_classification_kinetics600",
    "video_classification_kinetics700",
    "video_classification_kinetics700_2020",
    "video_classification_ucf101",
    "vit_imagenet_finetune",
    "vit_imagenet_pretrain",
]

# Fields of ours that the existing system does not have, and why.
ADDITIONS = {
    "runtime.engine": "TensorFlow or JAX",
    "runtime.seed": "one seed for the whole run",
    "runtime.deterministic": "runs that repeat bit for bit",
    "runtime.fast_kernels": "whether training may round otherwise to be faster",
    "runtime.virtual_cpu_devices": "several replicas on a laptop",
    "trainer.eval_actions": "actions of a user's own, by name",
    "trainer.train_actions": "actions of a user's own, by name",
    "trainer.summary": "a summary manager of a user's own, by name",
    "task.extra_metrics": "metrics of a user's own, by name",
    "trainer.early_stopping": "stop when a metric no longer improves",
    "trainer.allow_subdirs_outside": "folders of a run that may lie elsewhere",
    "trainer.fast_dev_run": "a few steps of everything",
    "trainer.gradient_accumulation_steps": "large batches on small devices",
    "trainer.max_time": "stop in time",
    "trainer.overfit_batches": "can the model learn at all?",
    "trainer.sanity_validation_steps": "a fault in evaluation shows at once",
    "task.freeze_backbone": "of segmentation too",
    "task.init_checkpoint_averages": "the averages in the Model Garden's checkpoints",
    "task.model.backbone.dilated_resnet.padding": "weights of PyTorch",
    "task.model.backbone.efficientnet.padding": "weights of PyTorch",
    "task.model.backbone.efficientnet.se_inner_activation": "weights of PyTorch",
    "task.model.backbone.mobilenet.padding": "weights of PyTorch",
    "task.model.backbone.mobilenet.se_gating_activation": "weights of PyTorch",
    "task.model.backbone.resnet.padding": "weights of PyTorch",
    "task.model.backbone.resnet.pool_unstrided_shortcut": "weights of PyTorch",
    "task.model.backbone.resnet.project_every_level": "weights of PyTorch",
    "task.model.backbone.vit.activation": "weights of PyTorch",
    "task.losses.class_weights": "rare classes can count more",
    "task.train_data.skip_bad_records": "skip and count what cannot be read",
    "task.validation_data.skip_bad_records": "skip and count what cannot be read",
}
for _split in ("train_data", "validation_data"):
    ADDITIONS |= {
        f"task.{_split}.allow_paths_outside": "annotation files that may name any file",
        f"task.{_split}.parser.aug_rand_vflip": "all detectors can mirror images top to bottom",
        f"task.{_split}.parser.copy_paste": "objects of other images",
        f"task.{_split}.image_dir": "where the images of COCO or VOC files are",
        f"task.{_split}.mask_path": "folders of masks beside folders of images",
        f"task.{_split}.annotation_file": "COCO's panoptic files",
        f"task.{_split}.color_jitter": "colours of segmentation data can vary too",
        f"task.{_split}.parser.skip_difficult_during_training": "VOC's difficult objects",
        f"task.{_split}.parser.max_mask_bytes": "how much memory the masks of a batch may take",
    }
ADDITIONS["task.use_approx_instance_metrics"] = "average precision inside of the compiled step"
VIDEO_ADDITIONS = {
    "task.train_data.weights": "video data can be mixed like all other data",
    "task.validation_data.weights": "video data can be mixed like all other data",
}


def flat(value, path=""):
    """Dotted path -> plain value; tuples count as lists."""
    if isinstance(value, dict) and value:
        leaves = {}
        for key, item in value.items():
            leaves |= flat(item, f"{path}.{key}" if path else key)
        return leaves
    if isinstance(value, (list, tuple)):
        return {path: json.loads(json.dumps(value))}
    return {path: value}


def is_addition(path: str, additions: dict) -> bool:
    return any(path == name or path.startswith(f"{name}.") for name in additions)


def test_all_experiments_are_registered():
    assert experiments
    assert set(NAMES) <= set(exp_factory.exp_names())


def test_the_reference_has_no_other_experiments():
    reference = json.loads((reference_dir() / "experiments.json").read_text())
    assert sorted(reference.keys() - {"mock"}) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_equals_the_reference(name):
    reference = flat(json.loads((reference_dir() / "experiments.json").read_text())[name])
    ours = flat(exp_factory.get_exp_config(name).as_dict())
    additions = ADDITIONS | (VIDEO_ADDITIONS if name.startswith("video") else {})
    different = {
        path: (ours.get(path, "missing"), expected)
        for path, expected in reference.items()
        if path not in ours
        or ours[path] != expected
        or isinstance(ours[path], bool) != isinstance(expected, bool)
    }
    assert not different
    added = [path for path in ours.keys() - reference.keys() if not is_addition(path, additions)]
    assert not added


def test_restrictions_equal_the_reference():
    cases = json.loads((reference_dir() / "golden" / "config_semantics.json").read_text())
    expected = next(c["result"] for c in cases if c["case"] == "restrictions per experiment")
    ours = {name: list(exp_factory.get_exp_config(name)._restrictions) for name in NAMES}
    assert ours == {name: expected[name] for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_is_valid_and_says_what_it_trains(name):
    exp_factory.get_exp_config(name).validate()
    first_line = (inspect.getdoc(exp_factory.get_exp_factory(name)) or "").splitlines()[0]
    is_general = name in ("image_classification", "retinanet", "semantic_segmentation") or (
        name == "video_classification"
    )
    assert first_line.endswith(".")
    assert ("in general" in first_line) if is_general else ("(" in first_line)


def test_two_configs_of_one_experiment_share_nothing():
    first, second = (exp_factory.get_exp_config("resnet_imagenet") for _ in range(2))
    first.task.model.backbone.resnet.model_id = 18
    first.task.model.input_size.append(1)
    assert second.task.model.backbone.resnet.model_id == 50
    assert second.task.model.input_size == [224, 224, 3]


def test_import_loads_no_numerical_library():
    code = (
        "import sys, hortus.vision.experiments; "
        "print([m for m in ('numpy', 'keras', 'tensorflow', 'jax') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
