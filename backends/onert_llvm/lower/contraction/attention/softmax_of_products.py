"""Attention, that is a softmax between two products, as a single kernel."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from functools import reduce

import numpy as np
from attrs import evolve, frozen

from onert.ir import DType, Operation, Subgraph
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.select import Select
from onert.ir.ops.reduction.softmax import Softmax
from onert.ir.shape import broadcast, static
from onert.ir.symbolic.trace import hint, is_symbolic, maximum
from onert_llvm.command.command import Slot
from onert_llvm.kernels.contraction.attention.attention_f32 import (
    HIDDEN,
    MOST_MASKED,
    MOST_ROWS,
    AttentionF32,
    Mask,
    keys_of_block,
    stores_scores,
)
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction.conv_geometry import strided_offsets

from .whole_rows import Rows, made_for, only_use, rows_of, stored, transposed

_MOST = 256
"""The most elements of a row of queries, keys or values: a block of keys is copied to the stack."""
_FEW, _MANY_BYTES = 8, 2 << 20
"""Rows of queries that count as few, and bytes of scores that count as many."""
_LONG, _HIDDEN = 128, 0.3
"""From this many queries and keys on, skipping hidden keys may pay, if this fraction of them is hidden."""
_TOGETHER = (6, 5, 4, 3, 2, 1)
_TILES = 16
"""As many tiles should be shared by threads, if they have enough rows."""
_MOST_MASKS = 3
"""The most masks of one attention."""
_MOST_FACTOR = 1e30
"""Scores are multiplied by less than this, so that the reciprocal of a divisor is finite."""


@frozen(eq=False)
class _Mask:
    """A mask, and the score of keys that it hides if it is of booleans."""

    operand: int
    kind: Mask
    hidden: float = 0.0

    @property
    def skips(self) -> bool:
        """Whether the exponentials of keys that it hides are 0 for any scores."""
        return self.kind is Mask.ADDED or self.hidden <= HIDDEN


@frozen(eq=False)
class _Parts:
    """The operations of an attention, and what they read; masks in the order in which they apply to the scores."""

    operations: tuple[int, ...]
    query: Rows
    keys: Rows
    values: Rows
    out: Rows
    masks: tuple[_Mask, ...]
    scale: float

    @property
    def read(self) -> tuple[int, ...]:
        own = (self.query.operand, self.keys.operand, self.values.operand)
        return (*own, *(mask.operand for mask in self.masks))


def chains(subgraph: Subgraph, operations: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The operations of each attention, from its products' transposes to that of the result."""
    among = frozenset(operations)
    for at in operations:
        if isinstance(subgraph.operations[at].op, Softmax):
            found = _around(subgraph, at, among)
            if found is not None:
                yield found.operations


def _around(subgraph: Subgraph, at: int, among: Collection[int]) -> _Parts | None:
    """The attention that a softmax is part of; None if there is none."""
    softmax = subgraph.operations[at]
    assert isinstance(softmax.op, Softmax)
    behind = only_use(subgraph, softmax.outputs[0], among)
    if softmax.op.beta != 1 or behind is None:
        return None
    last = subgraph.operations[behind]
    if not _is_product(last, adjoint=False) or last.inputs[0] != softmax.outputs[0] or last.used[1] == last.used[0]:
        return None
    made, between = softmax.used[0], [at, behind]
    masks, scale = list[_Mask](), 1.0
    before = made_for(subgraph, made, among)
    while before is not None:
        masked = _masked(subgraph, before, among, _MOST_MASKS - len(masks))
        if masked is None:
            break
        made, mask = masked
        masks.insert(0, mask)
        between.insert(0, before)
        before = made_for(subgraph, made, among)
    found = None if before is None else _scaled(subgraph, before)
    if before is not None and found is not None:
        made, scale = found
        between.insert(0, before)
        before = made_for(subgraph, made, among)
    if before is None:
        return None
    factors = _factors(subgraph, before, among)
    if factors is None:
        return None
    query, keys = factors
    values = rows_of(subgraph, last.used[1], among)
    out = stored(subgraph, last.outputs[0], among)
    absorbed = [rows.transpose for rows in (query, keys, values) if rows.transpose is not None]
    ends = [behind] if out.transpose is None else [behind, out.transpose]
    operations = tuple(sorted((before, *absorbed, *between[:-1], *ends)))
    parts = _Parts(operations, query, keys, values, out, tuple(masks), scale)
    return parts if _fits(subgraph, parts, made) else None


