"""Sliding windows over the spatial dimensions: their attributes, and the padding around."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from onert.frontend.onnx.building import ints
from onert.frontend.onnx.draft import Draft
from onert.frontend.onnx.expression import Expression
from onert.frontend.onnx.node import Node
from onert.frontend.onnx.table.elements.movement import padded
from onert.frontend.onnx.table.elements.padding import pad_dynamic
from onert.ir import ModelError
from onert.ir.ops.arithmetic.window import MAX_STEP, Margins, Padding
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.shape import Dim
from onert.ir.value import Value


@frozen
class Windows(Value):
    """Sizes, strides and dilations per dimension, and either explicit margins or a padding that implies them.

    SAME margins known only at run time are `dynamic`; with `same_lower`, the odd element is padded in front.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    margins: tuple[tuple[int, int], ...]
    padding: Padding
    dynamic: bool = False
    same_lower: bool = False

    @property
    def extents(self) -> tuple[int, ...]:
        return tuple((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True))

    def is_same(self, sizes: Sequence[Dim]) -> bool:
        """Whether the margins are those of SAME padding for any value of an unknown size."""
        each = zip(self.extents, self.strides, self.margins, sizes, strict=True)
        return all(_same(extent, stride, size) == margin for extent, stride, margin, size in each)

    def apply(self, d: Draft, image: int, count: int) -> tuple[int, Padding | Margins]:
        """The image [batch, ..., channels], cropped by negative margins, and the padding for an operation.

        The operation has `count` spatial axes, one more than these windows if an axis was inserted in front.
        """
        if self.same_lower:
            return self.pad(Expression(d, image), d.type(image).rank - 1 - len(self.margins)).operand, Padding.VALID
        sizes = d.type(image).shape[-1 - len(self.margins) : -1]
        if self.padding is Padding.SAME or (any(map(any, self.margins)) and self.is_same(sizes)):
            return image, Padding.SAME
        cut = [(min(a, 0), min(b, 0)) for a, b in self.margins]
        around = [(0, 0)] * (d.type(image).rank - 1 - len(cut))
        image = padded(d, image, [*around, *cut, (0, 0)])
        return image, explicit([(max(a, 0), max(b, 0)) for a, b in self.margins], count)

    def same_margins(self, x: Expression, first: int) -> tuple[Expression, Expression]:
        """The int64 margins of SAME padding before and after each axis of x; `first` is the first spatial axis."""
        zero = x.of(ints(x.draft, [0]))
        before, after = [zero] * x.rank, [zero] * x.rank
        for axis, (extent, stride) in enumerate(zip(self.extents, self.strides, strict=True), first):
            outputs = (x.size(axis) + (stride - 1)).binary(BinaryKind.FLOOR_DIV, stride)
            total = ((outputs - 1) * stride + extent - x.size(axis)).at_least(0)
            half = total.binary(BinaryKind.FLOOR_DIV, 2)
            before[axis], after[axis] = (total - half, half) if self.same_lower else (half, total - half)
        return before[0].concat(before[1:], 0), after[0].concat(after[1:], 0)

    def pad(self, x: Expression, first: int, value: int | None = None) -> Expression:
        """The tensor with the margins of SAME padding, for any size."""
        return pad_dynamic(x, *self.same_margins(x, first), value)


def explicit(sides: Sequence[tuple[int, int]], count: int) -> Padding | Margins:
    """The padding with the given margins along the last of `count` axes; VALID if there are none."""
    if not any(map(any, sides)):
        return Padding.VALID
    return Margins((*((0, 0),) * (count - len(sides)), *sides))


def _same(extent: int, stride: int, size: Dim) -> tuple[int, int] | None:
    """The margins of SAME padding; None if they are unknown."""
    if size is None and stride != 1:
        return None
    total = extent - 1 if size is None else max((-(-size // stride) - 1) * stride + extent - size, 0)
    return total // 2, total - total // 2


def windows(node: Node, kernel: tuple[int, ...], sizes: Sequence[Dim]) -> Windows:
    """The windows described by a node's attributes. Raises ModelError for a wrong count, or a number below 1."""
    count = len(sizes)
    given = node.integers("kernel_shape")
    if given is not None and kernel and given != kernel:
        raise ModelError(f"kernel_shape is {list(given)}, the filter's is {list(kernel)}")
    kernel = kernel or given or ()
    strides = node.integers("strides") or (1,) * count
    dilations = node.integers("dilations") or (1,) * count
    for name, values in (("kernel_shape", kernel), ("strides", strides), ("dilations", dilations)):
        if len(values) != count or not all(1 <= v <= MAX_STEP for v in values):
            raise ModelError(f"{name} is {list(values)}, expected {count} numbers of at least 1")
    pads = node.integers("pads") or (0,) * (2 * count)
    auto = node.text("auto_pad", "NOTSET") or "NOTSET"
    if len(pads) != 2 * count or not all(abs(p) <= MAX_STEP for p in pads):
        raise ModelError(f"pads is {list(pads)}, expected {2 * count} numbers")
    margins = tuple((pads[i], pads[i + count]) for i in range(count))
    padding, unknown, lower = Padding.VALID, False, False
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        sides = [_same((k - 1) * a + 1, s, n) for k, a, s, n in zip(kernel, dilations, strides, sizes, strict=True)]
        unknown = None in sides
        lower = unknown and auto == "SAME_LOWER"
        padding = Padding.SAME if unknown or auto == "SAME_UPPER" else Padding.VALID
        if not unknown:
            margins = tuple(s if auto == "SAME_UPPER" else (s[1], s[0]) for s in sides if s is not None)
    elif auto == "VALID":
        margins = ((0, 0),) * count
    elif auto != "NOTSET":
        raise ModelError(f"auto_pad is {auto!r}, expected NOTSET, SAME_UPPER, SAME_LOWER or VALID")
    return Windows(kernel, strides, dilations, margins, padding, unknown, lower)
