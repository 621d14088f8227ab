"""Constant folding: compute ahead of the run what does not depend on inputs."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

import numpy as np
from attrs import evolve

from onert.backend.evaluation.evaluating import work_of_evaluating
from onert.compiler.rewrite.contract import TYPED, rewriting
from onert.compiler.rewrite.edit import Edit
from onert.compiler.rewrite.effects import is_function
from onert.ir import Array, CallTypes, Constant, OnertError, Op, Operand, Operation, Subgraph, evaluate
from onert.ir.errors import MISHAPS
from onert.ir.ops.data_movement.fill import Fill, PerLength
from onert.ir.ops.data_movement.slicing import BroadcastTo
from onert.ir.ops.elementwise.binary import Binary
from onert.ir.ops.elementwise.comparison import Comparison
from onert.ir.ops.elementwise.select import Select
from onert.ir.process import imports
from onert.ir.process.derived_arrays import derived
from onert.ir.shape import num_elements
from onert.ir.symbolic.sizes import are_same
from onert.ir.symbolic.trace import is_symbolic

SMALL = 16 << 10  # results up to this many bytes are always folded, however small their operands are
COMPUTED = 4 << 20  # the same for arithmetic on positions, and numbers repeated for it; other copies are cheap in a run
ROOM = 64 << 20  # bytes by which folding may enlarge a small model
SHARED = 64 << 10  # what is computed from a larger constant is shared by all programs that compute it
WORK, WORK_PER_BYTE = 10_000_000_000, 10_000  # additions; converting a filter from bytes to float32 costs 1500 a byte


@rewriting(requires=(TYPED,), ensures=(TYPED,))
def fold_constants(subgraph: Subgraph) -> Subgraph:
    """Replace an operation on constants by its results, as computed by `evaluate`.

    An operation is not folded if its result is not small and has more elements than any operand (a broadcast), so that
    a model never grows much; float16 or quantised weights converted to float32 do fold. Nor is an operation that is
    expensive for the size of the constants, or one that breaks a rule, so that the run reports it.

        w = Dequantize(const); y = Conv2D(x, w)   -->   y = Conv2D(x, const')
    """
    edit = Edit(subgraph)
    open_: set[int] = set()
    tables: Any = None
    known: dict[int, Operand] = {}
    constants = sum(operand.type.nbytes for operand in subgraph.operands if operand.is_constant)
    room = ROOM + 4 * constants
    work = WORK + WORK_PER_BYTE * constants
    for at, operation in enumerate(subgraph.operations):
        if not is_function(operation) or isinstance(operation.op, PerLength):
            continue
        types = _types(subgraph, operation, known, open_)
        if types is None:
            continue
        if _depends_on_lengths(types) or not open_.isdisjoint(operation.used):
            tables = tables or imports.module("onert.compiler.rewrite.tables").Tables(subgraph, _worthwhile)
            if tables.add(at, types):
                open_.update(operation.outputs)
            continue
        if not _worthwhile(operation.op, types):
            continue
        needed = work_of_evaluating(operation.op, types)
        if needed > work:
            continue
        work -= needed
        results = _fold(operation, types)
        size = sum(r.nbytes for r in results)
        if not results or size > room:
            continue
        room -= size
        from_sizes = any(known.get(i, subgraph.operands[i]).from_sizes for i in operation.used)
        for out, result in zip(operation.outputs, results, strict=True):
            old, data = subgraph.operands[out], Constant(result)
            known[out] = evolve(old, type=old.type.with_shape(result.shape), data=data, from_sizes=from_sizes)
            edit.redefine(out, known[out])
        edit.remove(at)
    if tables is not None:
        tables.place(edit)
    return edit.done()


def _types(subgraph: Subgraph, operation: Operation, known: Mapping[int, Operand], open_: Set[int]) -> CallTypes | None:
    """The types of an operation if every operand is a constant, a folded result, or `open_` (known once the lengths
    are); otherwise None."""
    inputs = [None if i is None else known.get(i, subgraph.operands[i]) for i in operation.inputs]
    if any(o is not None and o.data is None and i not in open_ for o, i in zip(inputs, operation.inputs, strict=True)):
        return None
    return CallTypes(
        tuple(None if operand is None else operand.known for operand in inputs),
        tuple(subgraph.type(o) for o in operation.outputs),
    )


def _fold(operation: Operation, types: CallTypes) -> tuple[Array, ...]:
    """The results; empty if the operation is to stay. One that is computed from a single large constant is shared."""
    arrays = [None if t is None or t.data is None else t.data.array for t in types.inputs]

    def evaluated() -> tuple[Array, ...]:
        found = evaluate(operation.op, arrays, types)
        return tuple(np.ascontiguousarray(r).reshape(r.shape) for r in found)

    present = [array for array in arrays if array is not None]
    large = [array for array in present if array.nbytes > SHARED]
    try:
        if len(large) == len(types.outputs) == 1 and not any(array.dtype.hasobject for array in present):
            small = tuple(None if a is None or a is large[0] else (a.shape, a.tobytes()) for a in arrays)
            plain = tuple(None if t is None else t.with_data(None) for t in types.inputs)
            how = (operation.op, repr(operation.op), small, plain, types.output)  # 0.0 == -0.0, but they differ
            results: tuple[Array, ...] = (derived(large[0], how, lambda: evaluated()[0]),)
        else:
            results = evaluated()
    except (OnertError, *MISHAPS):
        return ()  # the run will report the error with the operation's location
    if any(r.shape != declared.shape for r, declared in zip(results, types.outputs, strict=True)):
        return ()  # the operation contradicts its own types; the run will report this too
    return results


def _depends_on_lengths(types: CallTypes) -> bool:
    """Whether the results vary with the lengths that the program is compiled for."""
    return any(t is not None and t.data is not None and t.data.is_symbolic for t in types.inputs) or any(
        is_symbolic(d) for result in types.outputs for d in result.shape
    )


def _worthwhile(op: Op, types: CallTypes) -> bool:
    """Whether the results are static, are no handles, and are small, or have no more elements than an operand, whose
    stored elements may be packed.
    """
    filled = isinstance(op, Fill) or (isinstance(op, BroadcastTo) and num_elements(types.input(0).shape) == 1)
    small = COMPUTED if filled or isinstance(op, Binary | Comparison | Select) else SMALL
    for result in types.outputs:
        if not result.is_static or result.dtype.is_handle:
            return False
        operand_elements = [op.packed * (num_elements(t.shape) or 0) for t in types.inputs if t is not None]
        if any(are_same(num_elements(result.shape), each) for each in operand_elements):
            continue  # whatever the lengths
        if result.nbytes > small and result.nbytes > max(operand_elements, default=0) * result.dtype.itemsize:
            return False
    return True
