"""Float networks of later years, and for tasks other than classification, for `bench/float_networks.py`."""

from __future__ import annotations

from float_layers import NONE, RELU, Kinds, Tensor


def mobilenet_v4(net: Kinds) -> Tensor:
    """MobileNetV4 small: inverted bottlenecks with a depthwise convolution in front, in the middle, or both."""

    def block(x: Tensor, n: int, widening: int, before: int, middle: int, stride: int) -> Tensor:
        y = net.depthwise(x, before, 1 if middle else stride, NONE) if before else x
        y = net.convolution(y, widening * x.shape[3], 1)
        y = net.depthwise(y, middle, stride) if middle else y
        y = net.convolution(y, n, 1, 1, NONE)
        return net.added(x, y) if x.shape == y.shape else y

    x = net.convolution(net.picture(224), 32, 3, 2)
    x = net.convolution(net.convolution(x, 32, 3, 2), 32, 1)
    x = net.convolution(net.convolution(x, 96, 3, 2), 64, 1)
    x = block(x, 96, 3, 5, 5, 2)
    for before, middle in ((0, 3), (0, 3), (0, 3), (0, 3), (3, 0)):
        x = block(x, 96, 4 if before else 2, before, middle, 1)
    x = block(x, 128, 6, 3, 3, 2)
    for before, middle in ((5, 5), (0, 5), (0, 5), (0, 3), (0, 3)):
        x = block(x, 128, 4, before, middle, 1)
    return net.classes(net.mean(net.convolution(net.kept_mean(net.convolution(x, 960, 1), 1, 2), 1280, 1)), 1000)


