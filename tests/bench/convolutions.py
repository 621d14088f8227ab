"""Writes float32 convolutional networks: ResNet 18 and 50, VGG 16, a U-Net, and a detector like YOLO v8.

    python tests/bench/convolutions.py FOLDER [NAME ...]

The shapes are those of the published networks. The weights are random, with a variance that keeps activations near one.
`onert_bench FOLDER/*.tflite --peers litert,openvino` compares the models with peers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from attrs import define, field

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.writing import network, write_models
from model_writer import Graph

from onert.ir import DType

_NONE, _RELU = 0, 1
_WINDOW = {"dilationWFactor": 1, "dilationHFactor": 1}


@define
class _Tensor:
    at: int
    shape: tuple[int, ...]


@define
class Network:
    """A float32 graph under construction. All padding is SAME."""

    graph: Graph
    rng: np.random.Generator = field(factory=lambda: np.random.default_rng(0))

    def picture(self, size: int) -> _Tensor:
        """The input: an image with three channels."""
        shape = (1, size, size, 3)
        return _Tensor(self.graph.input(DType.FLOAT32, shape), shape)

    def _make(
        self, code: str, inputs: Sequence[_Tensor | int], shape: tuple[int, ...], options: tuple[str, dict[str, object]]
    ) -> _Tensor:
        at = self.graph.tensor(DType.FLOAT32, shape)
        self.graph.operator(code, [i.at if isinstance(i, _Tensor) else i for i in inputs], [at], options)
        return _Tensor(at, shape)

    def _weights(self, *shape: int) -> tuple[int, int]:
        deviation = np.sqrt(2 / np.prod(shape[1:]))
        weights = self.rng.standard_normal(shape, np.float32) * np.float32(deviation)
        biases = self.rng.standard_normal(shape[0], np.float32) * np.float32(0.1)
        return self.graph.constant(weights), self.graph.constant(biases)

    def convolution(self, x: _Tensor, n: int, window: int = 3, stride: int = 1, activation: int = _RELU) -> _Tensor:
        """A convolution with bias and activation."""
        _, height, width, c = x.shape
        options = {**_WINDOW, "padding": 0, "strideW": stride, "strideH": stride, "fusedActivationFunction": activation}
        shape = (1, -(-height // stride), -(-width // stride), n)
        return self._make("CONV_2D", [x, *self._weights(n, window, window, c)], shape, ("Conv2DOptions", options))

    def silu(self, x: _Tensor, n: int, window: int = 1, stride: int = 1) -> _Tensor:
        """A convolution followed by SiLU."""
        y = self.convolution(x, n, window, stride, _NONE)
        gate = self._make("LOGISTIC", [y], y.shape, ("ReshapeOptions", {}))
        return self._make("MUL", [y, gate], y.shape, ("MulOptions", {}))

    def added(self, x: _Tensor, y: _Tensor, activation: int = _NONE) -> _Tensor:
        return self._make("ADD", [x, y], x.shape, ("AddOptions", {"fusedActivationFunction": activation}))

    def joined(self, parts: Sequence[_Tensor]) -> _Tensor:
        """Concatenate along the channels."""
        shape = (*parts[0].shape[:3], sum(p.shape[3] for p in parts))
        return self._make("CONCATENATION", parts, shape, ("ConcatenationOptions", {"axis": 3}))

    def pooled(self, x: _Tensor, window: int = 2, stride: int = 2) -> _Tensor:
        """Max pooling."""
        _, height, width, n = x.shape
        options = {"padding": 0, "strideW": stride, "strideH": stride, "filterWidth": window, "filterHeight": window}
        return self._make(
            "MAX_POOL_2D", [x], (1, -(-height // stride), -(-width // stride), n), ("Pool2DOptions", options)
        )

    def doubled(self, x: _Tensor) -> _Tensor:
        """Double the height and the width."""
        _, height, width, n = x.shape
        size = self.graph.constant(np.array([2 * height, 2 * width], np.int32))
        shape = (1, 2 * height, 2 * width, n)
        return self._make("RESIZE_NEAREST_NEIGHBOR", [x, size], shape, ("ResizeNearestNeighborOptions", {}))

    def flat(self, x: _Tensor) -> _Tensor:
        """Flatten to one row."""
        shape = (1, int(np.prod(x.shape)))
        return self._make(
            "RESHAPE",
            [x, self.graph.constant(np.array(shape, np.int32))],
            shape,
            ("ReshapeOptions", {"newShape": shape}),
        )

    def classes(self, x: _Tensor, n: int, activation: int = _NONE) -> _Tensor:
        """A fully connected layer."""
        options = {"fusedActivationFunction": activation}
        return self._make(
            "FULLY_CONNECTED", [x, *self._weights(n, x.shape[1])], (1, n), ("FullyConnectedOptions", options)
        )

    def mean(self, x: _Tensor) -> _Tensor:
        """The mean over all pixels."""
        axes = self.graph.constant(np.array([1, 2], np.int32))
        return self._make("MEAN", [x, axes], (1, x.shape[3]), ("ReducerOptions", {"keepDims": False}))


def _residual(net: Network, x: _Tensor, n: int, stride: int, deep: bool) -> _Tensor:
    """A ResNet block, with a bottleneck if `deep`."""
    if deep:
        y = net.convolution(net.convolution(net.convolution(x, n, 1), n, 3, stride), 4 * n, 1, 1, _NONE)
    else:
        y = net.convolution(net.convolution(x, n, 3, stride), n, 3, 1, _NONE)
    beside = x if x.shape == y.shape else net.convolution(x, y.shape[3], 1, stride, _NONE)
    return net.added(y, beside, _RELU)


def resnet(net: Network, counts: Sequence[int], deep: bool) -> _Tensor:
    """ResNet for 224 x 224 images."""
    x = net.pooled(net.convolution(net.picture(224), 64, 7, 2), 3)
    for number, count in enumerate(counts):
        for block in range(count):
            x = _residual(net, x, 64 << number, 2 if number and not block else 1, deep)
    return net.classes(net.mean(x), 1000)


def vgg(net: Network) -> _Tensor:
    """VGG 16. Its two hidden layers of 4096 units have 512 here, so that the convolutions dominate."""
    x = net.picture(224)
    for count, n in ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512)):
        for _ in range(count):
            x = net.convolution(x, n)
        x = net.pooled(x)
    return net.classes(net.classes(net.flat(x), 512, _RELU), 1000)


def unet(net: Network, size: int = 256, width: int = 32, depth: int = 4) -> _Tensor:
    """A U-Net: pairs of convolutions on each level, with skip connections."""
    x, across = net.picture(size), []
    for level in range(depth):
        x = net.convolution(net.convolution(x, width << level), width << level)
        across.append(x)
        x = net.pooled(x)
    x = net.convolution(net.convolution(x, width << depth), width << depth)
    for level, beside in reversed(list(enumerate(across))):
        x = net.joined([net.convolution(net.doubled(x), width << level), beside])
        x = net.convolution(net.convolution(x, width << level), width << level)
    return net.convolution(x, 2, 1, 1, _NONE)


def _stage(net: Network, x: _Tensor, n: int, depth: int, residual: bool) -> _Tensor:
    parts = [net.silu(x, n // 2), net.silu(x, n // 2)]
    for _ in range(depth):
        inner = net.silu(net.silu(parts[-1], n // 2, 3), n // 2, 3)
        parts.append(net.added(parts[-1], inner) if residual else inner)
    return net.silu(net.joined(parts), n)


def yolo(net: Network, size: int = 320, width: int = 32) -> _Tensor:
    """A detector like YOLO v8 s: backbone stages, a neck, and box and class heads at three scales."""
    x = net.silu(net.silu(net.picture(size), width, 3, 2), 2 * width, 3, 2)
    x = _stage(net, x, 2 * width, 1, True)
    p3 = _stage(net, net.silu(x, 4 * width, 3, 2), 4 * width, 2, True)
    p4 = _stage(net, net.silu(p3, 8 * width, 3, 2), 8 * width, 2, True)
    p5 = _stage(net, net.silu(p4, 16 * width, 3, 2), 16 * width, 1, True)
    pools = [net.silu(p5, 8 * width)]
    for _ in range(3):
        pools.append(net.pooled(pools[-1], 5, 1))
    p5 = net.silu(net.joined(pools), 16 * width)
    up4 = _stage(net, net.joined([net.doubled(p5), p4]), 8 * width, 1, False)
    out3 = _stage(net, net.joined([net.doubled(up4), p3]), 4 * width, 1, False)
    out4 = _stage(net, net.joined([net.silu(out3, 4 * width, 3, 2), up4]), 8 * width, 1, False)
    out5 = _stage(net, net.joined([net.silu(out4, 8 * width, 3, 2), p5]), 16 * width, 1, False)
    rows = []
    for out in (out3, out4, out5):
        boxes = net.convolution(net.silu(net.silu(out, 64, 3), 64, 3), 64, 1, 1, _NONE)
        scores = net.convolution(net.silu(net.silu(out, 128, 3), 128, 3), 80, 1, 1, _NONE)
        rows.append(net.flat(net.joined([boxes, scores])))
    return net._make("CONCATENATION", rows, (1, sum(r.shape[1] for r in rows)), ("ConcatenationOptions", {"axis": 1}))


NETWORKS: dict[str, Callable[[Network], _Tensor]] = {
    "resnet18": lambda net: resnet(net, (2, 2, 2, 2), False),
    "resnet50": lambda net: resnet(net, (3, 4, 6, 3), True),
    "vgg16": vgg,
    "unet_256": unet,
    "yolo_320": yolo,
}


if __name__ == "__main__":
    write_models(__doc__, {name: partial(network, make, Network) for name, make in NETWORKS.items()})
