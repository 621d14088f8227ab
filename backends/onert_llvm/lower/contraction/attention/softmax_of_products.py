"""Attention, that is a softmax between two products, as a single kernel."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from functools import reduce

from attrs import frozen

from onert.ir import DType, Operation, Subgraph
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.reduction.softmax import Softmax
from onert.ir.shape import broadcast, num_elements, static
from onert.ir.symbolic.trace import hint, maximum
from onert_llvm.command.command import Slot
from onert_llvm.kernels.contraction.attention.attention_f32 import HIDDEN, MOST_ROWS, AttentionF32
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.contraction.conv_geometry import offsets_of

_EVEN = 16
"""Row lengths of queries, keys and values must be multiples of this, a multiple of every target's lanes."""
_MOST = 256
"""The most elements of such a row: a block of keys is copied to the stack."""
_FEW, _MANY_BYTES = 8, 4 << 20
"""Rows of queries that count as few, and bytes of scores that count as many."""
_LONG, _HIDDEN = 128, 0.3
"""From this many queries and keys on, skipping hidden keys may pay, if this fraction of them is hidden."""
_TOGETHER = (6, 5, 4, 3, 2, 1)


@frozen(eq=False)
class _Parts:
    """The operations of an attention, and what they read; `mask` is None if nothing is added to the scores."""

    operations: tuple[int, ...]
    query: int
    keys: int
    values: int
    mask: int | None
    scale: int | None

    @property
    def read(self) -> tuple[int, ...]:
        return (self.query, self.keys, self.values, *(() if self.mask is None else (self.mask,)))