def _factors(subgraph: Subgraph, at: int, among: Collection[int]) -> tuple[Rows, Rows] | None:
    """Queries and keys that an operation multiplies; None if it does not, or if their rows are not whole in memory."""
    operation = subgraph.operations[at]
    if _is_product(operation, adjoint=True):
        query, keys = operation.used
        return rows_of(subgraph, query, among), rows_of(subgraph, keys, among)
    if not _is_product(operation, adjoint=False):
        return None
    query, columns = operation.used
    found = transposed(subgraph, columns, among)
    if found is None:
        return None
    order = (*found.order[:-2], found.order[-1], found.order[-2])
    return (rows_of(subgraph, query, among), evolve(found, order=order)) if order[-1] == len(order) - 1 else None


def _is_product(operation: Operation, adjoint: bool) -> bool:
    op = operation.op
    return isinstance(op, BatchMatMul) and not op.adjoint_x and op.adjoint_y is adjoint and len(operation.used) == 2


def _is(subgraph: Subgraph, at: int, kind: BinaryKind) -> bool:
    op = subgraph.operations[at].op
    return isinstance(op, Binary) and op.kind is kind and op.activation is Activation.NONE


def _scaled(subgraph: Subgraph, at: int) -> tuple[int, float] | None:
    """What an operation multiplies by a constant number, and this number; None if it does something else."""
    sides = subgraph.operations[at].used
    multiplies = _is(subgraph, at, BinaryKind.MUL)
    if not multiplies and not _is(subgraph, at, BinaryKind.DIV):
        return None
    for x, y in (sides, sides[::-1])[: 2 if multiplies else 1]:
        number = _number(subgraph, y)
        if number is not None:
            factor = number if multiplies else 1 / number if number else math.inf
            return (x, factor) if abs(factor) < _MOST_FACTOR else None
    return None


def _masked(subgraph: Subgraph, at: int, among: Collection[int], most: int) -> tuple[int, _Mask] | None:
    """Scores after less than `most` masks, and the mask that an operation applies to them; None if it does not."""
    operation = subgraph.operations[at]
    op, shape = operation.op, subgraph.type(operation.outputs[0]).shape
    found: list[tuple[int, _Mask]] = []
    if _is(subgraph, at, BinaryKind.ADD):
        x, y = operation.used
        found = [(x, _Mask(y, Mask.ADDED)), (y, _Mask(x, Mask.ADDED))]
    elif isinstance(op, Select) and not op.rows:
        condition, x, y = operation.used
        for scores, other, kind in ((x, y, Mask.SHOWN), (y, x, Mask.HIDDEN)):
            number = _number(subgraph, other)
            found += [] if number is None else [(scores, _Mask(condition, kind, number))]
    same = (each for each in found if subgraph.type(each[0]).shape == shape)
    return next((each for each in same if _scores(subgraph, each[0], among, most - 1)), None) if most else None


def _number(subgraph: Subgraph, operand: int) -> float | None:
    """The value of a constant number; None for other operands."""
    value = subgraph.operands[operand].known.value if subgraph.operands[operand].is_constant else None
    return float(value.reshape(())) if value is not None and value.size == 1 and value.dtype == np.float32 else None


def _scores(subgraph: Subgraph, operand: int, among: Collection[int], masks: int) -> bool:
    """Whether an operand is a product of queries and keys, possibly scaled by a number and after so many masks."""
    at = made_for(subgraph, operand, among)
    if at is None or _masked(subgraph, at, among, masks) is not None:
        return at is not None
    scaled = _scaled(subgraph, at)
    at = at if scaled is None else made_for(subgraph, scaled[0], among)
    return at is not None and _factors(subgraph, at, among) is not None


def _fits(subgraph: Subgraph, parts: _Parts, scores: int) -> bool:
    """Whether the kernel supports these types and shapes."""
    kinds = [DType.FLOAT32 if mask.kind is Mask.ADDED else DType.BOOL for mask in parts.masks]
    wanted = [DType.FLOAT32] * 3 + kinds
    if any(subgraph.type(i).dtype is not dtype for i, dtype in zip(parts.read, wanted, strict=True)):
        return False
    own = [subgraph.type(i).shape for i in parts.read]
    whole = subgraph.type(scores).shape
    if any(None in s or 0 in s for s in (*own, whole)):
        return False
    query, values = (rows.shape(static(own[at])) for at, rows in ((0, parts.query), (2, parts.values)))
    if any(not 0 < d <= _MOST for d in (query[-1], values[-1])):
        return False
    if not _pays(static(whole)) and not any(_hides(subgraph, mask, static(whole)) for mask in parts.masks):
        return False
    made = next(subgraph.operations[at].outputs[0] for at in reversed(parts.operations) if at != parts.out.transpose)
    if broadcast((whole[:-2], values[:-2])) != whole[:-2] or subgraph.type(made).shape[:-2] != whole[:-2]:
        return False
    for mask in own[3:]:
        if len(mask) < 2 or len(mask) > len(whole) or mask[-1] != whole[-1] or mask[-2] not in (1, whole[-2]):
            return False
    return True


