"""Trim the parts of windows that only ever cover padding."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from onert.compiler.rewrite.contract import TYPED, rewriting
from onert.compiler.rewrite.edit import Edit
from onert.ir import Operation, Subgraph
from onert.ir.ops.arithmetic.window import Margins, Padding, Window
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.conv3d import Conv3D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.symbolic.trace import is_symbolic

FIRST = {Conv2D: 1, DepthwiseConv2D: 1, Conv3D: 0}
"""The filters' first window axis."""

NAMES = ("depth", "height", "width")
"""The axes that windows slide over: the last two or all three of these."""


@rewriting(requires=(TYPED,), ensures=(TYPED,))
def trim_windows(subgraph: Subgraph) -> Subgraph:
    """Drop the outer elements of constant windows that are in the margins at every position of the window.

    They contribute nothing, whatever the element type. Margins that only they needed are dropped too. Only windows
    larger than their input are examined: others are inside it at some position, unless the strides are long.

        y = Conv2D(x [1, 14, 14, 8], const [4, 3, 3, 8]) SAME, dilation 24   -->   y = Conv2D(x, const [4, 1, 1, 8])
    """
    edit = Edit(subgraph)
    for at, operation in enumerate(subgraph.operations):
        if type(operation.op) in FIRST and _larger(subgraph, operation):
            _trim(edit, at, operation)
    return edit.done()


def _larger(subgraph: Subgraph, operation: Operation) -> bool:
    """Whether the window is constant and larger than the input along an axis of known, not symbolic, length."""
    op: Any = operation.op
    source, weight = operation.used[:2]
    if op.padding is Padding.VALID or subgraph.operands[weight].data is None:
        return False
    x, window = subgraph.type(source).shape, subgraph.type(weight).shape[FIRST[type(op)] :]
    return any(
        size is not None
        and inputs is not None
        and not is_symbolic(inputs)
        and (size - 1) * getattr(op, f"dilation_{name}") >= inputs
        for name, inputs, size in zip(NAMES[5 - len(x) :], x[1:-1], window, strict=False)
    )


def _trim(edit: Edit, at: int, operation: Operation) -> None:
    op: Any = operation.op
    types = edit.subgraph.types(operation)
    x, filters = types.input(0), types.input(1)
    first = FIRST[type(op)]
    slices: list[slice] = [slice(None)] * first
    changed: dict[str, int] = {}
    sides: list[tuple[int, int]] = []
    same = op.padding is Padding.SAME
    for axis, name in enumerate(NAMES[5 - x.rank :]):
        inputs, size = x.shape[1 + axis], filters.shape[first + axis]
        if inputs is None or size is None or is_symbolic(inputs):
            return  # explicit margins are unknown for this axis, but another axis may need them
        window = Window(size, getattr(op, f"stride_{name}"), getattr(op, f"dilation_{name}"), op.padding.along(axis))
        start, stop, trimmed_window, margins = _trimmed(window, inputs)
        slices.append(slice(start, stop))
        changed[f"dilation_{name}"] = trimmed_window.dilation
        sides.append(margins)
        same = same and evolve(trimmed_window, padding=Padding.SAME).before(inputs) == margins[0]
    if all(k in (slice(None), slice(0, n)) for k, n in zip(slices, filters.shape, strict=False)):
        return
    padding = Padding.SAME if same else Margins(tuple(sides)) if any(map(any, sides)) else Padding.VALID
    weight = edit.subgraph.operands[operation.used[1]]
    assert weight.data is not None
    trimmed = edit.constant(weight.data.array[tuple(slices)].copy(), weight.type.dtype, weight.type.quantization)
    changed_inputs = (operation.inputs[0], trimmed, *operation.inputs[2:])
    edit.replace(at, evolve(operation, op=evolve(op, padding=padding, **changed), inputs=changed_inputs))


def _trimmed(window: Window, inputs: int) -> tuple[int, int, Window, tuple[int, int]]:
    """Trim a window along an axis of `inputs` elements: the start and stop of the elements that stay, the window of
    these, and its margins.

    An element that only covers margins stays if the window would otherwise begin after the first input, or have more
    positions than before.
    """
    outputs, before = window.outputs(inputs), window.before(inputs)
    live = [tap.index for tap in window.taps(inputs)] or [0, window.size - 1]
    start = min(live[0], before // window.dilation)
    front = before - start * window.dilation
    for stop in range(live[-1] + 1, window.size + 1):
        trimmed = evolve(window, size=stop - start, dilation=1 if stop - start == 1 else window.dilation)
        margins = (front, max((outputs - 1) * window.stride + trimmed.extent - inputs - front, 0))
        trimmed = evolve(trimmed, padding=Margins((margins,)))
        if trimmed.outputs(inputs) == outputs:
            return start, stop, trimmed, margins
    raise AssertionError("the untrimmed window must have as many outputs as before")
