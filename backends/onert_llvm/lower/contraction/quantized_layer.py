"""Layers of 8-bit and 16-bit integers with constant filters: the parts that do not depend on requantisation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

import numpy as np
from attrs import evolve, frozen

from onert.ir import Array, CallTypes
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.contraction.transpose_conv import TransposeConv2D
from onert_llvm.codegen.kernel_abi import Algorithm
from onert_llvm.command.command import Access, Pointer, Slot
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.target.isa import Isa

from .conv_geometry import Plane, plane
from .int8_filters import Filter, stored

MOST_GROUPS = 256
"""The most groups of a convolution, each of which is a kernel call."""

OutputsT = TypeVar("OutputsT")
"""Brings the sums of some outputs to the result's scale."""


def why_no_form(op: Conv2D | DepthwiseConv2D | FullyConnected | TransposeConv2D, types: CallTypes) -> str | None:
    """Why the activation or the groups of a layer have no integer form; None if they have."""
    if op.activation.value.function is not None:
        return f"activation {op.activation.name} has no integer form"
    if isinstance(op, Conv2D) and (types.input(0).shape[3] or 0) // (types.input(1).shape[3] or 1) > MOST_GROUPS:
        return f"it has more than {MOST_GROUPS} groups"
    return None


@frozen(eq=False)
class Layer(Generic[OutputsT]):
    """A layer, or one group of a convolution: it reads pixels from channel `first` on and computes the outputs `part`.
    A convolution's `filter` is `[height, width, channels, n]`. The results are stored to `room`, scratch memory, if
    given. A row of results may be those of several pixels `abreast`.
    """

    operation: int
    source: int
    result: int
    outputs: OutputsT
    filter: Filter
    part: slice | Array = slice(None)
    first: int = 0
    room: Access | None = None
    abreast: int = 1

    @property
    def rooms(self) -> tuple[Access, ...]:
        """The scratch memory for the results, if any."""
        return () if self.room is None else (self.room,)

    def input(self, lowering: Lowering) -> Pointer:
        """The address of the first activation."""
        return lowering.operand(self.source, self.first * lowering.type(self.source).dtype.itemsize)

    def target(self, lowering: Lowering) -> dict[str, Slot]:
        """The address of the first result, and the distance between rows of results if not contiguous."""
        if self.room is not None:
            return {"c": self.room.pointer}
        first = self.part.start or 0 if isinstance(self.part, slice) else 0
        place = lowering.operand(self.result, first * lowering.type(self.result).dtype.itemsize)
        return {"c": place, "ldc": lowering.shape(self.result)[-1] * self.abreast}

    def padding(self, lowering: Lowering, channels: int) -> Pointer:
        """A padding pixel."""
        x = lowering.type(self.source)
        return lowering.constant(np.full(channels, x.zero_point, x.dtype.numpy))

    def emit(
        self,
        lowering: Lowering,
        algorithm: Algorithm,
        slots: dict[str, Slot],
        tiles: int,
        flops: int,
        more: tuple[Access, ...] = (),
        isa: Isa | None = None,
    ) -> None:
        """Emit the command that computes the results; `more` is other memory that it uses, `isa` its target."""
        writes = (self.result,) if self.room is None else ()
        touched = (*self.rooms, *more)
        lowering.emit(self.operation, algorithm, slots, tiles, (self.source,), writes, flops, touched, isa=isa)


MakeOutputs = Callable[[CallTypes, Activation, bool], OutputsT]
"""Made from the types of input, filter and bias, the activation, and whether TFLite scales sums by a real number."""


def layer_of(lowering: Lowering, operations: Sequence[int], make: MakeOutputs[OutputsT]) -> Layer[OutputsT]:
    """A layer as in the model, with its filter in the model's order; its results are those of the last operation."""
    at, result = operations[0], lowering.operation(operations[-1]).outputs[0]
    operation = lowering.operation(at)
    op = operation.op
    assert isinstance(op, Conv2D | DepthwiseConv2D | FullyConnected)
    outputs = make(lowering.subgraph.types(operation), op.activation, isinstance(op, FullyConnected))
    source, kernel = operation.used[:2]
    return Layer(at, source, result, outputs, stored(lowering.type(kernel)))


def groups(
    lowering: Lowering, operations: Sequence[int], make: MakeOutputs[OutputsT]
) -> Iterator[tuple[Layer[OutputsT], Plane]]:
    """The groups of a convolution, and the windows of all. Small groups are merged, with the zero point in between."""
    _, _, op = lowering.first(operations, Conv2D)
    layer = layer_of(lowering, operations, make)
    weights = layer.filter.values
    geometry = plane(op, lowering.shape(layer.source), weights.shape, lowering.shape(layer.result))
    n, inner = weights.shape[0], weights.shape[3]
    count = geometry.channels // inner
    own = n // count
    together = max(1, lowering.isa.f32 // own)
    for first in range(0, count, together):
        last = min(first + together, count)
        part = slice(first * own, last * own)
        values = weights[part].transpose(1, 2, 3, 0)
        if last - first > 1:
            apart = values.reshape(*values.shape[:3], last - first, own)
            values = np.full((*values.shape[:2], last - first, inner, last - first, own), layer.filter.zero, np.int8)
            for g in range(last - first):
                values[:, :, g, :, g] = apart[..., g, :]
            values = values.reshape(*weights.shape[1:3], (last - first) * inner, (last - first) * own)
        yield evolve(layer, filter=layer.filter.ordered(values), part=part, first=first * inner), geometry


def depthwise(
    lowering: Lowering,
    operations: Sequence[int],
    make: MakeOutputs[OutputsT],
    convolve: Callable[[Lowering, Layer[OutputsT], Plane], None],
    slide: Callable[[Lowering, Layer[OutputsT], Plane], None],
) -> None:
    """A depthwise convolution: `convolve` emits one of a single channel as a plain one, `slide` any other, whose input
    has each channel repeated for its filters.
    """
    _, _, op = lowering.first(operations, DepthwiseConv2D)
    layer = layer_of(lowering, operations, make)
    (*image, c), result = lowering.shape(layer.source), lowering.shape(layer.result)
    _, height, width, n = layer.filter.values.shape
    if c == 1:
        own = layer.filter.ordered(layer.filter.values.reshape(height, width, 1, n))
        convolve(lowering, evolve(layer, filter=own), plane(op, (*image, c), (n, height, width, 1), result))
    else:
        slide(lowering, layer, plane(op, (*image, n), (1, height, width, n), result))


def emit_sliding(
    lowering: Lowering,
    layer: Layer[OutputsT],
    geometry: Plane,
    algorithm: Algorithm,
    slots: dict[str, Slot],
    source: tuple[Pointer, tuple[int, ...], tuple[Access, ...]],
) -> None:
    """Emit a depthwise convolution of `source`: a pointer, and the operands and other memory that it reads."""
    (place, reads, touched), n = source, geometry.channels
    zero, result = layer.padding(lowering, n), lowering.operand(layer.result)
    slots = {**slots, "c": result, "channels": n, "ldc": n, "input": place, "zero": zero}
    tiles, flops = geometry.images * geometry.out[0], 2 * geometry.rows * geometry.taps * n
    lowering.emit(layer.operation, algorithm, slots, tiles, reads, (layer.result,), flops, touched)