def _pays(scores: Sequence[int]) -> bool:
    """Whether it pays not to store scores of this shape.

    Two products and a softmax between them are as fast if the scores stay in the second-level cache. With few rows,
    transposing the keys does not pay; with many more keys than rows, most keys are often hidden.
    """
    *batches, rows, keys = scores
    stored = 4 * math.prod(batches) * rows * keys
    reasons = (_FEW - rows, keys - 2 * rows, stored - _MANY_BYTES)
    return reduce(maximum, reasons) >= 0  # a single condition on symbolic sizes


def _hides(subgraph: Subgraph, mask: _Mask, scores: Sequence[int]) -> bool:
    """Whether a mask hides enough of many keys to make the kernel pay.

    If only the run knows the mask, one that all batches share and that has a row per query is assumed to be causal.
    """
    shape = static(subgraph.type(mask.operand).shape)
    rows, keys = scores[-2:]
    if not mask.skips or rows < _LONG or keys < _LONG or shape[-2] != rows or math.prod(shape[:-2]) != 1:
        return False
    share = _hidden_share(subgraph, mask)
    return share is None or share >= _HIDDEN


def _hidden_share(subgraph: Subgraph, mask: _Mask) -> float | None:
    """The share of keys that a mask hides; None if only the run knows it."""
    value = subgraph.operands[mask.operand].known.value
    if value is None:
        return None
    hidden = value <= HIDDEN if mask.kind is Mask.ADDED else value == (mask.kind is Mask.HIDDEN)
    return float(hidden.mean())


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """Lower the whole attention to one command, which computes some rows of queries at a time."""
    subgraph = lowering.subgraph
    at = next(i for i in operations if isinstance(subgraph.operations[i].op, Softmax))
    parts = _around(subgraph, at, frozenset(operations))
    assert parts is not None
    sides = [parts.query, parts.keys, parts.values, parts.out]
    own = [lowering.shape(rows.operand) for rows in sides]
    query, keys, values, _ = shapes = [rows.shape(each) for rows, each in zip(sides, own, strict=True)]
    strides = [rows.strides(each) for rows, each in zip(sides, own, strict=True)]
    m, size, count, value = query[-2], query[-1], keys[-2], values[-1]
    batches = static(broadcast((query[:-2], keys[:-2])))
    apart: list[Sequence[int]] = [each[:-2] for each in strides]
    dims: list[Sequence[int]] = [each[:-2] for each in shapes]
    masks = [lowering.shape(mask.operand) for mask in parts.masks]
    for shape in masks:
        dims.append(shape[:-2])
        apart.append([count * math.prod(shape[axis + 1 : -1]) for axis in range(len(shape) - 2)])
    rows = min(_TOGETHER, key=lambda n: (hint(m) // n * (n + 1.5) + hint(m) % n * 2.5, -n))
    total = math.prod(batches)
    skips = tuple(mask.skips and _hidden_share(subgraph, mask) != 0 for mask in parts.masks)
    most = (MOST_MASKED if any(skips) else MOST_ROWS) // rows * rows
    if not is_symbolic(m):  # tiles have about as many rows, and threads enough tiles
        tiles = max(-(-m // most), min(-(-_TILES // max(total, 1)), m // MOST_MASKED))
        most = -(-m // tiles // rows) * rows
    per_batch = -(-m // most)
    slots: dict[str, Slot] = {
        **{name: lowering.operand(rows.operand) for name, rows in zip("akvc", sides, strict=True)},
        "offsets": strided_offsets(lowering, dims, batches, apart),
        "per_batch": per_batch,
        "mc": most,
        "m": m,
        "keys": count,
        **{f"{name}_row": each[-2] for name, each in zip("akvc", strides, strict=True)},
        "scale": parts.scale,
    }
    for i, (each, shape) in enumerate(zip(parts.masks, masks, strict=True)):
        slots |= {f"mask{i}": lowering.operand(each.operand), f"mask{i}_rows": shape[-2], f"mask{i}_row": count}
        if each.kind is not Mask.ADDED:
            slots[f"hidden{i}"] = each.hidden
    block, stored = keys_of_block(lowering.isa), stores_scores(lowering.isa)
    rest = not stored and (is_symbolic(count) or 0 < count % block <= block // 2)
    kinds = tuple(mask.kind for mask in parts.masks)
    algorithm = AttentionF32(rows, int(size), int(value), rest, kinds, skips)
    flops = 2 * total * m * count * (size + value)
    lowering.emit(
        operations[0],
        algorithm,
        slots,
        total * per_batch,
        tuple(dict.fromkeys(parts.read)),
        (parts.out.operand,),
        flops,
    )