def chains(subgraph: Subgraph, operations: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The operations of each attention, with its products at the ends."""
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
    behind = _only_use(subgraph, softmax.outputs[0], among)
    if softmax.op.beta != 1 or behind is None:
        return None
    last = subgraph.operations[behind]
    if not _is_product(last, adjoint=False) or last.inputs[0] != softmax.outputs[0] or last.used[1] == last.used[0]:
        return None
    made, between = softmax.used[0], [at, behind]
    mask = scale = None
    before = _made_for(subgraph, made, among)
    if before is not None and _is(subgraph, before, BinaryKind.ADD):
        sides = subgraph.operations[before].used
        made, mask = next(((x, y) for x, y in (sides, sides[::-1]) if _scores(subgraph, x, among)), (-1, None))
        if mask is None:
            return None
        between.insert(0, before)
        before = _made_for(subgraph, made, among)
    if before is not None and _is(subgraph, before, BinaryKind.MUL):
        sides = subgraph.operations[before].used
        made, scale = next(((x, y) for x, y in (sides, sides[::-1]) if _is_number(subgraph, y)), (-1, None))
        if scale is None:
            return None
        between.insert(0, before)
        before = _made_for(subgraph, made, among)
    if before is None or not _is_product(subgraph.operations[before], adjoint=True):
        return None
    query, keys = subgraph.operations[before].used
    parts = _Parts((before, *between), query, keys, last.used[1], mask, scale)
    return parts if _fits(subgraph, parts, made) else None


def _made_for(subgraph: Subgraph, operand: int, among: Collection[int]) -> int | None:
    """The operation that computes an operand with a single use."""
    at = subgraph.definitions.get(operand)
    return at if at in among and _only_use(subgraph, operand, among) is not None else None


def _only_use(subgraph: Subgraph, operand: int, among: Collection[int]) -> int | None:
    uses = subgraph.uses.get(operand, ())
    return uses[0] if len(uses) == 1 and operand not in subgraph.kept and uses[0] in among else None


def _is_product(operation: Operation, adjoint: bool) -> bool:
    op = operation.op
    return isinstance(op, BatchMatMul) and not op.adjoint_x and op.adjoint_y is adjoint and len(operation.used) == 2


def _is(subgraph: Subgraph, at: int, kind: BinaryKind) -> bool:
    op = subgraph.operations[at].op
    return isinstance(op, Binary) and op.kind is kind and op.activation is Activation.NONE


def _is_number(subgraph: Subgraph, operand: int) -> bool:
    found = subgraph.operands[operand]
    return found.is_constant and num_elements(found.type.shape) == 1


def _scores(subgraph: Subgraph, operand: int, among: Collection[int]) -> bool:
    """Whether an operand is a product of queries and keys, possibly scaled by a number."""
    at = _made_for(subgraph, operand, among)
    if at is None:
        return False
    if _is(subgraph, at, BinaryKind.MUL):
        return any(_scores(subgraph, i, among) for i in subgraph.operations[at].used)
    return _is_product(subgraph.operations[at], adjoint=True)


def _fits(subgraph: Subgraph, parts: _Parts, scores: int) -> bool:
    """Whether the kernel supports these types and shapes."""
    shapes = [subgraph.type(i).shape for i in parts.read]
    if any(subgraph.type(i).dtype is not DType.FLOAT32 for i in parts.read):
        return False
    whole = subgraph.type(scores).shape
    query, _, values, *mask = shapes
    if any(None in s or 0 in s for s in (*shapes, whole)) or len(set(parts.read)) != len(parts.read):
        return False
    if any(d % _EVEN or not 0 < d <= _MOST for d in (static(query)[-1], static(values)[-1])):
        return False
    if not _pays(static(whole)) and not (mask and _hides(subgraph, parts.mask, static(whole))):
        return False
    made = subgraph.operations[parts.operations[-1]].outputs[0]
    if broadcast((whole[:-2], values[:-2])) != whole[:-2] or subgraph.type(made).shape[:-2] != whole[:-2]:
        return False
    if not mask:
        return True
    own = mask[0]
    return len(own) >= 2 and own[-1] == whole[-1] and own[-2] in (1, whole[-2]) and len(own) <= len(whole)


def _pays(scores: Sequence[int]) -> bool:
    """Whether it pays not to store scores of this shape.

    Two products and a softmax between them are as fast if the scores stay in the second-level cache. With few rows,
    transposing the keys does not pay; with many more keys than rows, most keys are often hidden.
    """
    *batches, rows, keys = scores
    stored = 4 * math.prod(batches) * rows * keys
    reasons = (_FEW - rows, keys - 2 * rows, stored - _MANY_BYTES)
    return reduce(maximum, reasons) >= 0  # a single condition on symbolic sizes


def _hides(subgraph: Subgraph, mask: int | None, scores: Sequence[int]) -> bool:
    """Whether a mask hides enough of many keys to make the kernel pay.

    If only the run knows the mask, one that all batches share and that has a row per query is assumed to be causal.
    """
    assert mask is not None
    known, shape = subgraph.operands[mask].known, static(subgraph.type(mask).shape)
    rows, keys = scores[-2:]
    if rows < _LONG or keys < _LONG or shape[-2] != rows or math.prod(shape[:-2]) != 1:
        return False
    return known.value is None or float((known.value <= HIDDEN).mean()) >= _HIDDEN


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """Lower the whole attention to one command, which computes some rows of queries at a time."""
    subgraph = lowering.subgraph
    at = next(i for i in operations if isinstance(subgraph.operations[i].op, Softmax))
    parts = _around(subgraph, at, frozenset(operations))
    assert parts is not None
    (result,) = lowering.operation(operations[-1]).outputs
    query, keys, values, *mask = (lowering.shape(i) for i in parts.read)
    m, size, count, value = query[-2], query[-1], keys[-2], values[-1]
    batches = static(broadcast((query[:-2], keys[:-2])))
    sides = [query[:-2], keys[:-2], values[:-2], mask[0][:-2] if mask else ()]
    lengths = (m * size, count * size, count * value, mask[0][-2] * count if mask else 0)
    rows = min(_TOGETHER, key=lambda n: (hint(m) // n * (n + 1.5) + hint(m) % n * 2.5, -n))
    total = math.prod(batches)
    most = MOST_ROWS // rows * rows
    per_batch = -(-m // most)
    slots: dict[str, Slot] = {
        "a": lowering.operand(parts.query),
        "k": lowering.operand(parts.keys),
        "v": lowering.operand(parts.values),
        "c": lowering.operand(result),
        "offsets": offsets_of(lowering, sides, batches, lengths),
        "per_batch": per_batch,
        "mc": most,
        "m": m,
        "keys": count,
        "k_row": size,
        "v_row": value,
        "scale": 1.0 if parts.scale is None else float(lowering.elements(parts.scale).reshape(())),
    }
    if parts.mask is not None:
        slots |= {"mask": lowering.operand(parts.mask), "mask_rows": mask[0][-2], "mask_row": count}
    algorithm = AttentionF32(rows, int(size), int(value), parts.mask is not None)
    flops = 2 * total * m * count * (size + value)
    lowering.emit(operations[0], algorithm, slots, total * per_batch, parts.read, (result,), flops)
