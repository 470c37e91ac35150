"""Parameter shapes of well-known networks, in the order of their layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ParameterList:
    """The parameters of a network."""

    name: str
    shapes: Sequence[Shape]

    @property
    def element_count(self) -> int:
        """Elements of all parameters."""
        return sum(math.prod(shape) for shape in self.shapes)


def _checked(name: str, shapes: Sequence[Shape], tensors: int, elements: int) -> ParameterList:
    made = ParameterList(name, shapes)
    if (len(shapes), made.element_count) != (tensors, elements):
        message = (
            f"{name}: expected {tensors} tensors with {elements} elements,"
            f" got {len(shapes)} with {made.element_count}"
        )
        raise AssertionError(message)
    return made


def _convolution_and_norm(inputs: int, outputs: int, kernel: int) -> list[Shape]:
    return [(outputs, inputs, kernel, kernel), (outputs,), (outputs,)]


def _linear(inputs: int, outputs: int) -> list[Shape]:
    return [(outputs, inputs), (outputs,)]


def _resnet50() -> list[Shape]:
    expansion = 4  # a bottleneck block puts out 4 times its width
    shapes = _convolution_and_norm(3, 64, 7)
    channels = 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            shapes += _convolution_and_norm(channels, width, 1)
            shapes += _convolution_and_norm(width, width, 3)
            shapes += _convolution_and_norm(width, width * expansion, 1)
            if block == 0:
                shapes += _convolution_and_norm(channels, width * expansion, 1)  # shortcut
            channels = width * expansion
    return shapes + _linear(channels, 1000)


def _vgg16() -> list[Shape]:
    shapes: list[Shape] = []
    channels = 3
    for width, convolutions in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(convolutions):
            shapes += [(width, channels, 3, 3), (width,)]
            channels = width
    return shapes + _linear(channels * 7 * 7, 4096) + _linear(4096, 4096) + _linear(4096, 1000)


def _bert_base() -> list[Shape]:
    hidden = 768
    norm: list[Shape] = [(hidden,), (hidden,)]
    shapes: list[Shape] = [(30522, hidden), (512, hidden), (2, hidden), *norm]
    for _ in range(12):
        shapes += 4 * _linear(hidden, hidden) + norm  # query, key, value, output
        shapes += _linear(hidden, 4 * hidden) + _linear(4 * hidden, hidden) + norm
    return shapes + _linear(hidden, hidden)


RESNET50 = _checked("ResNet-50 list", _resnet50(), 161, 25_557_032)
VGG16 = _checked("VGG-16 list", _vgg16(), 32, 138_357_544)
BERT_BASE = _checked("BERT-base list", _bert_base(), 199, 109_482_240)
