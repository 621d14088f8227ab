"""Arithmetic of sliding windows: sizes, padding, and the inputs that each window element reads.

Source: TFLite's kernels/padding.h (ComputeOutSize, ComputePaddingWithOffset), after TensorFlow's
GetWindowedOutputSize.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum

from attrs import frozen

from onert.ir.errors import RuleError
from onert.ir.op import require
from onert.ir.shape import Dim
from onert.ir.value import Value

MAX_STEP = (1 << 31) - 1
"""The largest stride, dilation or window size that a model file can express."""


class Padding(Enum):
    """SAME: one output for every stride-th input, with zeros around the edges. VALID: only windows entirely inside."""

    SAME = "same"
    VALID = "valid"

    def along(self, axis: int) -> Padding:
        """The padding of one axis over which windows slide."""
        return self


@frozen
class Margins(Value):
    """Explicit padding: the number of zeros before and after each axis over which windows slide, in axis order."""

    sides: tuple[tuple[int, int], ...]

    def along(self, axis: int) -> Margins:
        """The padding of one of these axes."""
        return Margins((self.sides[axis],))


@frozen
class Tap(Value):
    """One window element along one axis: through it, outputs `target` read inputs `source` (slices of equal length)."""

    index: int
    target: slice
    source: slice


@frozen
class Window(Value):
    """A window that slides along one axis.

    For output o, element t of the window reads input `o * stride - before + t * dilation`.
    """

    size: int
    stride: int
    dilation: int
    padding: Padding | Margins

    @property
    def extent(self) -> int:
        """The number of inputs from the window's first to its last element."""
        return (self.size - 1) * self.dilation + 1

    def outputs(self, inputs: int) -> int:
        """The number of outputs along an axis of `inputs`. Raises RuleError if it would be negative.

        A window that spans more inputs than fit in 32 bits is rejected: no other runtime could locate it.
        """
        require(self.extent <= MAX_STEP, f"the dilated window spans {self.extent} elements, more than {MAX_STEP}")
        if self.padding is Padding.SAME:
            return -(-inputs // self.stride)
        room = inputs + sum(self._sides) - self.extent + self.stride
        if room <= -self.stride:  # C division truncates towards zero, so a window slightly too large has no outputs
            raise RuleError(f"window of extent {self.extent} is larger than the {inputs} elements it slides over")
        return max(room, 0) // self.stride

    @property
    def _sides(self) -> tuple[int, int]:
        """The explicit zeros before and after."""
        return self.padding.sides[0] if isinstance(self.padding, Margins) else (0, 0)

    def before(self, inputs: int) -> int:
        """The number of zeros in front of the first input."""
        if self.padding is not Padding.SAME:
            return self._sides[0]
        total = (self.outputs(inputs) - 1) * self.stride + self.extent - inputs
        return max(total, 0) // 2

    def taps(self, inputs: int) -> Iterator[Tap]:
        """The window elements that read any input, by index."""
        return taps(self, inputs, self.outputs(inputs), self.before(inputs))


def taps(window: Window, inputs: int, outputs: int, before: int) -> Iterator[Tap]:
    """The window elements through which any of `outputs` reads any of `inputs`, with `before` zeros in front.

    Elements that read nothing cost nothing, however large the window is.
    """
    if not inputs or not outputs:
        return
    stride, dilation = window.stride, window.dilation
    first = max(0, -(-(before - (outputs - 1) * stride) // dilation))
    last = min(window.size - 1, (inputs - 1 + before) // dilation)
    for index in range(first, last + 1):
        offset = index * dilation - before
        start = max(0, -(offset // stride))
        stop = min(outputs, (inputs - 1 - offset) // stride + 1)
        if start < stop:
            begin = start * stride + offset
            yield Tap(index, slice(start, stop), slice(begin, begin + (stop - start - 1) * stride + 1, stride))


def output_dim(inputs: Dim, size: Dim, stride: int, dilation: int, padding: Padding | Margins) -> Dim:
    """The number of outputs along an axis; None if unknown. Raises RuleError if it would be negative."""
    if inputs is None or (size is None and padding is not Padding.SAME):
        return None
    return Window(1 if size is None else size, stride, dilation, padding).outputs(inputs)


def require_step(name: str, value: int) -> None:
    """Raises RuleError unless a stride, dilation or window size is at least 1 and fits in 32 bits."""
    require(
        1 <= value <= MAX_STEP, f"{name} is {value}, expected {'at least 1' if value < 1 else f'at most {MAX_STEP}'}"
    )


def require_padding(padding: Padding | Margins, axes: int, window: Sequence[Dim] | None = None) -> None:
    """Raises RuleError unless explicit padding covers `axes` axes, is non-negative and fits in 32 bits.

    If the `window` is given, it must be larger than the padding on either side of each axis, so that no window
    lies entirely in the padding.
    """
    if not isinstance(padding, Margins):
        return
    sides = padding.sides
    require(len(sides) == axes, f"padding is for {len(sides)} axes, expected {axes}")
    for i, side in enumerate(sides):
        require(len(side) == 2, f"padding of axis {i} is {side}, expected two numbers (before and after)")
        size = None if window is None else window[i]
        most = MAX_STEP if size is None else min(size - 1, MAX_STEP)
        require(min(side) >= 0 and max(side) <= most, f"padding of axis {i} is {side}, expected 0 to {most}")
