"""The base of SpineNets: blocks whose levels go up and down, and what connects them."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import keras

from hortus.vision.modeling.backbones.backbone import Backbone
from hortus.vision.modeling.layers.regularization.stochastic_depth import stochastic_depth_rate


@dataclasses.dataclass(frozen=True)
class Node:
    """One block of a scale-permuted network."""

    level: int
    """Of its features: 2^level times smaller than the image."""
    inputs: tuple[int, ...] = ()
    """Positions in the table of the nodes that it adds up; none for those of the stem."""
    is_output: bool = False
    """Whether its features are those of the network for its level."""
    is_bottleneck: bool = True
    """A bottleneck block rather than a residual block, where a network has both."""


class ScalePermutedBackbone(Backbone):
    """Connects the blocks of a table of nodes (Du et al. 2019).

    A block whose features no other uses is added to the inputs of the output block of its level.
    Blocks on which no wanted level depends are left out.
    """

    nodes: tuple[Node, ...]
    """All blocks, each after its inputs."""
    min_level: int
    max_level: int
    stochastic_depth_drop_rate: float

    def _resample(self, x: Any, source: Node, target: Node, name: str) -> Any:
        """Features of `source`, as inputs of `target`; not activated."""
        raise NotImplementedError

    def _block(self, x: Any, node: Node, drop_rate: float, name: str) -> Any:
        """The block, or blocks, of a node."""
        raise NotImplementedError

    def _connect(self, stem: Sequence[Any], endpoint_filters: int) -> dict[str, Any]:
        """Features of the nodes of the stem to features by level, of `endpoint_filters`."""
        features = dict(enumerate(stem))
        names = [f"stem_block{i + 1}" for i in range(len(stem))]
        names += [f"block{i + 1}" for i in range(len(self.nodes) - len(stem))]
        for index in self._wanted():
            if index in features:
                continue
            node, name = self.nodes[index], names[index]
            parents = [
                self._resample(features[i], self.nodes[i], node, name=f"{name}_from_{names[i]}")
                for i in node.inputs
            ]
            parents += [features[i] for i in self._loose_ends(node)]
            x = keras.layers.Add(name=f"{name}_sum")(parents)
            x = self.norm_act.activation(name=f"{name}_activation")(x)
            rate = stochastic_depth_rate(
                self.stochastic_depth_drop_rate,
                index - len(stem) + 1,
                len(self.nodes) - len(stem),
            )
            features[index] = self._block(x, node, rate, name=name)
        outputs = {self.nodes[i].level: features[i] for i in self._outputs()}
        return {
            str(level): self._conv_norm_act(
                outputs[level], endpoint_filters, 1, 1, name=f"level{level}"
            )
            for level in sorted(outputs)
        }

    def _outputs(self) -> list[int]:
        levels = range(self.min_level, self.max_level + 1)
        return [i for i, node in enumerate(self.nodes) if node.is_output and node.level in levels]

    def _loose_ends(self, output: Node) -> list[int]:
        """Nodes that nothing uses and that `output` therefore takes in."""
        if not output.is_output:
            return []
        used = {i for node in self.nodes for i in node.inputs}
        return [
            i
            for i, node in enumerate(self.nodes)
            if i not in used and not node.is_output and node.level == output.level
        ]

    def _wanted(self) -> list[int]:
        """The nodes that the outputs depend on, in order."""
        wanted: set[int] = set()
        waiting = self._outputs()
        while waiting:
            index = waiting.pop()
            if index not in wanted:
                wanted.add(index)
                node = self.nodes[index]
                waiting += [*node.inputs, *self._loose_ends(node)]
        return sorted(wanted)

    def _check_arguments(self) -> None:
        levels = sorted(node.level for node in self.nodes if node.is_output)
        if not levels[0] <= self.min_level <= self.max_level <= levels[-1]:
            raise ValueError(
                f"levels must be from {levels[0]} to {levels[-1]}, min_level first, got "
                f"min_level={self.min_level}, max_level={self.max_level}"
            )
        # Otherwise features that were upsampled would not fit those that were not.
        multiple = 2 ** max(node.level for node in self.nodes)
        height, width = self.input_specs.shape[1:3]
        if any(side is not None and side % multiple for side in (height, width)):
            raise ValueError(
                f"the sides of images must be multiples of {multiple} for {type(self).__name__}, "
                f"got {height}x{width}"
            )
