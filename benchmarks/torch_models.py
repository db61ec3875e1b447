"""ResNet-50 and MobileNetV2 in plain PyTorch, for comparison: no torchvision needed."""

from typing import Any

import torch
from torch import nn


def conv_norm(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> Any:
    """A convolution without bias, and batch normalisation."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
    )


class Bottleneck(nn.Module):
    """1x1, 3x3 with the stride, 1x1 with four times the channels, and a shortcut."""

    def __init__(self, inputs: int, filters: int, stride: int):
        super().__init__()
        outputs = 4 * filters
        self.body = nn.Sequential(
            conv_norm(inputs, filters, 1),
            nn.ReLU(inplace=True),
            conv_norm(filters, filters, 3, stride),
            nn.ReLU(inplace=True),
            conv_norm(filters, outputs, 1),
        )
        is_same = inputs == outputs and stride == 1
        self.shortcut = nn.Identity() if is_same else conv_norm(inputs, outputs, 1, stride)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.relu(self.body(x) + self.shortcut(x))


def resnet50(num_classes: int) -> nn.Module:
    """ResNet-50 v1.5."""
    layers = [conv_norm(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for filters, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for index in range(count):
            layers.append(Bottleneck(channels, filters, stride if index == 0 else 1))
            channels = 4 * filters
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, num_classes)]
    return nn.Sequential(*layers)


class InvertedBottleneck(nn.Module):
    """Expand, depthwise, project; a shortcut where the shape stays."""

    def __init__(self, inputs: int, outputs: int, stride: int, expand: int):
        super().__init__()
        hidden = inputs * expand
        layers: list[nn.Module] = []
        if expand != 1:
            layers += [conv_norm(inputs, hidden, 1), nn.ReLU6(inplace=True)]
        layers += [conv_norm(hidden, hidden, 3, stride, groups=hidden), nn.ReLU6(inplace=True)]
        layers += [conv_norm(hidden, outputs, 1)]
        self.body = nn.Sequential(*layers)
        self.has_shortcut = inputs == outputs and stride == 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x) if self.has_shortcut else self.body(x)


def mobilenet_v2(num_classes: int) -> nn.Module:
    """MobileNetV2 of width 1."""
    layers = [conv_norm(3, 32, 3, 2), nn.ReLU6(inplace=True)]
    channels = 32
    rows = (
        *((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2)),
        *((6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)),
    )
    for expand, outputs, count, stride in rows:
        for index in range(count):
            layers.append(
                InvertedBottleneck(channels, outputs, stride if index == 0 else 1, expand)
            )
            channels = outputs
    layers += [conv_norm(channels, 1280, 1), nn.ReLU6(inplace=True)]
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, num_classes)]
    return nn.Sequential(*layers)


MODELS = {"resnet50": resnet50, "mobilenet_v2": mobilenet_v2}
