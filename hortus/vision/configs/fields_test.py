"""Every vision config class has the fields, types and defaults of the existing system."""

import collections.abc
import contextlib
import dataclasses
import importlib
import inspect
import json
import types
import typing
import warnings

import pytest

from hortus import hyperparams
from hortus.testing import reference_dir
from hortus.vision.configs import backbones_3d, common, decoders, maskrcnn, retinanet

PREFIX = "official.vision.configs."
MODULES = (
    "common",
    "backbones",
    "backbones_3d",
    "decoders",
    "heads",
    "detection",
    "image_classification",
    "retinanet",
    "maskrcnn",
    "semantic_segmentation",
    "video_classification",
)

# Fields of ours that the existing system does not have, and why.
EXTRA_FIELDS = {
    "skip_bad_records": "inputs can skip what cannot be read, and count it",
    "class_weights": "the losses of rare classes can count more, in classification too",
    "weights": "video data can be mixed like all other data",
    "allow_paths_outside": "annotation files name files in their folder only, unless allowed",
    "image_dir": "COCO and VOC files are read directly, and their images may be elsewhere",
    "skip_difficult_during_training": "Pascal VOC marks some objects as difficult",
    "aug_rand_vflip": "all detectors can mirror images top to bottom",
    "copy_paste": "objects of other images can be pasted by their masks",
    "max_mask_bytes": "exact masks of validation images are kept run-length encoded",
    "use_approx_instance_metrics": "all detectors can measure on the device",
    "mask_path": "folders of images and masks are read directly",
    "annotation_file": "COCO's panoptic files are read directly",
    "color_jitter": "colours of segmentation data can be changed without a policy",
    "padding": "weights of PyTorch models want the padding that they were trained with",
    "project_every_level": "so do ResNets of PyTorch want their shortcuts",
    "pool_unstrided_shortcut": "so do ResNets of PyTorch want their shortcuts",
    "se_inner_activation": "the squeeze-excite of EfficientNet's authors has another activation",
    "se_gating_activation": "mobile networks of PyTorch have the exact hard sigmoid",
    "activation": "transformers of PyTorch have the exact GELU",
    "init_checkpoint_averages": "averages of weights in a checkpoint can be started from",
    "resnet_unet": "the backbone existed and could not be chosen",
    "freeze_backbone": "segmentation can freeze its backbone too",
    "extra_metrics": "metrics that others registered can be chosen",
}
# Types of ours that take more than the existing annotation, which nothing enforced, and why.
WIDER_TYPES = {
    "ImageClassificationModel.input_size": "height and width may be null",
    "SemanticSegmentationModel.input_size": "height and width may be null",
    "Losses.box_loss_weight": "a weight may have decimals",
    "ImageClassificationTask.init_checkpoint_modules": "a list, as in the other tasks",
    "VideoClassificationTask.init_checkpoint_modules": "a list, as in the other tasks",
    "ResNet3D50.block_specs": "the number of stages is checked by validate",
    "ResNet3DRS.block_specs": "the number of stages is checked by validate",
}


def all_classes() -> list[type[hyperparams.Config]]:
    modules = [importlib.import_module(f"hortus.vision.configs.{name}") for name in MODULES]
    found = {
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, hyperparams.Config)
    }
    return sorted(found, key=lambda cls: f"{cls.__module__}.{cls.__name__}")


def reference_classes() -> dict[str, dict]:
    fields = json.loads((reference_dir() / "config_fields.json").read_text())
    return {
        name.removeprefix(PREFIX): entry
        for name, entry in fields.items()
        if name.startswith(PREFIX)
    }


def our_class(name: str) -> type[hyperparams.Config]:
    module, _, cls = name.partition(".")
    return getattr(importlib.import_module(f"hortus.vision.configs.{module}"), cls)


def plain(value):
    """A default as config_fields.json writes it."""
    if isinstance(value, hyperparams.Config):
        return {"__config__": type(value).__name__}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def shape(annotation):
    """An annotation without spelling: Optional[List[int]] and list[int] | None are the same."""
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return frozenset(shape(arg) for arg in args)
    if origin in (list, collections.abc.Sequence):
        return ("list", shape(args[0]))
    if origin is tuple:
        return ("tuple", *(arg if arg is ... else shape(arg) for arg in args))
    return annotation.__name__


def reference_shape(text: str):
    text = text.replace("<class '", "").replace("'>", "").replace("NoneType", "None")
    for prefix in ("typing.", f"{PREFIX}", "official.modeling.hyperparams.base_config."):
        text = text.replace(prefix, "")
    for prefix in ("official.core.config_definitions.", "official.modeling.privacy.configs."):
        text = text.replace(prefix, "")
    for module in MODULES:
        text = text.replace(f"{module}.", "")
    names = {name: type(name, (), {}) for name in _words(text)}
    known = {name: getattr(typing, name) for name in ("Optional", "Union", "List", "Sequence")}
    known |= {"Tuple": tuple, "tuple": tuple, "str": str, "int": int, "bool": bool, "float": float}
    return shape(eval(text, {**names, **known, "None": None}))


