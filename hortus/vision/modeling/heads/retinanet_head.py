"""The head of RetinaNet."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import keras

from hortus.vision.configs import heads as configs
from hortus.vision.modeling.config_arguments import field_values
from hortus.vision.modeling.heads import factory, initializers
from hortus.vision.modeling.layers.blocks.block import Block, Shape
from hortus.vision.modeling.layers.convolution.multilevel_conv import (
    MultilevelConv,
)
from hortus.vision.modeling.layers.convolution.multilevel_tower import (
    MultilevelTower,
)

# Every anchor is at first an object with this probability, or the many that show none would
# swamp the loss.
_PRIOR = 0.01
_PRIOR_BIAS = -math.log((1 - _PRIOR) / _PRIOR)

_ATTRIBUTE_TYPES = ("regression", "classification")
_ATTRIBUTE_DEFAULTS = {
    "type": "regression",
    "size": 1,
    "prediction_tower_name": "",
    "num_convs": None,
    "num_filters": None,
}


@keras.saving.register_keras_serializable(package="Hortus")
class RetinaNetHead(Block):
    """Class and box of every anchor, at every level (Lin et al. 2017), and further attributes.

    Args:
        min_level: finest level.
        max_level: coarsest level.
        num_classes: the background class 0 included.
        num_anchors_per_location: anchors at every pixel; {level as a string: anchors} where they
            differ, which takes `share_level_convs` False.
        num_convs: convolutions of each tower.
        num_filters: of each of them.
        attribute_heads: further predictions per box, as dicts or configs with the fields of the
            `AttributeHead` config.
        share_classification_heads: attributes of type `classification` use the class tower.
        use_separable_conv: depthwise separable instead of full convolutions. In towers, their
            kernels are not regularised.
        num_params_per_anchor: numbers that say where a box is.
        share_level_convs: the same convolutions for all levels.
        **kwargs: of `Block`; `kernel_initializer` is that of the towers.
    """

    def __init__(
        self,
        min_level: int,
        max_level: int,
        num_classes: int,
        num_anchors_per_location: int | dict[str, int],
        num_convs: int = 4,
        num_filters: int = 256,
        attribute_heads: Sequence[Any] | None = None,
        share_classification_heads: bool = False,
        use_separable_conv: bool = False,
        num_params_per_anchor: int = 4,
        share_level_convs: bool = True,
        **kwargs: Any,
    ):
        initializer = "glorot_uniform" if use_separable_conv else initializers.SMALL
        super().__init__(**{"kernel_initializer": initializer, **kwargs})
        self.min_level = min_level
        self.max_level = max_level
        self.num_classes = num_classes
        self.num_anchors_per_location = num_anchors_per_location
        self.num_convs = num_convs
        self.num_filters = num_filters
        self.attribute_heads = [_with_defaults(attribute) for attribute in attribute_heads or []]
        self.share_classification_heads = share_classification_heads
        self.use_separable_conv = use_separable_conv
        self.num_params_per_anchor = num_params_per_anchor
        self.share_level_convs = share_level_convs

        self.towers = {
            "class": self._tower("class", num_convs, num_filters),
            "box": self._tower("box", num_convs, num_filters),
        }
        self.scores = self._prediction("scores", num_classes, _PRIOR_BIAS)
        self.boxes = self._prediction("boxes", num_params_per_anchor)
        self.attributes: dict[str, MultilevelConv] = {}
        self._tower_of: dict[str, str] = {}
        for attribute in self.attribute_heads:
            self._add_attribute(attribute)

    def _levels(self) -> range:
        return range(self.min_level, self.max_level + 1)

    def _tower(self, name: str, num_convs: int, num_filters: int) -> MultilevelTower:
        return MultilevelTower(
            self._levels(),
            num_convs,
            num_filters,
            share_levels=self.share_level_convs,
            separable=self.use_separable_conv,
            norm_act=self.norm_act,
            kernel_initializer=self.kernel_initializer,
            kernel_regularizer=None if self.use_separable_conv else self.kernel_regularizer,
            bias_regularizer=self.bias_regularizer,
            dtype=self.dtype_policy,
            name=f"{name}_tower",
        )

    def _prediction(self, name: str, size: int, bias: float = 0.0) -> MultilevelConv:
        """A convolution to `size` numbers per anchor."""
        anchors = self.num_anchors_per_location
        if isinstance(anchors, int):
            filters: Any = anchors * size
        else:
            filters = {str(level): count * size for level, count in anchors.items()}
        separable_initializer = keras.initializers.RandomNormal(stddev=0.03)
        return MultilevelConv(
            self._levels(),
            filters,
            share_levels=self.share_level_convs,
            separable=self.use_separable_conv,
            kernel_initializer=(
                separable_initializer if self.use_separable_conv else initializers.TINY
            ),
            kernel_regularizer=self.kernel_regularizer,
            bias_initializer=keras.initializers.Constant(bias),
            bias_regularizer=self.bias_regularizer,
            dtype=self.dtype_policy,
            name=name,
        )

    def _add_attribute(self, attribute: dict[str, Any]) -> None:
        name, size = attribute["name"], attribute["size"]
        if attribute["type"] not in _ATTRIBUTE_TYPES:
            raise ValueError(
                f"the type of attribute {name!r} must be one of {_ATTRIBUTE_TYPES}, got "
                f"{attribute['type']!r}"
            )
        if name in self.attributes:
            raise ValueError(f"two attribute heads have the name {name!r}")
        classifies = attribute["type"] == "classification"
        bias = _PRIOR_BIAS if classifies else 0.0
        self.attributes[name] = self._prediction(f"{name}_attribute", size, bias)
        if classifies and self.share_classification_heads:
            if attribute["prediction_tower_name"]:
                raise ValueError(
                    f"attribute {name!r} has a prediction_tower_name, but classifying attributes "
                    "use the class tower with share_classification_heads: leave out one of them"
                )
            self._tower_of[name] = "class"
        else:
            self._tower_of[name] = self._attribute_tower(attribute)

    def _attribute_tower(self, attribute: dict[str, Any]) -> str:
        """Name of the tower of an attribute, which is made where no other attribute has it."""
        # The prefix keeps apart what users call a tower and what we do.
        name = f"attribute_{attribute['prediction_tower_name'] or attribute['name']}"
        if name in self.towers:
            default = (self.towers[name].num_convs, self.towers[name].filters)
        else:
            default = (self.num_convs, self.num_filters)
        given = (attribute["num_convs"], attribute["num_filters"])
        num_convs, num_filters = (
            theirs if ours is None else ours for ours, theirs in zip(given, default, strict=True)
        )
        if name not in self.towers:
            self.towers[name] = self._tower(name, num_convs, num_filters)
        elif (num_convs, num_filters) != default:
            raise ValueError(
                f"attribute {attribute['name']!r} wants {num_convs} convolutions of {num_filters} "
                f"filters, but its tower has {default[0]} of {default[1]}: the heads of one "
                "prediction_tower_name must agree"
            )
        return name

    def _predictions(self) -> list[tuple[MultilevelConv, str]]:
        """All predictions, each with the name of the tower that it sees."""
        attributes = [(self.attributes[name], tower) for name, tower in self._tower_of.items()]
        return [(self.scores, "class"), (self.boxes, "box"), *attributes]

    def build(self, input_shape: dict[str, Shape]) -> None:
        shapes = {}
        for name, tower in self.towers.items():
            tower.build(input_shape)
            shapes[name] = tower.compute_output_shape(input_shape)
        for prediction, name in self._predictions():
            prediction.build(shapes[name])

    def call(
        self, features: dict[str, Any], training: bool | None = None
    ) -> tuple[dict[str, Any], dict[str, Any], dict[str, dict[str, Any]]]:
        """Looks at features of all levels.

        Args:
            features: {level: (batch, height, width, channels)}.
            training: normalise by the batch's own statistics.

        Returns:
            Logits of the classes, {level: (batch, height, width, anchors * classes)}; codes of the
            boxes, {level: (batch, height, width, anchors * params)}; and attributes,
            {name: {level: (batch, height, width, anchors * size)}}.
        """
        seen = {name: tower(features, training=training) for name, tower in self.towers.items()}
        return self._in_order([prediction(seen[name]) for prediction, name in self._predictions()])

    def compute_output_shape(self, features_shape: dict[str, Shape]) -> Any:
        shapes = {
            name: tower.compute_output_shape(features_shape) for name, tower in self.towers.items()
        }
        return self._in_order(
            [
                prediction.compute_output_shape(shapes[name])
                for prediction, name in self._predictions()
            ]
        )

    def _in_order(self, outputs: list[dict[str, Any]]) -> Any:
        scores, boxes, *attributes = outputs
        return scores, boxes, dict(zip(self._tower_of, attributes, strict=True))


def _with_defaults(attribute: Any) -> dict[str, Any]:
    if not isinstance(attribute, Mapping):
        attribute = attribute.as_dict()
    unknown = set(attribute) - {"name", *_ATTRIBUTE_DEFAULTS}
    if unknown or "name" not in attribute:
        raise ValueError(
            f"an attribute head has a name and possibly {', '.join(_ATTRIBUTE_DEFAULTS)}; got "
            f"{', '.join(attribute)}"
        )
    return {**_ATTRIBUTE_DEFAULTS, **attribute}


@factory.register_head(configs.RetinaNetHead)
def build_retinanet_head(
    head_config: configs.RetinaNetHead,
    model_config: Any,
    norm_act: Any,
    l2_regularizer: keras.regularizers.Regularizer | None = None,
    name: str | None = None,
) -> RetinaNetHead:
    """Builds the head from its config."""
    anchor, fields = model_config.anchor, field_values(head_config)
    fields["share_level_convs"] = fields["share_level_convs"] is not False  # null means yes
    return RetinaNetHead(
        min_level=model_config.min_level,
        max_level=model_config.max_level,
        num_classes=model_config.num_classes,
        num_anchors_per_location=anchor.num_scales * len(anchor.aspect_ratios),
        **fields,
        norm_act=norm_act,
        kernel_regularizer=l2_regularizer,
        name=name,
    )
