"""Video classification recipes, for Kinetics and UCF101."""

from typing import Any

from hortus.core import config_definitions as cfg
from hortus.core import exp_factory
from hortus.vision.configs import common
from hortus.vision.configs import video_classification as vc
from hortus.vision.experiments import recipe

SAME_CLASSES = ("task.train_data.num_classes == task.validation_data.num_classes",)


def _experiment(
    train: vc.DataConfig, validation: vc.DataConfig, epochs: int, peak: float
) -> cfg.ExperimentConfig:
    """3D ResNet-50 (Qian et al. 2020) with a cosine learning rate."""
    epoch = train.num_examples // train.global_batch_size
    norm = common.NormActivation(norm_momentum=0.9, norm_epsilon=1e-5, use_sync_bn=False)
    return recipe.experiment(
        vc.VideoClassificationTask(
            model=vc.VideoClassificationModel(norm_activation=norm),
            losses=vc.Losses(l2_weight_decay=1e-4),
            train_data=train,
            validation_data=validation,
        ),
        recipe.trainer(
            epoch=epoch,
            train_steps=epochs * epoch,
            validation_steps=validation.num_examples // validation.global_batch_size,
            optimizer=recipe.sgd(nesterov=True),
            learning_rate=recipe.cosine(peak, epochs * epoch),
            warmup=recipe.warmup(5 * epoch),
        ),
        restrictions=SAME_CLASSES,
        mixed_precision_dtype="bfloat16",
    )


@exp_factory.register_config_factory("video_classification")
def video_classification() -> cfg.ExperimentConfig:
    """Video classification in general: name your data, clip shape, classes and optimizer."""
    return recipe.experiment(
        vc.VideoClassificationTask(), restrictions=SAME_CLASSES, mixed_precision_dtype="bfloat16"
    )


@exp_factory.register_config_factory("video_classification_ucf101")
def video_classification_ucf101() -> cfg.ExperimentConfig:
    """3D ResNet-50 on UCF101 (Soomro et al. 2012), from TensorFlow Datasets."""

    def data(split: str, **others: Any) -> vc.DataConfig:
        return vc.DataConfig(
            name="ucf101",
            num_classes=101,
            is_training=True,
            split=split,
            tfds_name="ucf101",
            tfds_split=split,
            feature_shape=(32, 224, 224, 3),
            temporal_stride=2,
            **others,
        )

    return _experiment(
        data("train", num_examples=9537, global_batch_size=64),
        # Kept from the existing recipe: is_training above augments the test clips too. For a clean
        # figure set task.validation_data.is_training=false.
        data("test", num_examples=3783, global_batch_size=16, drop_remainder=False),
        epochs=100,
        peak=0.8,
    )


def _kinetics(
    num_classes: int, train_examples: int, validation_examples: int
) -> cfg.ExperimentConfig:
    """Clips of 64 frames in training; all 250 frames of a video at evaluation."""

    def data(split: str, **others: Any) -> vc.DataConfig:
        name = f"kinetics{num_classes}"
        return vc.DataConfig(name=name, num_classes=num_classes, split=split, **others)

    return _experiment(
        data("train", is_training=True, num_examples=train_examples, global_batch_size=1024),
        data(
            "valid",
            is_training=False,
            drop_remainder=False,
            num_examples=validation_examples,
            global_batch_size=64,
            feature_shape=(250, 224, 224, 3),
        ),
        epochs=44,
        peak=1.6,
    )


@exp_factory.register_config_factory("video_classification_kinetics400")
def video_classification_kinetics400() -> cfg.ExperimentConfig:
    """3D ResNet-50 on Kinetics-400: The Kinetics Human Action Video Dataset (Kay et al. 2017)."""
    return _kinetics(400, train_examples=215570, validation_examples=17706)


@exp_factory.register_config_factory("video_classification_kinetics600")
def video_classification_kinetics600() -> cfg.ExperimentConfig:
    """3D ResNet-50 on Kinetics-600: A Short Note about Kinetics-600 (Carreira et al. 2018)."""
    return _kinetics(600, train_examples=366016, validation_examples=27780)


@exp_factory.register_config_factory("video_classification_kinetics700")
def video_classification_kinetics700() -> cfg.ExperimentConfig:
    """3D ResNet-50 on Kinetics-700: A Short Note on Kinetics-700 (Carreira et al. 2019)."""
    return _kinetics(700, train_examples=522883, validation_examples=33441)


@exp_factory.register_config_factory("video_classification_kinetics700_2020")
def video_classification_kinetics700_2020() -> cfg.ExperimentConfig:
    """3D ResNet-50 on Kinetics-700-2020: its larger second edition (Smaira et al. 2020)."""
    return _kinetics(700, train_examples=535982, validation_examples=33640)
