"""Residual networks (He et al. 2015), small enough for one page: torchvision is not needed."""

from __future__ import annotations

from torch import Tensor, nn


class BasicBlock(nn.Module):
    """Two convolutions and a way around them: ResNet-18 and smaller."""

    expansion = 1

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *_convolution(inputs, width, 3, stride), nn.ReLU(inplace=True), *_convolution(width, width, 3)
        )
        self.shortcut = _shortcut(inputs, width, stride)

    def forward(self, images: Tensor) -> Tensor:
        return nn.functional.relu(self.body(images) + self.shortcut(images))


class Bottleneck(nn.Module):
    """A narrow convolution between two of one point: ResNet-50."""

    expansion = 4

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = width * self.expansion
        self.body = nn.Sequential(
            *_convolution(inputs, width, 1),
            nn.ReLU(inplace=True),
            *_convolution(width, width, 3, stride),
            nn.ReLU(inplace=True),
            *_convolution(width, outputs, 1),
        )
        self.shortcut = _shortcut(inputs, outputs, stride)

    def forward(self, images: Tensor) -> Tensor:
        return nn.functional.relu(self.body(images) + self.shortcut(images))


def _convolution(inputs: int, outputs: int, size: int, stride: int = 1) -> tuple[nn.Module, nn.Module]:
    return (
        nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False),
        nn.BatchNorm2d(outputs),
    )


def _shortcut(inputs: int, outputs: int, stride: int) -> nn.Module:
    if inputs == outputs and stride == 1:
        return nn.Identity()
    return nn.Sequential(*_convolution(inputs, outputs, 1, stride))


def _resnet(block: type[BasicBlock | Bottleneck], width: int, depths: list[int], classes: int) -> nn.Module:
    layers: list[nn.Module] = [*_convolution(3, width, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    channels = width
    for stage, depth in enumerate(depths):
        for number in range(depth):
            stride = 2 if stage > 0 and number == 0 else 1
            layers.append(block(channels, width << stage, stride))
            channels = (width << stage) * block.expansion
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


MODELS = {
    "resnet8": lambda: _resnet(BasicBlock, 16, [1, 1, 1], 1000),
    "resnet18": lambda: _resnet(BasicBlock, 64, [2, 2, 2, 2], 1000),
    "resnet50": lambda: _resnet(Bottleneck, 64, [3, 4, 6, 3], 1000),
}