def efficientnet_v2(net: Kinds) -> Tensor:
    """The start of EfficientNetV2: fused inverted bottlenecks, then excited depthwise ones, all by SiLU."""
    x = net.silu(net.picture(128), 24, 3, 2)
    for n, count, stride, widening in ((24, 2, 1, 1), (48, 3, 2, 4), (64, 3, 2, 4)):
        for block in range(count):
            y = net.silu(x, widening * x.shape[3], 3, 1 if block else stride)
            y = net.convolution(y, n, 1, 1, NONE)
            x = net.added(x, y) if x.shape == y.shape else y
    for n, count, stride in ((128, 3, 2), (160, 3, 1)):
        for block in range(count):
            c = x.shape[3]
            y = net.swish(net.depthwise(net.silu(x, 4 * c), 3, 1 if block else stride, NONE))
            y = net.convolution(net.excited(y, c // 4), n, 1, 1, NONE)
            x = net.added(x, y) if x.shape == y.shape else y
    return net.classes(net.mean(net.silu(x, 1280)), 1000)


def mobilevit(net: Kinds) -> Tensor:
    """MobileViT small: 2x2 patches, in which each pixel attends to those at the same place in all other patches."""

    def patches(x: Tensor, heads: int) -> Tensor:
        _, h, w, n = x.shape
        y = net.turned(net.shaped(x, 1, h // 2, 2, w // 2, 2, n), 0, 2, 4, 1, 3, 5)
        y = net.shaped(y, 4, h * w // 4, n)
        for _ in range(2):
            y = net.encoder(y, heads)
        y = net.turned(net.shaped(y, 1, 2, 2, h // 2, w // 2, n), 0, 3, 1, 4, 2, 5)
        return net.shaped(y, 1, h, w, n)

    def bottleneck(x: Tensor, n: int, stride: int) -> Tensor:
        y = net.swish(net.depthwise(net.silu(x, 4 * x.shape[3]), 3, stride, NONE))
        y = net.convolution(y, n, 1, 1, NONE)
        return net.added(x, y) if x.shape == y.shape else y

    x = bottleneck(net.silu(net.picture(256), 16, 3, 2), 32, 1)
    for n in (64, 64):
        x = bottleneck(x, n, 2 if x.shape[1] == 128 else 1)
    for n, c in ((96, 144), (128, 192)):
        x = bottleneck(x, n, 2)
        y = net.convolution(net.silu(x, n, 3), c, 1, 1, NONE)
        x = net.silu(net.joined([x, net.silu(patches(y, 4), n)]), n, 3)
    return net.classes(net.mean(net.silu(x, 640)), 1000)


def swin(net: Kinds) -> Tensor:
    """Swin's first two stages: attention within windows of 7x7 pixels, shifted by 3 in every other block."""

    def rolled(x: Tensor, by: int) -> Tensor:
        for axis in (1, 2):
            size = list(x.shape)
            parts = []
            for start, n in ((by, x.shape[axis] - by), (0, by)):
                begin, size = [0] * 4, list(x.shape)
                begin[axis], size[axis] = start, n
                parts.append(net.operator("SLICE", [x, net.ints(*begin), net.ints(*size)], size))
            x = net.together(parts, axis)
        return x

    def windows(x: Tensor, heads: int) -> Tensor:
        _, h, w, n = x.shape
        y = net.turned(net.shaped(x, 1, h // 7, 7, w // 7, 7, n), 0, 1, 3, 2, 4, 5)
        y = net.attention(net.shaped(y, h * w // 49, 49, n), heads)
        y = net.turned(net.shaped(y, 1, h // 7, w // 7, 7, 7, n), 0, 1, 3, 2, 4, 5)
        return net.shaped(y, 1, h, w, n)

    x = net.normal(net.convolution(net.picture(224), 64, 4, 4, NONE), 3)
    for stage, (n, heads) in enumerate(((64, 2), (128, 4))):
        if stage:
            x = net.convolution(net.normal(x, 3), n, 2, 2, NONE)
        for by in (0, 3):
            y = net.normal(x, 3)
            y = windows(rolled(y, by) if by else y, heads)
            x = net.binary("ADD", x, rolled(y, x.shape[1] - by) if by else y)
            x = net.binary("ADD", x, net.dense(net.gelu(net.dense(net.normal(x, 3), 4 * n)), n))
    return net.classes(net.mean(net.normal(x, 3)), 1000)


def ghostnet(net: Kinds) -> Tensor:
    """GhostNet: half of the channels are depthwise convolutions of the other half."""

    def ghost(x: Tensor, n: int, activation: int) -> Tensor:
        y = net.convolution(x, n // 2, 1, 1, activation)
        return net.joined([y, net.depthwise(y, 3, 1, activation)])

    x = net.convolution(net.picture(224), 16, 3, 2)
    stages = ((16, 16, 1), (48, 24, 2), (72, 24, 1), (72, 40, 2), (120, 40, 1), (240, 80, 2), (184, 80, 1))
    for wide, n, stride in (*stages, (480, 112, 1), (672, 112, 1), (672, 160, 2), (960, 160, 1), (960, 160, 1)):
        y = ghost(x, wide, RELU)
        if stride > 1:
            y = net.depthwise(y, 3, stride, NONE)
        if n in (40, 112, 160):
            y = net.excited(y, wide // 4)
        y = ghost(y, n, NONE)
        if x.shape != y.shape:
            x = net.convolution(net.depthwise(x, 3, stride, NONE), n, 1, 1, NONE)
        x = net.added(x, y)
    return net.classes(net.mean(net.convolution(net.kept_mean(net.convolution(x, 960, 1), 1, 2), 1280, 1)), 1000)


def hrnet(net: Kinds) -> Tensor:
    """A small HRNet: branches of three resolutions, resized and added to one another."""
    x = net.convolution(net.convolution(net.picture(192), 32, 3, 2), 32, 3, 2)
    branches = [x, net.convolution(x, 64, 3, 2), net.convolution(net.convolution(x, 64, 3, 2), 128, 3, 2)]
    for _ in range(2):
        branches = [
            net.added(x, net.convolution(net.convolution(x, x.shape[3]), x.shape[3], 3, 1, NONE)) for x in branches
        ]
        found = []
        for i, own in enumerate(branches):
            _, h, w, n = own.shape
            for j, other in enumerate(branches):
                if j > i:
                    own = net.added(
                        own, net.resized(net.convolution(other, n, 1, 1, NONE), h, w, halfPixelCenters=True)
                    )
                elif j < i:
                    for step in range(i - j):
                        other = net.convolution(other, n if step == i - j - 1 else other.shape[3], 3, 2, NONE)
                    own = net.added(own, other)
            found.append(net.unary("RELU", own))
        branches = found
    return net.convolution(branches[0], 17, 1, 1, NONE)


def crnn(net: Kinds) -> Tensor:
    """The convolutions of a text line reader (32 x 256 pixels), with attention in place of its recurrent layers."""
    x = net.given(1, 32, 256, 1)
    for n, count in ((32, 1), (64, 1), (128, 2)):
        for _ in range(count):
            x = net.convolution(x, n)
        x = net.pooled(x)
    x = net.convolution(x, 256)
    x = net.binary("ADD", net.kept_mean(x, 1), net.vector(256), RELU)
    x = net.encoder(net.shaped(x, 1, x.shape[2], 256), 4)
    return net.unary("SOFTMAX", net.dense(x, 97), table="SoftmaxOptions", beta=1.0)


def conformer(net: Kinds) -> Tensor:
    """Two Conformer blocks on 4 seconds: gated linear units, depthwise windows of 31 along a line, attention."""

    def half(x: Tensor) -> Tensor:
        y = net.dense(net.swish(net.dense(net.normal(x, 2), 4 * 144)), 144)
        return net.binary("ADD", x, net.binary("MUL", y, net.number(0.5)))

    x = net.convolution(net.convolution(net.given(1, 400, 80, 1), 36, 3, 2), 36, 3, 2)
    x = net.dense(net.shaped(x, 1, 100, 20 * 36), 144)
    for _ in range(2):
        x = half(x)
        x = net.binary("ADD", x, net.attention(net.normal(x, 2), 4))
        y = net.dense(net.normal(x, 2), 288)
        y = net.binary("MUL", net.cut(y, 0, 144), net.unary("LOGISTIC", net.cut(y, 144, 144)))
        y = net.swish(net.depthwise(net.shaped(y, 1, 1, 100, 144), 31, 1, NONE, True))
        x = net.binary("ADD", x, net.dense(net.shaped(y, 1, 100, 144), 144))
        x = net.normal(half(x), 2)
    return net.dense(x, 256)


def wavenet(net: Kinds) -> Tensor:
    """WaveNet: dilated windows of 3 along a line of 1000 steps, gated by a hyperbolic tangent and a sigmoid."""
    x = net.line(net.given(1, 1, 1000, 32), 64, 3)
    kept = None
    for number in range(6):
        y = net.dilated(x, 128, (1, 3), 1 << number)
        y = net.binary("MUL", net.unary("TANH", net.cut(y, 0, 64)), net.unary("LOGISTIC", net.cut(y, 64, 64)))
        kept = (
            net.convolution(y, 64, 1, 1, NONE) if kept is None else net.added(kept, net.convolution(y, 64, 1, 1, NONE))
        )
        x = net.added(x, net.convolution(y, 64, 1, 1, NONE))
    assert kept is not None
    return net.convolution(net.unary("RELU", kept), 32, 1, 1, NONE)


def aspp(net: Kinds) -> Tensor:
    """A fully convolutional network whose last stage and head have dilated 3x3 windows instead of strides."""
    x = net.convolution(net.convolution(net.given(1, 65, 65, 64), 64), 128, 3, 2)
    for rate in (2, 2, 4):
        x = net.added(x, net.dilated(net.dilated(x, 128, (3, 3), rate), 128, (3, 3), rate, NONE), RELU)
    parts = [net.convolution(x, 64, 1), *(net.dilated(x, 64, (3, 3), rate) for rate in (6, 12))]
    pooled = net.convolution(net.kept_mean(x, 1, 2), 64, 1)
    x = net.convolution(net.joined([*parts, net.resized(pooled, 33, 33)]), 64, 1)
    return net.resized(net.convolution(x, 21, 1, 1, NONE), 129, 129, alignCorners=True)


def repvgg(net: Kinds) -> Tensor:
    """RepVGG A0 as deployed: only 3x3 convolutions."""
    x = net.picture(160)
    for n, count in ((48, 1), (48, 2), (96, 4), (192, 6), (640, 1)):
        for block in range(count):
            x = net.convolution(x, n, 3, 1 if block else 2)
    return net.classes(net.mean(x), 1000)


LATER = (
    mobilenet_v4, efficientnet_v2, mobilevit, swin, ghostnet, hrnet, crnn, conformer, wavenet, aspp, repvgg,
)  # fmt: skip
