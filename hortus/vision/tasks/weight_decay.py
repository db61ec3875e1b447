"""Weight decay as the configs of all tasks mean it."""

from typing import Optional

import keras

from hortus.vision.modeling.layers.regularization.regularizers import L2


def l2_regularizer(l2_weight_decay: float) -> Optional[keras.regularizers.Regularizer]:
    """The penalty whose gradient is the decay times the weight: half of the squares; None for 0."""
    return L2(l2_weight_decay / 2) if l2_weight_decay else None
