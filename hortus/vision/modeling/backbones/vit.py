"""Vision transformer (Dosovitskiy et al. 2020) with the DeiT options."""

import math
from typing import Any, NamedTuple

import keras
from keras import ops

from hortus.vision.configs import backbones as backbone_configs
from hortus.vision.modeling.backbones import factory
from hortus.vision.modeling.backbones.backbone import Backbone, image_input
from hortus.vision.modeling.backbones.builder import builder_of
from hortus.vision.modeling.config_arguments import field_values
from hortus.vision.modeling.layers.attention.position_embedding import ClassToken, PositionEmbedding
from hortus.vision.modeling.layers.attention.transformer_block import TransformerEncoderBlock
from hortus.vision.modeling.layers.normalization.layer_normalization import LayerNormalization
from hortus.vision.modeling.layers.regularization.stochastic_depth import stochastic_depth_rate


class Size(NamedTuple):
    """Widths and depth of a named vision transformer."""

    patch_size: int
    hidden_size: int
    mlp_dim: int
    num_heads: int
    num_layers: int


SIZES = {
    "vit-ti16": Size(16, 192, 768, 3, 12),
    "vit-s16": Size(16, 384, 1536, 6, 12),
    "vit-b16": Size(16, 768, 3072, 12, 12),
    "vit-b32": Size(32, 768, 3072, 12, 12),
    "vit-l16": Size(16, 1024, 4096, 16, 24),
    "vit-l32": Size(32, 1024, 4096, 16, 24),
    "vit-h14": Size(14, 1280, 5120, 16, 32),
    "vit-g14": Size(14, 1408, 5632, 16, 40),
    "vit-G14": Size(14, 1664, 8192, 16, 48),
    "vit-e14": Size(14, 1792, 15360, 16, 56),
}


