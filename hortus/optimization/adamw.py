"""Adam with decoupled weight decay that variables join or leave by name."""

from typing import Any, Sequence

import keras

from hortus.optimization.gradient_clipping import clip_by_global_norm
from hortus.optimization.lr_schedule import Rate
from hortus.optimization.name_patterns import NamePatterns, Patterns


@keras.saving.register_keras_serializable(package="Hortus")
class AdamWeightDecay(keras.optimizers.AdamW):
    """Keras' AdamW (Loshchilov & Hutter 2017) with decay by name and a clip of its own.

    Args:
        learning_rate: a constant or a schedule.
        weight_decay: share of a weight, times the learning rate, taken off at every step.
        include: names that decay whatever `exclude` says.
        exclude: names that do not decay. Names in neither list do.
        gradient_clip_norm: largest global norm of the gradients; 0 for no limit. It comes before
            Keras' own `clipnorm`, `clipvalue` or `global_clipnorm`.
        **kwargs: what `keras.optimizers.AdamW` takes.
    """

    def __init__(
        self,
        learning_rate: Rate = 0.001,
        weight_decay: float = 0.0,
        include: Patterns = None,
        exclude: Patterns = None,
        gradient_clip_norm: float = 0.0,
        **kwargs: Any,
    ):
        super().__init__(learning_rate=learning_rate, weight_decay=weight_decay, **kwargs)
        self.include = include
        self.exclude = exclude
        self.gradient_clip_norm = gradient_clip_norm

    def build(self, variables: Sequence[Any]) -> None:
        """Creates the slots and settles which of `variables` decay."""
        if self.built:
            return
        include, exclude = NamePatterns(self.include), NamePatterns(self.exclude)
        if not self.weight_decay:
            still = list(variables)  # Keras would subtract zero from each of them.
        else:
            still = [v for v in variables if exclude.match(v) and not include.match(v)]
        if still:
            self.exclude_from_weight_decay(var_list=still)
        super().build(variables)

    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        """Clips, then updates the weights."""
        if self.gradient_clip_norm:
            # A fixed loss scale is taken out further down, so the limit is scaled like the loss.
            norm = self.gradient_clip_norm * (self.loss_scale_factor or 1.0)
            grads = clip_by_global_norm(grads, norm)
        super().apply(grads, trainable_variables)

    def get_config(self) -> dict:
        """The arguments of the constructor."""
        return {
            **super().get_config(),
            "include": self.include,
            "exclude": self.exclude,
            "gradient_clip_norm": self.gradient_clip_norm,
        }
