"""Window positions by TNN's padding rules, and the padding that an operation needs to match them.

Source: TNN's conv_layer.cc, deconv_layer.cc and pooling_layer.cc.
"""

from __future__ import annotations

import math

import numpy as np
from attrs import frozen

from onert.frontend.tnn.graph import Graph
from onert.ir import ModelError
from onert.ir.ops.arithmetic.window import Padding, Window
from onert.ir.ops.data_movement.slicing import Pad, Slice
from onert.ir.value import Value

EXPLICIT, SAME, VALID = -1, 0, 1
LARGEST = 1 << 20
"""The maximum of a window size, stride, dilation or padding."""


@frozen
class Span(Value):
    """Windows along one axis: window o starts at `o * stride - before`, and its elements are `dilation` apart."""

    inputs: int
    outputs: int
    size: int
    stride: int
    dilation: int
    before: int

    @property
    def extent(self) -> int:
        return (self.size - 1) * self.dilation + 1

    @property
    def after(self) -> int:
        """The number of elements that the last window reads past the end of the input."""
        return (self.outputs - 1) * self.stride + self.extent - self.before - self.inputs

    def same(self) -> bool:
        """Whether SAME padding produces these windows."""
        window = Window(self.size, self.stride, self.dilation, Padding.SAME)
        return window.outputs(self.inputs) == self.outputs and window.before(self.inputs) == self.before

    @property
    def valid(self) -> bool:
        """Whether all windows are inside the input, and there is no room for another one."""
        return self.before == 0 and -self.stride < self.after <= 0


def truncated_half(total: int) -> int:
    """Half of a number, rounded towards zero as in C."""
    return int(total / 2) if abs(total) < 1 << 50 else total // 2


def conv_span(
    inputs: int, size: int, stride: int, dilation: int, pads: tuple[int, int], kind: int, *, ceil: bool = False
) -> Span:
    """Windows by padding type. SAME and VALID ignore the dilation, as in TNN. With explicit padding and `ceil`, a
    window that only starts inside counts too."""
    if kind in (SAME, VALID):
        outputs = -(-inputs // stride) if kind == SAME else -(-(inputs - size + 1) // stride)
        before = truncated_half((outputs - 1) * stride + size - inputs)
        return require_windows(Span(inputs, outputs, size, stride, dilation, before))
    if kind != EXPLICIT:
        raise ModelError(f"the padding type is {kind}, expected -1, 0 or 1")
    room = inputs + sum(pads) - (size - 1) * dilation - 1
    outputs = (-(-room // stride) if ceil else room // stride) + 1
    return require_windows(Span(inputs, outputs, size, stride, dilation, pads[0]))


def require_windows(span: Span) -> Span:
    """The span. Raises ModelError if it has no windows."""
    if span.outputs < 1:
        what = f"a window of {span.extent} elements with {span.before} in front"
        raise ModelError(f"{what} does not fit on {span.inputs}: {span.outputs} outputs")
    return span


def pad_input(graph: Graph, x: int, spans: tuple[Span, ...], fill: float | None = None) -> tuple[int, Padding]:
    """`x` [batch, ..., channels] padded or cropped if necessary, and the padding for the operation.

    The padding value is `fill`, or the real number 0.
    """
    if all(span.valid for span in spans):
        return x, Padding.VALID
    if all(span.same() for span in spans):
        return x, Padding.SAME
    begins = [0, *(max(0, -span.before) for span in spans), 0]
    ends = [0, *(max(0, -span.after) for span in spans), 0]
    if any(begins) or any(ends):
        shape = graph.shape(x)
        sizes = [d - a - b for d, a, b in zip(shape, begins, ends, strict=True)]
        x = graph.move(Slice(), x, graph.integers(begins), graph.integers(sizes))
    margins = [(0, 0), *((max(0, span.before), max(0, span.after)) for span in spans), (0, 0)]
    if any(map(any, margins)):
        values = () if fill is None else (graph.constant(np.asarray(fill, graph.type(x).dtype.numpy)),)
        x = graph.move(Pad(), x, graph.constant(np.array(margins, np.int32)), *values)
    return x, Padding.VALID


def elements(shape: tuple[int, ...], most: int = 1 << 28) -> int:
    """The number of elements. Raises ModelError if it exceeds `most`."""
    count = math.prod(shape)
    if count > most:
        raise ModelError(f"a constant of shape {list(shape)} would have {count} elements, expected at most {most}")
    return count
