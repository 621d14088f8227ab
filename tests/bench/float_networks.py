"""Writes float32 networks of many kinds, with operators of vision, audio and language models besides convolutions.

    python tests/bench/float_networks.py FOLDER [NAME ...]

The shapes are those of the published networks or of smaller variants; the weights are random, with a variance that
keeps activations near one. Composite layers (layer normalisation, instance normalisation, hard swish) are written as
separate operators, as the exporters of Keras and PyTorch do. Compare with peers by
`onert_bench FOLDER/*.tflite --peers litert,openvino`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.writing import network, write_models
from float_layers import NONE, RELU, WINDOW, Kinds, Tensor
from newer_networks import LATER

from onert.ir import DType


def _shuffled(net: Kinds, x: Tensor) -> Tensor:
    _, h, w, n = x.shape
    return net.shaped(net.turned(net.shaped(x, 1, h, w, 2, n // 2), 0, 1, 2, 4, 3), 1, h, w, n)


def shufflenet(net: Kinds) -> Tensor:
    """ShuffleNet V2 1.0x."""
    x = net.pooled(net.convolution(net.picture(224), 24, 3, 2), 3)
    for n, count in ((116, 4), (232, 8), (464, 4)):
        left = net.convolution(net.depthwise(x, 3, 2, NONE), n // 2, 1)
        right = net.convolution(net.depthwise(net.convolution(x, n // 2, 1), 3, 2, NONE), n // 2, 1)
        x = _shuffled(net, net.joined([left, right]))
        for _ in range(count - 1):
            right = net.convolution(net.cut(x, n // 2, n // 2), n // 2, 1)
            right = net.convolution(net.depthwise(right, 3, 1, NONE), n // 2, 1)
            x = _shuffled(net, net.joined([net.cut(x, 0, n // 2), right]))
    return net.classes(net.mean(net.convolution(x, 1024, 1)), 1000)


def densenet(net: Kinds) -> Tensor:
    """DenseNet 121: a batch normalisation (MUL and ADD) before each convolution."""

    def scaled(x: Tensor) -> Tensor:
        y = net.binary("MUL", x, net.vector(x.shape[3]))
        return net.binary("ADD", y, net.vector(x.shape[3]), RELU)

    x = net.pooled(net.convolution(net.picture(224), 64, 7, 2), 3)
    for number, count in enumerate((6, 12, 24, 16)):
        for _ in range(count):
            x = net.joined([x, net.convolution(net.convolution(scaled(x), 128, 1), 32, 3, 1, NONE)])
        if number < 3:
            x = net.average(net.convolution(scaled(x), x.shape[3] // 2, 1, 1, NONE), 2, 2, 1)
    return net.classes(net.mean(scaled(x)), 1000)


def convnext(net: Kinds) -> Tensor:
    """ConvNeXt atto for 224 x 224 images."""
    x = net.normal(net.convolution(net.picture(224), 40, 4, 4, NONE), 3)
    for number, (n, count) in enumerate(((40, 2), (80, 2), (160, 6), (320, 2))):
        if number:
            x = net.convolution(net.normal(x, 3), n, 2, 2, NONE)
        for _ in range(count):
            y = net.normal(net.depthwise(x, 7, 1, NONE), 3)
            y = net.convolution(net.gelu(net.convolution(y, 4 * n, 1, 1, NONE)), n, 1, 1, NONE)
            x = net.binary("ADD", x, net.binary("MUL", y, net.vector(n)))
    return net.classes(net.mean(x), 1000)


def efficientnet(net: Kinds) -> Tensor:
    """EfficientNet B0."""
    x = net.swish(net.convolution(net.picture(224), 32, 3, 2, NONE))
    stages = ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5))
    for widening, n, count, stride, window in (*stages, (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)):
        for block in range(count):
            c = x.shape[3]
            y = net.swish(net.convolution(x, c * widening, 1, 1, NONE)) if widening > 1 else x
            y = net.swish(net.depthwise(y, window, 1 if block else stride, NONE))
            y = net.convolution(net.excited(y, c // 4), n, 1, 1, NONE)
            x = net.added(x, y) if block else y
    return net.classes(net.mean(net.swish(net.convolution(x, 1280, 1, 1, NONE))), 1000)


def unet(net: Kinds) -> Tensor:
    """A 128 x 128 U-Net that upsamples by transposed convolutions, with a softmax over 21 classes."""
    x, across = net.picture(128), []
    for level in range(4):
        x = net.convolution(net.convolution(x, 16 << level), 16 << level)
        across.append(x)
        x = net.pooled(x)
    x = net.convolution(net.convolution(x, 256), 256)
    for level, beside in reversed(list(enumerate(across))):
        x = net.joined([net.transposed(x, 16 << level), beside])
        x = net.convolution(net.convolution(x, 16 << level), 16 << level)
    return net.unary("SOFTMAX", net.convolution(x, 21, 1, 1, NONE), table="SoftmaxOptions", beta=1.0)


def superresolution(net: Kinds) -> Tensor:
    """ESPCN with residual blocks: 160 x 160 images to 480 x 480, added to the resized input."""
    given = net.picture(160)
    x = net.convolution(net.convolution(given, 32, 5), 16)
    for _ in range(3):
        x = net.added(x, net.convolution(net.convolution(x, 16), 16, 3, 1, NONE))
    x = net.space(net.convolution(x, 27, 3, 1, NONE), 3)
    return net.added(x, net.resized(given, 480, 480, halfPixelCenters=True))


def vit(net: Kinds) -> Tensor:
    """A ViT with 192 channels and 6 blocks (the first half of DeiT tiny)."""
    x = net.shaped(net.convolution(net.picture(224), 192, 16, 16, NONE), 1, 196, 192)
    for _ in range(6):
        x = net.encoder(x, 3)
    axes = net.ints(1)
    x = net._make("MEAN", [net.normal(x, 2), axes], (1, 192), ("ReducerOptions", {"keepDims": False}))
    return net.classes(x, 1000)


def mixer(net: Kinds) -> Tensor:
    """MLP-Mixer with 4 blocks."""
    x = net.shaped(net.convolution(net.picture(224), 256, 16, 16, NONE), 1, 196, 256)
    for _ in range(4):
        y = net.turned(net.normal(x, 2), 0, 2, 1)
        y = net.turned(net.dense(net.gelu(net.dense(y, 128)), 196), 0, 2, 1)
        x = net.binary("ADD", x, y)
        x = net.binary("ADD", x, net.dense(net.gelu(net.dense(net.normal(x, 2), 512)), 256))
    return net.dense(net.kept_mean(x, 1), 1000)


def wav2vec(net: Kinds) -> Tensor:
    """The feature encoder of wav2vec 2.0 for one second with 128 channels, and two transformer blocks."""
    x = net.given(1, 1, 16000, 1)
    for window, stride in ((10, 5), (3, 2), (3, 2), (3, 2), (3, 2), (2, 2), (2, 2)):
        x = net.gelu(net.normal(net.line(x, 128, window, stride), 3))
    x = net.shaped(x, 1, x.shape[2], 128)
    for _ in range(2):
        x = net.encoder(x, 4)
    return net.dense(x, 32)


def tcn(net: Kinds) -> Tensor:
    """Separable 1-D convolutions on audio (a small QuartzNet), with depthwise windows of 33."""
    x = net.line(net.given(1, 1, 400, 64), 128, 5, 2, RELU)
    for _ in range(6):
        y = net.depthwise(x, 33, 1, NONE, True)
        y = net.convolution(y, 128, 1)
        x = net.binary("ADD", x, y, RELU)
    return net.convolution(x, 29, 1, 1, NONE)


def segmentation(net: Kinds) -> Tensor:
    """A light segmentation head at full size: logits resized to 513 x 513, and their argmax."""
    x = net.convolution(net.given(1, 65, 65, 96), 64, 1)
    pooled = net.convolution(net.kept_mean(x, 1, 2), 64, 1)
    x = net.joined([x, net.resized(pooled, 65, 65)])
    x = net.convolution(net.convolution(x, 64, 1), 21, 1, 1, NONE)
    x = net.resized(x, 513, 513, alignCorners=True)
    at = net.graph.tensor(DType.INT64, (1, 513, 513))
    net.graph.operator("ARG_MAX", [x.at, net.ints(3)], [at], ("ArgMaxOptions", {"outputType": 4}))
    return Tensor(at, (1, 513, 513))


def matting(net: Kinds) -> Tensor:
    """A selfie segmenter: hard swish, few channels, bilinear upsampling, a sigmoid at full size."""

    def hard(x: Tensor) -> Tensor:
        return net.unary("HARD_SWISH", x, table="HardSwishOptions")

    x, across = hard(net.convolution(net.picture(256), 16, 3, 2, NONE)), []
    for n, stride in ((16, 2), (24, 2), (32, 2)):
        across.append(x)
        x = net.convolution(net.depthwise(net.convolution(x, 4 * n, 1), 3, stride), n, 1, 1, NONE)
    for beside in reversed(across):
        _, height, width, c = beside.shape
        x = net.convolution(net.resized(x, height, width, halfPixelCenters=True), c, 1, 1, NONE)
        y = net.convolution(net.kept_mean(x, 1, 2), c, 1)
        x = net.binary("MUL", x, net.unary("LOGISTIC", net.convolution(y, c, 1, 1, NONE)))
        x = net.binary("ADD", net.convolution(net.added(x, beside), c, 1), x)
        x = net.depthwise(x)
    x = net.transposed(x, 1, 2, 2)
    return net.unary("LOGISTIC", x)


def squeezenet(net: Kinds) -> Tensor:
    """SqueezeNet 1.1."""
    x = net.pooled(net.convolution(net.picture(224), 64, 3, 2), 3)
    for number, n in enumerate((16, 16, 32, 32, 48, 48, 64, 64)):
        if number in (2, 4):
            x = net.pooled(x, 3)
        y = net.convolution(x, n, 1)
        x = net.joined([net.convolution(y, 4 * n, 1), net.convolution(y, 4 * n, 3)])
    return net.mean(net.convolution(x, 1000, 1))


def inception(net: Kinds) -> Tensor:
    """The second half of Inception V3: 1 x 7 and 7 x 1 convolutions, 3 x 3 average pooling."""

    def window(x: Tensor, n: int, rows: int, columns: int) -> Tensor:
        options = {**WINDOW, "padding": 0, "strideW": 1, "strideH": 1, "fusedActivationFunction": RELU}
        shape = (*x.shape[:3], n)
        return net._make("CONV_2D", [x, *net._weights(n, rows, columns, x.shape[3])], shape, ("Conv2DOptions", options))

    x = net.convolution(net.given(1, 17, 17, 256), 384, 1)
    for _ in range(3):
        parts = [net.convolution(x, 96, 1), net.convolution(net.average(x, 3, 1), 96, 1)]
        y = window(window(net.convolution(x, 64, 1), 64, 1, 7), 96, 7, 1)
        parts.append(y)
        y = window(window(net.convolution(x, 64, 1), 64, 7, 1), 64, 1, 7)
        parts.append(window(y, 96, 7, 1))
        x = net.joined(parts)
    return net.classes(net.mean(x), 1000)


def resnext(net: Kinds) -> Tensor:
    """ResNeXt-like blocks: grouped 3x3 convolutions of 16 channels each."""
    x = net.convolution(net.given(1, 56, 56, 64), 128, 1)
    for n, stride in ((128, 1), (128, 1), (256, 2), (256, 1)):
        y = net.grouped(net.convolution(x, n, 1), n, n // 16, stride)
        y = net.convolution(y, n, 1, 1, NONE)
        x = net.added(x if x.shape == y.shape else net.convolution(x, n, 1, stride, NONE), y, RELU)
    return net.classes(net.mean(x), 1000)


def style(net: Kinds) -> Tensor:
    """Style transfer of 128 x 128 images: instance normalisation, residual blocks, nearest-neighbour upsampling."""
    x = net.picture(128)
    for n, window, stride in ((16, 9, 1), (32, 3, 2), (64, 3, 2)):
        x = net.unary("RELU", net.normal(net.convolution(x, n, window, stride, NONE), 1, 2))
    for _ in range(3):
        y = net.unary("RELU", net.normal(net.convolution(x, 64, 3, 1, NONE), 1, 2))
        x = net.added(x, net.normal(net.convolution(y, 64, 3, 1, NONE), 1, 2))
    for n in (32, 16):
        x = net.unary("RELU", net.normal(net.convolution(net.doubled(x), n, 3, 1, NONE), 1, 2))
    return net.unary("TANH", net.convolution(x, 3, 9, 1, NONE))


def generator(net: Kinds) -> Tensor:
    """A generator like DCGAN's: 4 x 4 transposed convolutions with stride 2."""
    x = net.shaped(net.dense(net.given(1, 100), 4 * 4 * 256), 1, 4, 4, 256)
    for n in (128, 64, 32):
        x = net.unary("RELU", net.transposed(x, n, 4, 2))
    return net.unary("TANH", net.transposed(x, 3, 4, 2))


def keypoints(net: Kinds) -> Tensor:
    """Pose heat maps: transposed convolutions, few channels at the end, a softmax over each map."""
    x = net.convolution(net.given(1, 16, 16, 128), 64, 1)
    for _ in range(3):
        x = net.convolution(net.transposed(x, 32, 4, 2, NONE), 32, 3)
    x = net.convolution(net.convolution(x, 8, 3), 1, 3, 1, NONE)
    return net.unary("SOFTMAX", net.shaped(x, 1, 128 * 128), table="SoftmaxOptions", beta=1.0)


NETWORKS: dict[str, Callable[[Kinds], Tensor]] = {
    made.__name__: made
    for made in (
        shufflenet, densenet, convnext, efficientnet, unet, superresolution, vit, mixer, wav2vec, tcn, segmentation,
        matting, squeezenet, inception, resnext, style, generator, keypoints, *LATER,
    )
}  # fmt: skip


if __name__ == "__main__":
    write_models(__doc__, {name: partial(network, make, Kinds) for name, make in NETWORKS.items()})
