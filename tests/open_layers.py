"""ONNX models of a layer or two, with all sizes dynamic except the channels, for tests of lengths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from attrs import frozen
from onnx import NodeProto, TensorProto, helper, numpy_helper

RANDOM = np.random.default_rng(1)

Dims = Sequence[int | str]
"""A shape in which dynamic sizes have names."""


def _weights(*shape: int) -> Any:
    return RANDOM.normal(0, 0.5, shape).astype(np.float32)


@frozen
class Layer:
    """A model with output `y`, its inputs' shapes, and the smallest and largest value of each dynamic size."""

    content: bytes
    inputs: Mapping[str, Dims]
    sizes: Mapping[str, tuple[int, int]]

    def drawn(self, random: np.random.Generator, small: bool) -> dict[str, Any]:
        """Inputs of random sizes; if `small`, from the lower quarter of their ranges."""
        found = {
            name: int(random.integers(low, max(low + 1, high // 4 if small else high + 1)))
            for name, (low, high) in self.sizes.items()
        }
        shapes = {n: [found[d] if isinstance(d, str) else d for d in dims] for n, dims in self.inputs.items()}
        return {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def layer(nodes: Sequence[NodeProto], inputs: Mapping[str, Dims], constants: Mapping[str, Any], **least: int) -> Layer:
    """A layer whose dynamic sizes go up to 4 (`n`), 50 (in images) or 110; `least` sets minimums other than 1."""
    given = [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in inputs.items()]
    held = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "layer", given, [helper.make_empty_tensor_value_info("y")], held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    names = {d for dims in inputs.values() for d in dims if isinstance(d, str)}
    most = {"n": 4} | dict.fromkeys("hw", 50)
    sizes = {name: (least.get(name, 1), most.get(name, 110)) for name in sorted(names)}
    return Layer(model.SerializeToString(), inputs, sizes)


def node(kind: str, inputs: str, output: str = "y", **attributes: Any) -> NodeProto:
    return helper.make_node(kind, inputs.split(), [output], **attributes)


def conv(channels: int, filters: int, window: int, *, group: int = 1, step: int = 1, apart: int = 1, rank: int = 2,
         ending: str = "") -> Layer:  # fmt: skip
    """A convolution with as many outputs as pixels, or fewer if it strides."""
    attributes = {
        "kernel_shape": [window] * rank,
        "strides": [step] * rank,
        "dilations": [apart] * rank,
        "pads": [apart * (window // 2)] * 2 * rank,
        "group": group,
    }
    nodes = [node("Conv", "x w b", "c", **attributes), node(ending or "Identity", "c")]
    shape = (filters, channels // group, *([window] * rank))
    constants = {"w": _weights(*shape), "b": _weights(filters)}
    return layer(nodes, {"x": ["n", channels, *"hwd"[:rank]]}, constants)


def transposed(channels: int, filters: int, window: int, step: int) -> Layer:
    nodes = [node("ConvTranspose", "x w b", kernel_shape=[window] * 2, strides=[step] * 2)]
    constants = {"w": _weights(channels, filters, window, window), "b": _weights(filters)}
    return layer(nodes, {"x": ["n", channels, "h", "w"]}, constants)


def pool(kind: str, window: int, step: int, pad: int) -> Layer:
    nodes = [node(kind, "x", kernel_shape=[window] * 2, strides=[step] * 2, pads=[pad] * 4)]
    return layer(nodes, {"x": ["n", 20, "h", "w"]}, {}, h=window, w=window)


def same(kind: str, window: int, step: int, auto: str, *operands: Any, **attributes: Any) -> Layer:
    """Windows with automatic padding, which depends on the size."""
    constants = dict(zip("wb", operands, strict=False))
    over = {"strides": [step] * 2, "kernel_shape": [window] * 2, "auto_pad": auto}
    nodes = [node(kind, " ".join(("x", *constants)), **over, **attributes)]
    return layer(nodes, {"x": ["n", 8, "h", "w"]}, constants, h=window, w=window)


def matmul(x: Dims, z: Dims) -> Layer:
    return layer([node("MatMul", "x z")], {"x": x, "z": z}, {})


def dense(depth: int, outputs: int) -> Layer:
    nodes = [node("MatMul", "x w", "m"), node("Add", "m b", "a"), node("Relu", "a")]
    return layer(nodes, {"x": ["n", "t", depth]}, {"w": _weights(depth, outputs), "b": _weights(outputs)})


def of_bytes(depth: int, outputs: int | None) -> Layer:
    """A product of quantised operands; the right one is constant if `outputs` is given."""
    scales = {"s": np.float32(0.05), "o": np.int8(3)}
    nodes = [node("QuantizeLinear", "x s o", "q"), node("DequantizeLinear", "q s o", "left")]
    if outputs is None:
        nodes += [node("QuantizeLinear", "z s o", "p"), node("DequantizeLinear", "p s o", "right")]
        return layer([*nodes, node("MatMul", "left right")], {"x": ["n", "a", depth], "z": ["n", depth, "b"]}, scales)
    filters = {"w": RANDOM.integers(-127, 128, (depth, outputs)).astype(np.int8), "t": np.float32(0.02)}
    nodes += [node("DequantizeLinear", "w t", "right"), node("MatMul", "left right")]
    return layer(nodes, {"x": ["n", "t", depth]}, scales | filters)


def plain(kind: str, dims: Dims, operands: Mapping[str, Any] | None = None, /, **attributes: Any) -> Layer:
    """An operation with constants after its input."""
    constants = operands or {}
    return layer([node(kind, " ".join(("x", *constants)), **attributes)], {"x": dims}, constants)


def recurrent(kind: str, gates: int, direction: str) -> Layer:
    ways, size = 1 + (direction == "bidirectional"), 20
    constants = {
        "w": _weights(ways, gates * size, 12),
        "r": _weights(ways, gates * size, size),
        "b": _weights(ways, 2 * gates * size),
    }
    return layer([node(kind, "x w r b", hidden_size=size, direction=direction)], {"x": ["t", "n", 12]}, constants)


def resized(mode: str, *scales: float, **attributes: Any) -> Layer:
    operands = {"e": np.float32([]), "s": np.float32([1, 1, *scales])}
    return plain("Resize", ["n", 5, "h", "w"], operands, mode=mode, **attributes)


def attention() -> Layer:
    turned = node("Transpose", "z", "u", perm=[0, 1, 3, 2])
    nodes = [turned, node("MatMul", "x u", "s"), node("Softmax", "s", "p", axis=-1), node("MatMul", "p v")]
    both: Dims = ["n", 4, "t", 16]
    return layer(nodes, {"x": ["n", 4, "q", 16], "z": both, "v": both}, {})


def scores() -> Layer:
    """Attention scores before the softmax, as an output of the model."""
    nodes = [node("Transpose", "z", "u", perm=[0, 2, 1]), node("MatMul", "x u", "s"), node("Mul", "s c", "m")]
    inputs: Mapping[str, Dims] = {"x": ["n", "q", 12], "z": ["n", "t", 12], "k": ["n", "q", "t"]}
    return layer([*nodes, node("Add", "m k")], inputs, {"c": np.float32(0.3)})


def excited() -> Layer:
    nodes = [node("GlobalAveragePool", "x", "g"), node("Conv", "g w b", "c"), node("HardSigmoid", "c", "s")]
    constants = {"w": _weights(16, 16, 1, 1), "b": _weights(16)}
    return layer([*nodes, node("Mul", "x s")], {"x": ["n", 16, "h", "w"]}, constants)


def residual() -> Layer:
    nodes = [node("Conv", "x w b", "c", kernel_shape=[3, 3], pads=[1] * 4), node("Add", "c x", "a"), node("Relu", "a")]
    return layer(nodes, {"x": ["n", 24, "h", "w"]}, {"w": _weights(24, 24, 3, 3), "b": _weights(24)})


def joined() -> Layer:
    nodes = [node("Concat", "x z", "c", axis=2), node("Relu", "c")]
    return layer(nodes, {"x": ["n", "a", "b"], "z": ["n", "a", "c"]}, {})


def broadcast() -> Layer:
    nodes = [node("Mul", "x z", "m"), node("Add", "m v", "a"), node("Tanh", "a")]
    return layer(nodes, {"x": ["n", "a", "b"], "z": ["n", 1, "b"], "v": ["a", 1]}, {})


def _pools() -> Iterator[tuple[str, Layer]]:
    for kind, sizes in product(("MaxPool", "AveragePool"), ((2, 2, 0), (3, 2, 1), (5, 1, 2))):
        yield f"{kind} {sizes}", pool(kind, *sizes)


def _reductions() -> Iterator[tuple[str, Layer]]:
    for kind, axes in product(("ReduceSum", "ReduceMax", "ReduceMean"), ([-1], [1], [0], [1, 2], [0, 2])):
        yield f"{kind} {axes}", plain(kind, ["n", "a", "b"], {"axes": np.int64(axes)}, keepdims=0)
    for axis in (-1, -2):
        yield f"Softmax {axis}", plain("Softmax", ["n", "a", "b"], axis=axis)
        yield f"ArgMax {axis}", plain("ArgMax", ["n", "a", "b"], axis=axis)


LAYERS: Mapping[str, Layer] = {
    "3x3": conv(8, 24, 3),
    "3x3, many channels": conv(64, 32, 3),
    "3x3 by 2": conv(16, 40, 3, step=2),
    "5x5": conv(16, 16, 5),
    "7x7 by 2 in colour": conv(3, 32, 7, step=2),
    "depthwise 3x3": conv(24, 24, 3, group=24),
    "depthwise 5x5 by 2": conv(36, 36, 5, group=36, step=2),
    "depthwise 3x3, dilated": conv(48, 48, 3, group=48, apart=2),
    "3x3 in groups": conv(32, 32, 3, group=4),
    "3x3 in small groups": conv(32, 32, 3, group=16),
    "3x3 by 2 in groups": conv(32, 32, 3, group=2, step=2),
    "several filters of each channel": conv(12, 36, 3, group=12),
    "3x3x3": conv(8, 16, 3, rank=3),
    "1x1x1": conv(8, 16, 1, rank=3),
    "3x3, dilated": conv(32, 32, 3, apart=4),
    "1x1": conv(24, 48, 1),
    "1x1 to one, sigmoid": conv(16, 1, 1, ending="Sigmoid"),
    "3x3 to one": conv(8, 1, 3),
    "3x3 to three": conv(8, 3, 3, ending="Relu"),
    "along a line": conv(16, 24, 3, rank=1),
    "along a line, 9 dilated": conv(16, 24, 9, rank=1, apart=2),
    "transposed 2x2 by 2": transposed(24, 24, 2, 2),
    "transposed 2x2 by 2, many channels": transposed(64, 32, 2, 2),
    "transposed 3x3 by 2": transposed(16, 8, 3, 2),
    "transposed 4x4 by 2": transposed(8, 21, 4, 2),
    **dict(_pools()),
    "3x3 by 2, lower margins": same("Conv", 3, 2, "SAME_LOWER", _weights(24, 8, 3, 3), _weights(24)),
    "transposed 4x4 by 2, upper margins": same("ConvTranspose", 4, 2, "SAME_UPPER", _weights(8, 16, 4, 4)),
    "MaxPool 2 by 2, lower margins": same("MaxPool", 2, 2, "SAME_LOWER"),
    "AveragePool 3 by 2, lower margins": same("AveragePool", 3, 2, "SAME_LOWER"),
    "AveragePool 3 by 2, margins counted": same("AveragePool", 3, 2, "SAME_UPPER", count_include_pad=1),
    "LpPool 3 by 2, upper margins": same("LpPool", 3, 2, "SAME_UPPER"),
    "product": matmul(["n", "a", "k"], ["n", "k", "b"]),
    "product, square": matmul(["a", 16], [16, "a"]),
    "product of heads": matmul([4, "a", 24], [4, 24, "b"]),
    "product, open terms": matmul([8, "k"], ["k", 20]),
    "product of a vector": matmul(["k"], ["k", "b"]),
    "product of a row": matmul([1, "k"], ["k", "b"]),
    "product, one size": matmul(["a", "a"], ["a", "a"]),
    **{f"dense {depth} to {outputs}": dense(depth, outputs) for depth, outputs in ((64, 40), (13, 7), (33, 1))},
    "dense bytes": of_bytes(64, 40),
    "dense bytes, odd": of_bytes(33, 17),
    "product of bytes": of_bytes(24, None),
    "attention": attention(),
    "scores": scores(),
    **dict(_reductions()),
    "LayerNormalization": plain("LayerNormalization", ["n", "a", 48], {"g": _weights(48), "b": _weights(48)}),
    "InstanceNormalization": plain("InstanceNormalization", ["n", 6, "h", "w"], {"g": _weights(6), "b": _weights(6)}),
    "InstanceNormalization of volumes": plain(
        "InstanceNormalization", ["n", 6, "a", "h", "w"], {"g": _weights(6), "b": _weights(6)}
    ),
    "Hardmax": plain("Hardmax", ["n", "a", "b"], axis=1),
    "EyeLike": plain("EyeLike", ["a", "b"], k=-2),
    "Transpose to channels last": plain("Transpose", ["n", "a", "h", "w"], perm=[0, 2, 3, 1]),
    "Transpose": plain("Transpose", ["n", "a", "b"], perm=[0, 2, 1]),
    "CumSum": plain("CumSum", ["n", "a"], {"axis": np.int64(1)}),
    "Pad": plain("Pad", ["n", "a", "b"], {"pads": np.int64([0, 1, 2, 0, 3, 1])}),
    "Pad by edges": plain("Pad", ["n", "a", "b"], {"pads": np.int64([0, 0, 1, 0, 0, 1])}, mode="edge"),
    "Resize to nearest": resized("nearest", 2, 2, coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
    "Resize linear": resized("linear", 2, 2),
    "Resize cubic": resized("cubic", 1.5, 2.3),
    "DepthToSpace": plain("DepthToSpace", ["n", 12, "h", "w"], blocksize=2),
    "Erf": plain("Erf", ["n", "a"]),
    "Concat": joined(),
    "broadcast": broadcast(),
    "squeeze and excite": excited(),
    "residual": residual(),
    "LSTM": recurrent("LSTM", 4, "forward"),
    "GRU": recurrent("GRU", 3, "forward"),
    "LSTM both ways": recurrent("LSTM", 4, "bidirectional"),
}
