"""Signal processing: windows, Fourier transforms, mel filters."""

from __future__ import annotations

import math

from onert.frontend.onnx.building import convert
from onert.frontend.onnx.expression import operand
from onert.frontend.onnx.node import Importer, Node
from onert.ir import DType, ModelError
from onert.ir.ops.elementwise.unary import UnaryKind
from onert.ir.ops.vision_audio.fourier import Fourier, MelWeights


def _window(*shares: float) -> Importer:
    """An importer of a cosine-sum window: `shares[k] * cos(2 pi k n / N)`; the first term is constant."""

    def build(node: Node) -> int:
        size = operand(node, 0).cast(DType.INT64).scalar()
        count = size.arange().cast(DType.FLOAT64)
        length = (size if node.flag("periodic", default=True) else (size - 1).at_least(1)).cast(DType.FLOAT64)
        found = count * 0 + shares[0]
        for k, share in enumerate(shares[1:], 1):
            found = found + (count * (2 * math.pi * k) / length).unary(UnaryKind.COS) * share
        return convert(node.draft, found.operand, node.element_type("output_datatype", DType.FLOAT32))

    return build


def _fourier(node: Node) -> int:
    """DFT. Before opset 20, the axis is an attribute that does not count the dimension of real and imaginary parts."""
    d = node.draft
    if node.version >= 20:
        axis = node.input(2) if node.has(2) else d.constant(-2, DType.INT64)
    else:
        axis = d.constant(node.integer("axis", 1), DType.INT64)
    op = Fourier(node.flag("inverse"), node.flag("onesided"))
    return d.add(op, node.input(0), axis, node.optional(1))


def _short_time(node: Node) -> int:
    """STFT: frames of the signal at a fixed step, multiplied by a window and transformed."""
    d = node.draft
    signal, step = operand(node, 0), operand(node, 1).cast(DType.INT64)
    if signal.rank == 2:
        signal = signal.unsqueeze(2)
    if signal.rank != 3:
        raise ModelError(f"the signal is {signal.type}, expected [batch, length, 1 or 2]")
    window = operand(node, 2) if node.has(2) else None
    if node.has(3):
        length = operand(node, 3).cast(DType.INT64).reshape(1)
    elif window is not None:
        length = window.size(0)
    else:
        raise ModelError("has neither a window nor a frame length")
    room = signal.size(1) - length
    frames = room / step.reshape(1) + 1
    places = (frames.arange() * step.scalar()).unsqueeze(1) + length.arange()
    found = signal.take(places, 1)
    if window is not None:
        found = found * window.cast(signal.dtype).unsqueeze(1)
    half = node.flag("onesided", default=True)
    if half and found.shape[-1] == 2:
        raise ModelError("onesided is set for a complex signal, whose transform has no redundant half")
    return d.add(Fourier(half=half), found.operand, d.constant(2, DType.INT64))


def _mel(node: Node) -> int:
    op = MelWeights(node.element_type("output_datatype", DType.FLOAT32))
    return node.draft.add(op, *(node.input(at) for at in range(5)))


TABLE: dict[str, Importer] = {
    "BlackmanWindow": _window(0.42, -0.5, 0.08),
    "DFT": _fourier,
    "HammingWindow": _window(25 / 46, -21 / 46),
    "HannWindow": _window(0.5, -0.5),
    "MelWeightMatrix": _mel,
    "STFT": _short_time,
}
