"""Reductions along any axes; softmax and norms along the last one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from attrs import evolve

from onert.ir import CallTypes, DType, Op
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.reduction.norm import L2Normalization, RmsNorm
from onert.ir.ops.reduction.reduce import ArgReduce, Extreme, Reduce, Reduction, axes_of
from onert.ir.ops.reduction.softmax import LogSoftmax, Softmax
from onert.ir.shape import normalize_axis
from onert.ir.symbolic.trace import is_symbolic
from onert_llvm.command.command import Slot
from onert_llvm.kernels.arithmetic.expression import Kind
from onert_llvm.kernels.reduction import softmax_norm
from onert_llvm.kernels.reduction.elements import Plain
from onert_llvm.kernels.reduction.fold import Fold
from onert_llvm.kernels.reduction.reduce import ArgColumns, ArgNarrow, ArgRows, ArgShortRows, is_narrow
from onert_llvm.kernels.reduction.softmax_norm import Norm, Normalize
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.dtype_sets import KINDS
from onert_llvm.lower.strided_copy import move, operand, side

from .block import FOLDS, reduction
from .runs import block_of, runs_of, without_last

_FOLDS: Mapping[Reduction, Fold] = {
    **FOLDS,
    Reduction.PROD: Fold.PROD,
    Reduction.ANY: Fold.MAX,
    Reduction.ALL: Fold.MIN,
}
_TRUTHS: Mapping[Reduction, Fold] = {**_FOLDS, Reduction.SUM: Fold.MAX, Reduction.PROD: Fold.MIN}
"""For booleans, stored as 0 and 1: a sum says whether any is true, a product whether all are."""


def why_not(op: Op, types: CallTypes) -> str | None:
    """Why this backend does not run the reduction; None if it does."""
    x = types.input(0)
    if types.input(1).value is None:
        return "the axes are not known before the run"
    if x.dtype not in KINDS or 0 in x.shape:
        return "elements of this type, or none, have no native form"
    if isinstance(op, ArgReduce):
        return None
    assert isinstance(op, Reduce)
    if x.dtype.is_integer and (x.quantization is not None or types.output.quantization is not None):
        kept = op.kind in (Reduction.MAX, Reduction.MIN) and x.quantization == types.output.quantization
        return None if kept else "it is a reduction of quantised integers"
    if op.kind is Reduction.MEAN and x.dtype is not DType.FLOAT32:
        return "a mean of integers is truncated"
    return None


def why_not_rows(op: Op, types: CallTypes) -> str | None:
    """Why this backend does not normalise the rows; None if it does."""
    if any(t is not None and t.dtype is not DType.FLOAT32 for t in (*types.inputs, *types.outputs)):
        return "only float32 is native"
    if isinstance(op, L2Normalization) and op.activation is not Activation.NONE:
        return "an activation follows"
    if isinstance(op, RmsNorm) and any(t is not None and t.shape != types.output.shape[-1:] for t in types.inputs[1:]):
        return "a factor does not have one element per column"
    return None


def lower(lowering: Lowering, operations: Sequence[int]) -> None:
    """A reduction: adjacent axes at once, runs of axes from the last to the first, with scratch memory in between."""
    at, operation, op = lowering.single(operations, Reduce)
    source, result = operation.used[0], operation.outputs[0]
    shape, axes = lowering.shape(source), axes_of(lowering.elements(operation.used[1]), len(lowering.shape(source)))
    dtype = lowering.type(source).dtype
    kind = _stored(dtype)
    fold = (_TRUTHS if dtype is DType.BOOL else _FOLDS)[op.kind]
    runs = runs_of(shape, axes)
    divisor: dict[str, Slot] = (
        {"divisor": 1.0 / math.prod([shape[i] for i in axes])} if op.kind is Reduction.MEAN else {}
    )
    if not any(reduced for reduced, _ in runs):
        seen = side(lowering.operand(result), shape, lowering.type(result).dtype.itemsize)
        move(lowering, at, operand(lowering, source), seen, (source,))
        return
    steps = sum(reduced for reduced, _ in runs)
    sizes = [math.prod([n for _, n in without_last(runs, i + 1)]) for i in range(steps - 1)]
    between = lowering.scratch(*(n * dtype.itemsize for n in sizes))
    for step in range(steps):
        last = step == steps - 1
        read, written = between[step - 1 : step] if step else (), () if last else between[step : step + 1]
        own = divisor if last else {}
        elements = Plain(fold, kind, mean=bool(own))
        here, there = (access[0].pointer if access else None for access in (read, written))
        accesses = (*written, *(evolve(access, write=False) for access in read))
        reduction(lowering, at, block_of(without_last(runs, step)), elements, own, here, there, accesses)


def _stored(dtype: DType) -> Kind:
    """The kind under which elements are compared: booleans are bytes."""
    return Kind.U8 if dtype is DType.BOOL else KINDS[dtype]


_FEW = 12
"""Rows up to this length are scanned element by element rather than in vector lanes."""


def _along_rows(kind: Kind, width: int) -> type[ArgRows | ArgNarrow | ArgShortRows]:
    """The kernel that finds the index of the extreme in rows of this width."""
    if is_symbolic(width):
        return ArgRows
    return ArgShortRows if width <= _FEW else ArgNarrow if is_narrow(kind, width) else ArgRows


def lower_arg(lowering: Lowering, operations: Sequence[int]) -> None:
    """The index of an extreme."""
    at, operation, op = lowering.single(operations, ArgReduce)
    source, result = operation.used[0], operation.outputs[0]
    shape = lowering.shape(source)
    axis = normalize_axis(int(lowering.elements(operation.used[1]).reshape(-1)[0]), len(shape))
    before, after = (math.prod(part) for part in (shape[:axis], shape[axis + 1 :]))
    what = op.kind is Extreme.MAX, _stored(lowering.type(source).dtype), op.output is DType.INT64
    flops = before * after * shape[axis]
    if not is_symbolic(after) and after == 1:
        algorithm = _along_rows(what[1], shape[axis])(*what)
        lowering.run(at, algorithm, before, {"in": source}, {"out": result}, {"width": shape[axis]}, flops)
        return
    chunks = -(-after // lowering.isa.f32)
    slots = {"rows": shape[axis], "width": after, "chunks": chunks}
    lowering.run(at, ArgColumns(*what), before * chunks, {"in": source}, {"out": result}, slots, flops)


_LONG, _SHORT = 2048, 256
"""Softmax of longer rows is computed row by row: a few rows and their results exceed the first-level cache. And a row
up to which folding several of its registers in parallel saves too little for the code that it takes."""


def lower_softmax(lowering: Lowering, operations: Sequence[int]) -> None:
    """Softmax and log-softmax."""
    at, operation, op = lowering.single(operations, Op)
    (source,), (result,) = operation.used, operation.outputs
    rows, width = _rows(lowering, source)
    beta = float(op.beta) if isinstance(op, Softmax) else 1.0
    slots = {"step": width, "out_step": width, "width": width, **({} if beta == 1.0 else {"beta": beta})}
    together = rows > 1 and (is_symbolic(width) or width <= _LONG)
    wide = not together and (is_symbolic(width) or width > _SHORT)
    algorithm = softmax_norm.Softmax(isinstance(op, LogSoftmax), together, wide, scaled=beta != 1.0)
    lowering.run(at, algorithm, rows, {"in": source}, {"out": result}, slots)


def lower_norm(lowering: Lowering, operations: Sequence[int]) -> None:
    """L2 and root-mean-square norms."""
    at, operation, op = lowering.single(operations, Op)
    source, result = operation.used[0], operation.outputs[0]
    rows, width = _rows(lowering, source)
    named = {n: i for n, i in zip(("gamma", "beta"), operation.inputs[1:], strict=False) if i is not None}
    epsilon = float(op.epsilon) if isinstance(op, RmsNorm) else 1e-6
    slots = {"width": width, "share": 1.0 / width, "epsilon": epsilon}
    norm = Norm.ROOT_MEAN_SQUARE if isinstance(op, RmsNorm) else Norm.LENGTH
    algorithm = Normalize(norm, "gamma" in named, "beta" in named)
    lowering.run(at, algorithm, rows, {"in": source, **named}, {"out": result}, slots)


def _rows(lowering: Lowering, index: int) -> tuple[int, int]:
    shape = lowering.shape(index)
    return math.prod(shape[:-1]), shape[-1]
