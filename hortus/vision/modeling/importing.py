"""What models have in common that weights of other programs can be loaded into."""

from typing import Any

from hortus.vision.weights import translation


class ImportsWeights:
    """Tells `core.checkpoints.load_modules` which tensor of a foreign file is which weight."""

    def foreign_weights(self, source: Any, module: str) -> Any:
        """What `module`, or "all", takes from a file of another program.

        Args:
            source: what `core.checkpoints.sources.open_source` has opened.
            module: a name of `checkpoint_items`, or "all".

        Returns:
            A `core.checkpoints.foreign.Translation`; None if nothing is known of such files.
        """
        return translation.translate(self, source, module)
