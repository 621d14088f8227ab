"""Vector times packed weights, the inner loop of layers with state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from attrs import frozen

from onert.ir.value import ByIdentity, Value
from onert_llvm.codegen.kernel_abi import Task
from onert_llvm.irbuilder import F32, I8, I32, Kernel, Val, Var, View
from onert_llvm.kernels.contraction.bfloat.terms import Terms
from onert_llvm.kernels.contraction.dynamic_quantization import as_bytes, halves, moved_by, parameters
from onert_llvm.kernels.contraction.float_microkernel import accumulators, add_odd, multiply_add
from onert_llvm.kernels.contraction.int8_microkernel import multiply_add_int8
from onert_llvm.kernels.contraction.register_tile import Columns, columns
from onert_llvm.target.isa import Isa

REGISTERS = 3
"""The registers of a panel of floats."""


def _most_rows(isa: Isa, pairs: bool) -> int:
    """The most rows that are multiplied by such a panel together: their accumulators fit in registers beside the
    operands, of which there are twice as many for pairs."""
    return 8 if isa.registers >= 32 else 2 if pairs else 4


def _most_panels(isa: Isa) -> int:
    """The panels by which one row is multiplied together: enough sums to hide the latency of additions."""
    return 3 if isa.registers >= 32 else 2


def cut(n: int, isa: Isa) -> Columns:
    """The panels of `n` columns of floats, which fill whole registers."""
    return columns(n, REGISTERS, isa)


def cut_int8(n: int, isa: Isa) -> Columns:
    """The panels of `n` columns of bytes: one row alone has enough sums to hide the latency of additions."""
    return columns(n, 8 if isa.registers >= 32 else 6, isa)


@frozen
class Matrix(Value):
    """Packed weights: slot `name` points to them, `{name}_full` is the number of panels before the tail. `left` is that
    number modulo the panels by which one row is multiplied together.

    Float32 weights with at least two terms may be packed as pairs of 16-bit numbers that are widened (`terms`).
    """

    name: str
    columns: Columns
    left: int = 0
    terms: Terms = Terms.FLOAT

    @property
    def slots(self) -> tuple[str, ...]:
        return (self.name, f"{self.name}_full")

    @staticmethod
    def of(name: str, n: int, columns: Columns, isa: Isa, terms: Terms) -> Matrix:
        """A matrix of `n` columns."""
        return Matrix(name, columns, full_panels(n, columns, isa) % _most_panels(isa), terms)


def full_panels(n: int, columns: Columns, isa: Isa) -> int:
    """The panels before the tail."""
    return n // (columns.vectors * isa.f32) if columns.vectors else 0


Part = tuple[int, Val]
"""The registers of a panel, and its address."""
Body = Callable[[Sequence[Part], Val], None]
"""Emits code for adjacent panels and the first of their columns."""


@frozen(eq=False)
class Panels(ByIdentity):
    """The panels of a matrix, from column number `first` on, which begins a register; None: all of them."""

    k: Kernel
    task: Task
    matrix: Matrix
    first: Val | None = None

    def each(self, row_bytes: Val, body: Body, together: int = 1) -> None:
        """Emit `body` for as many whole panels at a time, then for the rest; `row_bytes` are the bytes of one register
        of columns in a panel."""
        k, task, matrix = self.k, self.task, self.matrix
        vectors, tail = matrix.columns.vectors, matrix.columns.tail
        start = task.view(matrix.name, I8, row_bytes, 1)
        if self.first is not None:
            start = start.after(self.first // k.isa.f32 * row_bytes)
        left = matrix.left if together > 1 else 0
        whole = task.i64(f"{matrix.name}_full") - left

        def some(first: Val, widths: Sequence[int]) -> None:
            at = first * vectors
            places = (start[at + sum(widths[:i])].address for i in range(len(widths)))
            body(tuple(zip(widths, places, strict=True)), at * k.isa.f32)

        if vectors:
            with k.loop(whole, step=together) as panel:
                some(panel, (vectors,) * together)
        if left or tail:
            some(whole, (*(vectors,) * left, *((tail,) if tail else ())))


def times_f32(
    panels: Panels,
    x: View,
    depth: Val,
    start: Callable[[Val], Val],
    store: Callable[[Val, Val], None],
) -> None:
    """`store(column, start(column) + Σ x[p] · matrix[p, column])` for every register of columns."""

    k, matrix = panels.k, panels.matrix

    def several(parts: Sequence[Part], column: Val) -> None:
        _add(k, matrix, parts, column, [x], depth, [start], [store])

    panels.each(_row_bytes(k, matrix, depth), several, _most_panels(k.isa))


def rows_times_f32(
    panels: Panels,
    count: Val,
    row: Callable[[Val], View],
    depth: Val,
    start: Callable[[Val, Val], Val],
    store: Callable[[Val, Val, Val], None],
) -> None:
    """`store(i, column, start(i, column) + Σ row(i)[p] · matrix[p, column])` for `count` rows: panel by panel, so that
    all rows read each panel while it is in the cache."""
    k, matrix = panels.k, panels.matrix
    most = _most_rows(k.isa, matrix.terms.widens)

    def panel(parts: Sequence[Part], column: Val) -> None:
        done: Val | int = 0
        for size in (n for n in (8, 4, 2, 1) if n <= most):
            whole = count - count % size
            with k.loop(whole, done, step=size) as first:
                each = [first + i for i in range(size)]
                ends = [partial(start, i) for i in each], [partial(store, i) for i in each]
                _add(k, matrix, parts, column, [row(i) for i in each], depth, *ends)
            done = whole

    panels.each(_row_bytes(k, matrix, depth), panel)


def _row_bytes(k: Kernel, matrix: Matrix, depth: Val) -> Val:
    return ((depth + 1) // 2 if matrix.terms.widens else depth) * (k.isa.f32 * 4)


@frozen(eq=False)
class _SideBySide:
    """Panels indexed as one; all but the last have `width` columns."""

    panels: Sequence[View]
    width: int

    def __getitem__(self, at: tuple[Val, int]) -> View:
        return self.panels[at[1] // self.width][at[0], at[1] % self.width]


def _add(
    k: Kernel,
    matrix: Matrix,
    parts: Sequence[Part],
    column: Val,
    rows: Sequence[View],
    depth: Val,
    starts: Sequence[Callable[[Val], Val]],
    stores: Sequence[Callable[[Val, Val], None]],
) -> None:
    """Multiply rows by adjacent panels."""
    lanes = k.isa.f32
    views = [k.view(place, F32, vectors * lanes, 1) for vectors, place in parts]
    weights = _SideBySide(views, parts[0][0] * lanes)
    acc = [[k.var(start(column + j * lanes)) for j in range(sum(v for v, _ in parts))] for start in starts]
    if matrix.terms.widens:
        multiply_add(k, acc, rows, weights, depth // 2, terms=matrix.terms)
        add_odd(k, acc, rows, weights, depth, matrix.terms)
    else:
        multiply_add(k, acc, rows, weights, depth)
    for own, store in zip(acc, stores, strict=True):
        _stored(own, column, lanes, store)


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

    def panel(parts: Sequence[Part], column: Val) -> None:
        ((vectors, place),) = parts
        acc = accumulators(k, [start(column + j * lanes) for j in range(vectors)], 1)
        multiply_add_int8(k, acc, [x], k.view(place, I8, vectors * lanes * group, 1), size, rest, True)
        _stored(acc[0], column, lanes, store)

    Panels(k, task, matrix).each((size + (group - 1)) // group * (group * lanes), panel)


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