@keras.saving.register_keras_serializable(package="Hortus")
class VisionTransformer(Backbone):
    """Vision transformer; the size of its images is fixed.

    Its outputs are 'pre_logits' (batch, 1, 1, features), or 'encoded_tokens' (batch, tokens,
    features) with `pooler` 'none'.

    Args:
        patch_size: side of a square patch, in pixels.
        hidden_size: width of a token.
        mlp_dim: hidden width of the MLPs.
        num_heads: of the attention.
        num_layers: number of blocks.
        input_specs: shape of the images, batch first; height and width must be given.
        dropout_rate: share of activations dropped in training, 0 to 1.
        attention_dropout_rate: share of attention weights dropped in training, 0 to 1.
        init_stochastic_depth_rate: chance that an example skips the last block in training;
            proportionally less in earlier ones.
        pooler: image feature: 'token' (class token), 'gap' (mean over patches), 'none' (all
            patches).
        representation_size: width of a tanh layer on top; 0 leaves it out.
        original_init: initialise as in the ViT paper; otherwise as in DeiT.
        pos_embed_shape: rows and columns of the position embedding that is kept, and resized where
            the images have others; None for theirs.
        output_encoded_tokens: return 'encoded_tokens', where there is no pooler.
        output_2d_feature_maps: also return the tokens as a map under their level.
        layer_scale_init_value: start value of LayerScale; 0 leaves it out.
        output_attention_scores: also return 'attention_scores' of the last block, (batch, heads,
            tokens, tokens).
        activation: of the MLPs: `approximate_gelu`, or `gelu` as in PyTorch.
        kernel_regularizer: of all kernels, or None.
        **kwargs: of `keras.Model`.
    """

    def __init__(
        self,
        patch_size: int,
        hidden_size: int,
        mlp_dim: int,
        num_heads: int,
        num_layers: int,
        input_specs: keras.layers.InputSpec,
        dropout_rate: float = 0.0,
        attention_dropout_rate: float = 0.0,
        init_stochastic_depth_rate: float = 0.0,
        pooler: str = "token",
        representation_size: int = 0,
        original_init: bool = True,
        pos_embed_shape: tuple[int, int] | None = None,
        output_encoded_tokens: bool = True,
        output_2d_feature_maps: bool = False,
        layer_scale_init_value: float = 0.0,
        output_attention_scores: bool = False,
        activation: str = "approximate_gelu",
        kernel_regularizer: Any = None,
        **kwargs: Any,
    ):
        if pooler not in ("token", "gap", "none"):
            raise ValueError(f"pooler must be 'token', 'gap' or 'none', got {pooler!r}")
        self.patch_size = patch_size
        self.hidden_size = hidden_size
        self.mlp_dim = mlp_dim
        self.num_heads = num_heads
        self.num_layers = num_layers
        self.input_specs = input_specs
        self.dropout_rate = dropout_rate
        self.attention_dropout_rate = attention_dropout_rate
        self.init_stochastic_depth_rate = init_stochastic_depth_rate
        self.pooler = pooler
        self.representation_size = representation_size
        self.original_init = original_init
        self.pos_embed_shape = pos_embed_shape
        self.output_encoded_tokens = output_encoded_tokens
        self.output_2d_feature_maps = output_2d_feature_maps
        self.layer_scale_init_value = layer_scale_init_value
        self.output_attention_scores = output_attention_scores
        self.activation = activation
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        inputs = image_input(input_specs)
        endpoints = self._connect(inputs)
        if not endpoints:
            raise ValueError(
                "nothing to return: without a pooler, ask for encoded tokens or 2-D feature maps"
            )
        self._finish(inputs, endpoints, [key for key in endpoints if key.isdigit()], **kwargs)

    def _connect(self, images: Any) -> dict[str, Any]:
        grid = self._grid()
        patches = keras.layers.Conv2D(
            self.hidden_size,
            self.patch_size,
            strides=self.patch_size,
            kernel_initializer="lecun_normal" if self.original_init else "he_uniform",
            kernel_regularizer=self.kernel_regularizer,
            name="patches",
        )(images)
        x = keras.layers.Reshape((grid[0] * grid[1], self.hidden_size), name="tokens")(patches)
        extra_tokens = 1 if self.pooler == "token" else 0
        if extra_tokens:
            x = ClassToken(name="class_token")(x)
        x = PositionEmbedding(
            grid, self.pos_embed_shape, extra_tokens=extra_tokens, name="position_embedding"
        )(x)
        if self.dropout_rate:
            x = keras.layers.Dropout(self.dropout_rate, name="dropout")(x)
        x, scores = self._encode(x)
        return self._endpoints(x, scores, extra_tokens, grid)

    def _grid(self) -> tuple[int, int]:
        height, width = self.input_specs.shape[1:3]
        if not height or not width:
            raise ValueError(f"a ViT needs a fixed image size, got {self.input_specs.shape}")
        if height < self.patch_size or width < self.patch_size:
            raise ValueError(f"images of {height}x{width} have no patch of {self.patch_size}")
        return height // self.patch_size, width // self.patch_size

    def _encode(self, x: Any) -> tuple[Any, Any]:
        initializer: Any = "glorot_uniform"
        if not self.original_init:
            initializer = {"class_name": "TruncatedNormal", "config": {"mean": 0.0, "stddev": 0.02}}
        scores = None
        for index in range(1, self.num_layers + 1):
            return_scores = self.output_attention_scores and index == self.num_layers
            x = TransformerEncoderBlock(
                self.num_heads,
                self.mlp_dim,
                dropout_rate=self.dropout_rate,
                attention_dropout_rate=self.attention_dropout_rate,
                stochastic_depth_drop_rate=stochastic_depth_rate(
                    self.init_stochastic_depth_rate, index, self.num_layers
                ),
                layer_scale_init_value=self.layer_scale_init_value,
                activation=self.activation,
                kernel_initializer=initializer,
                kernel_regularizer=self.kernel_regularizer,
                return_scores=return_scores,
                name=f"block{index}",
            )(x)
            if return_scores:
                x, scores = x
        return LayerNormalization(name="norm")(x), scores

    def _endpoints(
        self, tokens: Any, scores: Any, extra_tokens: int, grid: tuple[int, int]
    ) -> dict[str, Any]:
        endpoints = {}
        if self.output_attention_scores:
            endpoints["attention_scores"] = scores
        if self.output_2d_feature_maps:
            level = str(round(math.log2(self.patch_size)))
            shape = (-1, *grid, self.hidden_size)
            endpoints[level] = ops.reshape(tokens[:, extra_tokens:], shape)
        if self.pooler == "none":
            if self.output_encoded_tokens:
                endpoints["encoded_tokens"] = self._represent(tokens)
            return endpoints
        pooled = tokens[:, 0] if self.pooler == "token" else ops.mean(tokens, axis=1)
        pooled = self._represent(pooled)
        endpoints["pre_logits"] = ops.reshape(pooled, (-1, 1, 1, pooled.shape[-1]))
        return endpoints

    def _represent(self, x: Any) -> Any:
        if not self.representation_size:
            return x
        return keras.layers.Dense(
            self.representation_size,
            activation="tanh",
            kernel_initializer="lecun_normal" if self.original_init else "he_uniform",
            kernel_regularizer=self.kernel_regularizer,
            name="pre_logits",
        )(x)


def _arguments(config: backbone_configs.VisionTransformer) -> dict[str, Any]:
    """The fields of a config and of its transformer; a named size comes before them."""
    fields = field_values(config)
    fields |= field_values(fields.pop("transformer"))
    name = fields.pop("model_name")
    if name and name not in SIZES:
        raise ValueError(
            f"model_name must be one of {list(SIZES)}, or empty to take hidden_size, patch_size "
            f"and the transformer's own fields; got {name!r}"
        )
    return fields | (SIZES[name]._asdict() if name else {})


build_vit = factory.register_backbone_builder("vit")(builder_of(VisionTransformer, _arguments))
