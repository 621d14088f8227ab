"""A kernel that evaluates each operation's NumPy definition: the fallback for all operations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from attrs import evolve, fields, frozen, has

from onert.ir import (
    Array,
    CallTypes,
    Constant,
    Context,
    DType,
    ExecutionError,
    Op,
    Operation,
    RuleError,
    TensorType,
    evaluate,
    infer,
)
from onert.ir.analysis.cost import cost
from onert.ir.analysis.inference import declare, shapes_ok
from onert.ir.dtype import address
from onert.ir.ops.data_movement.fill import FirstEntries
from onert.ir.ops.data_movement.part_update import Update
from onert.ir.symbolic.trace import is_symbolic
from onert.ir.value import ByIdentity

from .kernel import Part, Redirect, Sequence, Stretched
from .memory import HOST, require_room
from .tensor import Tensor, Tensors

if TYPE_CHECKING:
    from onert.ir.symbolic.instructions import Instructions

_UNEXPECTED = (ValueError, TypeError, ArithmeticError, IndexError, KeyError, AttributeError, MemoryError)


WORK_OF_AN_EVALUATION = 1_500_000
"""The fixed cost of evaluating an operation in NumPy, in equivalent additions."""
WORK_OF_A_ROUND = 500_000
"""The cost of one iteration of a Python loop, likewise."""
WORK_OF_AN_EVALUATED_BYTE = 300
"""The cost per byte of an operation's operands and results, likewise."""
EVALUATED_ARITHMETIC = 20
"""How many times slower arithmetic is in NumPy."""