def _words(text: str) -> set[str]:
    return {word for word in "".join(c if c.isalnum() else " " for c in text).split() if word}


def test_every_reference_class_has_its_fields_and_defaults():
    wrong = []
    for name, entry in reference_classes().items():
        default = our_class(name)()
        ours = {field.name for field in dataclasses.fields(default)}
        expected = entry["fields"]
        wrong += [f"{name}.{field} is missing" for field in expected.keys() - ours]
        wrong += [
            f"{name}.{field} is not on the list of additions"
            for field in ours - expected.keys() - EXTRA_FIELDS.keys()
        ]
        for field in expected.keys() & ours:
            found, wanted = plain(getattr(default, field)), expected[field]["default"]
            if found != wanted or isinstance(found, bool) != isinstance(wanted, bool):
                wrong.append(f"{name}.{field} is {found!r}, not {wanted!r}")
    assert not wrong


def test_every_reference_field_has_its_type_or_a_wider_one_on_purpose():
    wrong, widened = [], set()
    for name, entry in reference_classes().items():
        cls = our_class(name)
        hints = typing.get_type_hints(cls)
        for field, expected in entry["fields"].items():
            ours, theirs = shape(hints[field]), reference_shape(expected["type"])
            if expected["default"] is None:  # None is a value wherever it is the default
                theirs = frozenset({"NoneType"}) | (
                    theirs if isinstance(theirs, frozenset) else {theirs}
                )
            if ours == theirs:
                continue
            key = f"{cls.__name__}.{field}"
            if key in WIDER_TYPES:
                widened.add(key)
            elif not is_inherited_from_core(cls, field):  # those are tested in core
                wrong.append(f"{name}.{field}: {ours}, not {theirs}")
    assert not wrong
    assert widened == WIDER_TYPES.keys()


def is_inherited_from_core(cls: type, field: str) -> bool:
    owner = next(base for base in cls.__mro__ if field in inspect.get_annotations(base))
    return owner.__module__ == "hortus.core.config_definitions"


def test_every_field_says_what_it_means():
    undescribed = []
    for cls in all_classes():
        assert cls.__doc__, cls
        for field in dataclasses.fields(cls):
            is_branch = issubclass(cls, hyperparams.OneOfConfig) and field.name != "type"
            if not is_branch and not hyperparams.describe_field(cls, field.name):
                undescribed.append(f"{cls.__module__}.{cls.__name__}.{field.name}")
    assert not undescribed


@pytest.mark.parametrize("cls", all_classes(), ids=lambda cls: f"{cls.__module__}.{cls.__name__}")
def test_a_part_set_to_null_is_no_crash(cls):
    for field in dataclasses.fields(cls):
        config = cls()
        if isinstance(getattr(config, field.name), hyperparams.Config):
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore", hyperparams.ConfigWarning
                )  # of fields without effect
                setattr(config, field.name, None)
            with contextlib.suppress(hyperparams.ConfigError):  # anything else is a crash
                config.validate()


def test_heads_are_the_same_objects_in_the_tasks():
    from hortus.vision.configs import heads, semantic_segmentation

    assert retinanet.RetinaNetHead is heads.RetinaNetHead
    assert retinanet.AttributeHead is heads.AttributeHead
    assert retinanet.TfExampleDecoder is common.TfExampleDecoder
    assert maskrcnn.DetectionHead is heads.DetectionHead
    assert maskrcnn.MaskHead is heads.MaskHead
    assert maskrcnn.RPNHead is heads.RPNHead
    assert semantic_segmentation.SegmentationHead is heads.SegmentationHead


def test_defaults_that_the_reference_file_shortens():
    covered = [crop.min_object_covered for crop in common.SSDRandomCrop().ssd_random_crop_params]
    assert covered == [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0]
    stages = backbones_3d.ResNet3DRS().block_specs
    assert [stage.temporal_kernel_sizes for stage in stages] == [(1,), (1,), (3,), (3,)]
    assert all(stage.use_self_gating for stage in stages)


@pytest.mark.parametrize(
    ("cls", "field", "value"),
    [(decoders.FPN, "use_keras_layer", True), (common.PseudoLabelDataConfig, "aug_policy", "v0")],
)
def test_a_field_without_effect_loads_and_warns(cls, field, value):
    config = cls()
    with pytest.warns(hyperparams.ConfigWarning, match=f"{field}.* has no effect"):
        config.override({field: value})
    assert getattr(config, field) == value
    assert "No effect" in hyperparams.describe_field(cls, field)
