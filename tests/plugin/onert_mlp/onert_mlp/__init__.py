"""Perceptrons in a format of their own.

A file is `MLP1`, the number of inputs and of layers, and for each layer its number of outputs, its activation (0 none,
1 ReLU, 2 tanh), and the elements of `weight[outputs][inputs]` and `bias[outputs]`. All are 32 bits, little-endian.
"""

import struct
from pathlib import Path

import numpy as np

from onert.frontend import Format
from onert.ir import DType, ModelError, Package, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.elementwise.unary import Unary, UnaryKind

MAGIC = b"MLP1"
MOST = 1 << 16
"""Limit for inputs, outputs and layers: more than any such model needs, and too few to exhaust memory."""


def recognize(head: bytes, path: Path | None) -> bool:
    return head.startswith(MAGIC)


def load(content: memoryview, path: Path | None) -> Package:
    at = len(MAGIC)

    def take(count: int, what: str) -> memoryview:
        nonlocal at
        if at + 4 * count > len(content):
            raise ModelError(f"{what} has {len(content) - at} bytes at offset {at}, expected {4 * count}")
        at += 4 * count
        return content[at - 4 * count : at]

    def number(what: str, most: int = MOST) -> int:
        (found,) = struct.unpack("<I", take(1, what))
        if found > most:
            raise ModelError(f"{what} is {found}, expected at most {most}")
        return int(found)

    b = Builder("mlp")
    features = number("the number of inputs")
    x = b.input(TensorType(DType.FLOAT32, (None, features)), "x")
    for layer in range(number("the number of layers")):
        outputs = number(f"layer {layer}: the number of outputs")
        activation = number(f"layer {layer}: the activation", 2)
        weight = np.frombuffer(take(outputs * features, f"layer {layer}: weight"), "<f4").reshape(outputs, features)
        bias = np.frombuffer(take(outputs, f"layer {layer}: bias"), "<f4")
        fused = Activation.RELU if activation == 1 else Activation.NONE
        x = b.add(FullyConnected(fused, keep_dims=True), x, b.constant(weight), b.constant(bias))
        if activation == 2:
            x = b.add(Unary(UnaryKind.TANH), x)
        features = outputs
    if at != len(content):
        raise ModelError(f"{len(content) - at} bytes follow the last layer")
    return Package((b.model([x]),))


FORMAT = Format("mlp", recognize, load)
