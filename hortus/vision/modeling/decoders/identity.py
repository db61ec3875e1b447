"""No decoder."""

from collections.abc import Mapping
from typing import Any

import keras

from hortus.vision.modeling.decoders import factory


@factory.register_decoder_builder("identity")
def build_identity(
    input_specs: Mapping[str, Any],
    model_config: Any,
    l2_regularizer: keras.regularizers.Regularizer | None = None,
) -> None:
    """Builds nothing: heads see the backbone's features."""