def work_of_evaluating(op: Op, types: CallTypes) -> int:
    """The cost of evaluating the operation once, in equivalent additions; unknown dimensions are not counted."""
    found = cost(op, types)
    known = (t for t in (*types.inputs, *types.outputs) if t is not None and t.is_static)
    # Bytes and shorter integers are widened before anything is computed.
    moved = sum(t.nbytes * max(4 // t.dtype.itemsize, 1) for t in known)
    arithmetic = EVALUATED_ARITHMETIC * found.flops + WORK_OF_A_ROUND * found.rounds
    return WORK_OF_AN_EVALUATION + arithmetic + WORK_OF_AN_EVALUATED_BYTE * moved


@frozen(eq=False)
class EvaluatingKernel(ByIdentity):
    """A sequence whose operations are evaluated one after the other."""

    sequence: Sequence

    def bind(self, tensors: Tensors, context: Context) -> Callable[[], None]:
        return _evaluating(self.sequence, tensors, context)


@frozen(eq=False)
class StretchedEvaluating(ByIdentity):
    """An `EvaluatingKernel` for all lengths of a trace: the types are inferred again in each run."""

    sequence: Sequence
    operands: frozenset[int]
    wanted: tuple[int, ...] = ()

    @property
    def shaped(self) -> frozenset[int]:
        return self.operands

    def bind(self, tensors: Tensors, context: Context, numbers: Instructions, registers: Array) -> Stretched:
        return _BoundStretch(_evaluating(self.sequence, tensors, context, is_stretched=True))


def stretched(kernel: EvaluatingKernel) -> StretchedEvaluating | None:
    """The kernel for all lengths of a trace; None if an attribute of one of its operations depends on a length."""
    body = kernel.sequence.body
    if any(varies(operation.op) for operation in body):
        return None
    operands = frozenset(i for operation in body for i in (*operation.used, *operation.outputs))
    return StretchedEvaluating(kernel.sequence, operands)


def varies(value: object) -> bool:
    """Whether an attribute depends on lengths, so that `evaluate` cannot be called for others."""
    if isinstance(value, tuple):
        return any(map(varies, value))
    kind: Any = type(value)
    if has(kind) and kind is not Constant:
        return any(varies(getattr(value, each.name)) for each in fields(kind))
    return is_symbolic(value)


class _BoundStretch:
    """A `StretchedEvaluating` bound to tensors."""

    def __init__(self, run: Evaluating) -> None:
        self.run = run

    def put(self) -> None:
        """There is nothing to change: the tensors have the current shapes."""

    def redirect(self, operands: frozenset[int]) -> Redirect:
        return _looked_up


class Evaluating:
    """A sequence bound to tensors, with one part per operation."""

    __slots__ = ("_calls", "parts")

    def __init__(self, parts: tuple[Part, ...]) -> None:
        self.parts = parts
        self._calls = tuple(part.call for part in parts)

    def __call__(self) -> None:
        for call in self._calls:
            call()

    def redirect(self, operands: frozenset[int]) -> Redirect:
        return _looked_up


def _looked_up(array: Array) -> None:
    """Nothing is redirected: the tensors' buffers are looked up in each run."""


def _evaluating(sequence: Sequence, tensors: Tensors, context: Context, is_stretched: bool = False) -> Evaluating:
    """A sequence bound to tensors. If it is stretched, these change their shapes between runs."""
    operations = sequence.subgraph.operations
    return Evaluating(
        tuple(
            Part((at,), _call(sequence, operations[at], tensors, context, is_stretched)) for at in sequence.operations
        )
    )


def _call(
    sequence: Sequence, operation: Operation, tensors: Tensors, context: Context, is_stretched: bool
) -> Callable[[], None]:
    involved = [tensors[i] for i in (*operation.used, *operation.outputs)]
    if isinstance(operation.op, FirstEntries) and not any(tensor.dynamic for tensor in involved[:2]):
        cut, (x, count, result) = operation.op, involved
        return lambda: _placed(sequence, operation, lambda: _run_cut(cut, x, count, result, context))
    if is_stretched:
        return lambda: _placed(sequence, operation, lambda: _run_dynamic(operation, None, tensors, context))
    types = sequence.subgraph.types(operation)
    if any(tensor.dynamic for tensor in involved):
        known = _priced(operation.op, types) if _is_known(types) else None
        return lambda: _placed(sequence, operation, lambda: _run_dynamic(operation, known, tensors, context))
    return lambda: _placed(sequence, operation, lambda: _run(operation, types, tensors, context))


def _placed(sequence: Sequence, operation: Operation, run: Callable[[], None]) -> None:
    """Call `run` and add the place to its errors."""
    try:
        run()
    except RuleError as error:
        raise ExecutionError(f"{_place(sequence)}{operation}: {error}") from error
    except _UNEXPECTED as error:
        raise ExecutionError(f"{_place(sequence)}{operation}: {type(error).__name__}: {error}") from error


def _place(sequence: Sequence) -> str:
    name = sequence.subgraph.name
    return f"subgraph '{name}', " if name else ""


def _snapshot(tensor: Tensor) -> Array:
    """A tensor's elements; integers as a copy, because they may be indices, sizes or offsets: if another thread writes
    to the caller's memory meanwhile, the operation still uses the values that it checked.
    """
    array = tensor.array
    return array.copy() if array.dtype.kind in "iu" and array.flags.writeable else array


def _run(operation: Operation, types: CallTypes, tensors: Tensors, context: Context) -> None:
    if (operation.op.shares or isinstance(operation.op, Update)) and _is_one_memory(operation, tensors):
        if isinstance(operation.op, Update):
            operation.op.put(tensors[operation.outputs[0]].array, *(_snapshot(tensors[i]) for i in operation.used[1:]))
        return
    inputs = [None if i is None else _snapshot(tensors[i]) for i in operation.inputs]
    for output, result in zip(operation.outputs, evaluate(operation.op, inputs, types, context), strict=True):
        tensors[output].assign(result)


def _is_one_memory(operation: Operation, tensors: Tensors) -> bool:
    """Whether an operation's result has the same address as its first operand."""
    source, result = (tensors[i] for i in (operation.used[0], operation.outputs[0]))
    return source.memory.name == result.memory.name == HOST.name and address(source.array) == address(result.array)


_Priced = tuple[CallTypes, int, int]
"""Types of an operation, the bytes of its results, and the cost of evaluating it in additions."""


def _priced(op: Op, types: CallTypes) -> _Priced:
    return types, sum(t.nbytes for t in types.outputs if t.is_static), work_of_evaluating(op, types)


def _run_dynamic(operation: Operation, known: _Priced | None, tensors: Tensors, context: Context) -> None:
    """Evaluate with the types of this run: unless they are known before, the operation's rules are checked against
    them before it is computed.
    """
    arrays = [None if i is None else _elements(tensors, i) for i in operation.inputs]
    types, needed, work = known or _priced(operation.op, _types_now(operation, arrays, tensors))
    require_room(needed)
    read = sum(0 if i is None else tensors[i].array.nbytes for i in operation.inputs)
    held = sum(_held(tensors, o) for o in operation.outputs)
    context.hold(needed - held, beside=needed + read)
    context.spend(work)
    try:
        found = evaluate(operation.op, arrays, types, context)
    except BaseException:
        context.hold(held - needed)  # the tensors are unchanged
        raise
    for output, result in zip(operation.outputs, found, strict=True):
        tensors[output].assign(result)
    # Sizes that were unknown before the evaluation are known now.
    now = sum(_held(tensors, o) for o in operation.outputs)
    context.hold(now - needed)
    context.spend(WORK_OF_AN_EVALUATED_BYTE * max(0, now - needed))


def _is_known(types: CallTypes) -> bool:
    """Whether the types are those of every run: strings are of unknown size, but not of unknown shape."""
    every = [t for t in (*types.inputs, *types.outputs) if t is not None]
    return all(t.is_static and (t.dtype is DType.STRING or not t.dtype.is_handle) for t in every)


def _types_now(operation: Operation, arrays: Iterable[Array | None], tensors: Tensors) -> CallTypes:
    inputs = tuple(
        None if i is None or array is None else _known(tensors[i], array)
        for i, array in zip(operation.inputs, arrays, strict=True)
    )
    results = infer(operation.op, inputs)
    results_now = (tensors[o] for o in operation.outputs)
    declared = [tensor.declared if tensor.dynamic else tensor.type for tensor in results_now]
    outputs = declared if results is None else [declare(r, d) for r, d in zip(results, declared, strict=True)]
    for type_ in outputs:
        shapes_ok(type_)
    return CallTypes(inputs, tuple(outputs))


def _run_cut(op: FirstEntries, x: Tensor, count: Tensor, result: Tensor, context: Context) -> None:
    """`FirstEntries` of a tensor of known shape: nothing needs inferring, and the result is not larger than it."""
    whole = x.array
    found = op.evaluate(whole, count.array)  # reads the count only once
    moved = found.nbytes + whole.nbytes
    context.hold(found.nbytes - _bytes_of(result), beside=moved)
    context.spend(WORK_OF_AN_EVALUATION + WORK_OF_AN_EVALUATED_BYTE * moved)
    result.assign(found)


def _held(tensors: Tensors, operand: int) -> int:
    """The current bytes of a tensor of unknown size."""
    return _bytes_of(tensors[operand])


def _bytes_of(tensor: Tensor) -> int:
    return tensor.array.nbytes if tensor.dynamic and tensor.buffer is not None else 0


def _elements(tensors: Tensors, operand: int) -> Array:
    if tensors[operand].buffer is None:
        raise RuleError(f"tensor {operand} has no elements yet")
    return _snapshot(tensors[operand])


def _known(tensor: Tensor, array: Array) -> TensorType:
    """The type of an operand in this run, including its elements."""
    return evolve(tensor.declared, shape=array.shape, ranked=True, data=Constant(array))
