"""Vector times packed weights, the inner loop of layers with state."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import frozen

from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, I8, I32, Kernel, Val, Var, View
from onert_llvm.kernels.contraction.bfloat.terms import Terms
from onert_llvm.kernels.contraction.dynamic_quantization import as_bytes, halves, moved_by, parameters
from onert_llvm.kernels.contraction.float_microkernel import accumulators, add_odd, multiply_add
from onert_llvm.kernels.contraction.int8_microkernel import multiply_add_int8
from onert_llvm.kernels.contraction.register_tile import Columns, columns
from onert_llvm.target.isa import Isa


def most_registers(isa: Isa) -> int:
    """Registers of a panel: enough parallel sums to hide the latency of additions."""
    return 8 if isa.registers >= 32 else 6


def most_together(isa: Isa) -> tuple[int, int]:
    """The most rows multiplied together, and the registers of a panel that have accumulators at a time."""
    return (8, 3) if isa.registers >= 32 else (4, 2)


def cut(n: int, isa: Isa) -> Columns:
    """The panels of `n` columns, which fill whole registers."""
    return columns(n, most_registers(isa), isa)


@frozen
class Matrix(Value):
    """Packed weights: slot `name` points to them, `{name}_full` is the number of panels before the tail.

    Float32 weights with at least two terms may be packed as pairs of bfloat16 (`bfloat`).
    """

    name: str
    columns: Columns
    bfloat: bool = False

    @property
    def slots(self) -> tuple[str, ...]:
        return (self.name, f"{self.name}_full")


Panel = Callable[[int, Val, Val], None]
"""Emits code for some registers of columns: their number, the first column, and the address of their panel."""


def each_panel(k: Kernel, task: Task, matrix: Matrix, row_bytes: Val, body: Panel) -> None:
    """Emit `body` for every panel of a matrix; `row_bytes` are the bytes of one register of columns in a panel."""
    lanes, cut_ = k.isa.f32, matrix.columns
    start = task.view(matrix.name, I8, row_bytes, 1)
    full = task.i64(f"{matrix.name}_full")
    if cut_.vectors:
        with k.loop(full, nonempty=True) as panel:
            at = panel * cut_.vectors
            body(cut_.vectors, at * lanes, start[at].address)
    if cut_.tail:
        at = full * cut_.vectors
        body(cut_.tail, at * lanes, start[at].address)


def times_f32(
    k: Kernel,
    task: Task,
    matrix: Matrix,
    rows: Sequence[View],
    depth: Val,
    starts: Sequence[Callable[[Val], Val]],
    stores: Sequence[Callable[..., None]],
) -> None:
    """`store(column, start(column) + Σ x[p] · matrix[p, column])` for each of the rows x and every register of columns.

    Several rows are multiplied with a part of a panel's registers at a time.
    """
    lanes = k.isa.f32
    most = most_registers(k.isa) if len(rows) == 1 else most_together(k.isa)[1]

    def panel(vectors: int, column: Val, place: Val) -> None:
        panel = k.view(place, F32, vectors * lanes, 1)
        for first in range(0, vectors, most):
            some = range(first, min(first + most, vectors))
            acc = [[k.var(start(column + j * lanes)) for j in some] for start in starts]
            weights = k.view(panel[0, first * lanes].address, F32, vectors * lanes, 1)
            if matrix.bfloat:
                multiply_add(k, acc, rows, weights, depth // 2, terms=Terms.WIDENED)
                add_odd(k, acc, rows, weights, depth)
            else:
                multiply_add(k, acc, rows, weights, depth)
            for own, store in zip(acc, stores, strict=True):
                _stored(own, column + first * lanes, lanes, store)

    each_panel(k, task, matrix, ((depth + 1) // 2 if matrix.bfloat else depth) * (lanes * 4), panel)


def times_int8(
    k: Kernel,
    task: Task,
    matrix: Matrix,
    x: View,
    depth: tuple[Val, int],
    start: Callable[[Val], Val],
    store: Callable[..., None],
) -> None:
    """The same for signed bytes in the dot product's domain; `depth` is the depth and its rest modulo the group."""
    lanes, group = k.isa.f32, k.isa.group
    size, rest = depth

    def panel(vectors: int, column: Val, place: Val) -> None:
        acc = accumulators(k, [start(column + j * lanes) for j in range(vectors)], 1)
        multiply_add_int8(k, acc, [x], k.view(place, I8, vectors * lanes * group, 1), size, rest, True)
        _stored(acc[0], column, lanes, store)

    each_panel(k, task, matrix, (size + (group - 1)) // group * (group * lanes), panel)


@frozen
class Bytes(Value):
    """How float vectors are multiplied by byte weights: quantised first, as `QuantizeDynamic` does.

    A matrix then also has slots `{name}_sums` and `{name}_scales`: each column's sum of bytes, and its scale.
    """

    asymmetric: bool

    def slots(self, matrix: Matrix) -> tuple[str, ...]:
        return (*matrix.slots, f"{matrix.name}_sums", f"{matrix.name}_scales")


def times_dynamic(
    k: Kernel,
    task: Task,
    matrix: Matrix,
    how: Bytes,
    x: View,
    depth: tuple[Val, int],
    room: View,
    start: Callable[[Val], Val | None],
    store: Callable[..., None],
) -> None:
    """`store(column, start(column) + x · matrix[column])` for floats `x`, which are quantised into `room`."""
    lanes, size = k.isa.f32, depth[0]
    low, high = k.var(k.zeros(F32, lanes)), k.var(k.zeros(F32, lanes))

    for at, mask in k.registers(size):
        value = x[at].load(lanes, mask)
        low.set(value.min(low.get()))
        high.set(high.get().maximum(value))
    ends = low.get().over_lanes(Val.min), high.get().over_lanes(Val.maximum)
    scale, inverse, zero = parameters(k, *ends, how.asymmetric)

    for at, mask in k.registers(size):
        half = halves(k, at, size, whole=mask is None)
        room[at].store(as_bytes(x[at].load(lanes, mask), half, inverse, zero, how.asymmetric), mask)
    sums, scales = task.view(f"{matrix.name}_sums", I32, 1), task.view(f"{matrix.name}_scales", F32, 1)

    def real(column: Val, total: Val) -> None:
        if how.asymmetric:
            total = total - sums[column].load(lanes) * zero.splat(lanes)
        product = total.cast(F32) * (scale.splat(lanes) * scales[column].load(lanes))
        first = start(column)
        store(column, product if first is None else first + product)

    times_int8(k, task, matrix, room, depth, lambda column: sums[column].load(lanes) * -moved_by(k.isa), real)


def _stored(acc: Sequence[Var], column: Val, lanes: int, store: Callable[..., None]) -> None:
    for j, total in enumerate(acc):
        store(column + j * lanes, total.get())
