"""Evaluating each operation's NumPy definition: the fallback for all operations."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from attrs import fields, frozen, has

from onert.backend.kernel import Part, Redirect, Sequence, Stretched
from onert.backend.memory import HOST
from onert.backend.tensor import Tensors
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
    evaluate,
)
from onert.ir.analysis.cost import cost
from onert.ir.analysis.run_types import priced
from onert.ir.dtype import address
from onert.ir.ops.data_movement.part_update import Update
from onert.ir.symbolic.trace import is_symbolic
from onert.ir.value import ByIdentity

from .cutting import Cut, chains, is_cut
from .dynamic import Dynamic, snapshot

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
class StretchedEvaluating(ByIdentity):
    """An `EvaluatingKernel` for all lengths of a trace: the types are inferred again in each run."""

    sequence: Sequence
    operands: frozenset[int]
    wanted: tuple[int, ...] = ()

    @property
    def shaped(self) -> frozenset[int]:
        return self.operands

    def bind(self, tensors: Tensors, context: Context, numbers: Instructions, registers: Array) -> Stretched:
        return _BoundStretch(evaluating(self.sequence, tensors, context, is_stretched=True))


def stretched(sequence: Sequence) -> StretchedEvaluating | None:
    """The kernel for all lengths of a trace; None if an attribute of one of its operations depends on a length."""
    body = sequence.body
    if any(varies(operation.op) for operation in body):
        return None
    operands = frozenset(i for operation in body for i in (*operation.used, *operation.outputs))
    return StretchedEvaluating(sequence, operands)


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

    def __init__(self, run: Evaluating | EvaluatingOne) -> None:
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


class EvaluatingOne(partial[None]):
    """A sequence of one operation bound to tensors, without the overhead of a loop."""

    __slots__ = ("parts",)

    parts: tuple[Part, ...]

    def __new__(cls, part: Part) -> Self:
        self = super().__new__(cls, part.call)
        self.parts = (part,)
        return self

    def redirect(self, operands: frozenset[int]) -> Redirect:
        return _looked_up


def evaluating(
    sequence: Sequence, tensors: Tensors, context: Context, is_stretched: bool = False
) -> Evaluating | EvaluatingOne:
    """A sequence bound to tensors. If it is stretched, these change their shapes between runs."""
    operations = sequence.subgraph.operations
    parts = tuple(
        Part(chain, _call(sequence, [operations[at] for at in chain], tensors, context, is_stretched))
        for chain in chains(sequence, tensors)
    )
    return EvaluatingOne(parts[0]) if len(parts) == 1 else Evaluating(parts)


def _call(
    sequence: Sequence, chain: list[Operation], tensors: Tensors, context: Context, is_stretched: bool
) -> Callable[[], None]:
    """A call for operations that cut one tensor along several axes, or for one operation."""
    operation = chain[0]
    involved = [tensors[i] for i in (*operation.used, *operation.outputs)]
    types = sequence.subgraph.types(operation)
    run: Callable[[], None]
    if is_cut(operation, tensors):
        run = Cut(chain, tensors, context, WORK_OF_AN_EVALUATION * len(chain), WORK_OF_AN_EVALUATED_BYTE)
    elif is_stretched or any(tensor.dynamic for tensor in involved):
        known = None if is_stretched or not _is_known(types) else priced(operation.op, types, work_of_evaluating)
        constants = frozenset(i for i in operation.used if sequence.subgraph.operands[i].data is not None)
        run = Dynamic(operation, known, constants, tensors, context, work_of_evaluating, WORK_OF_AN_EVALUATED_BYTE)
    else:
        run = partial(_run, operation, types, tensors, context)
    return partial(_placed, sequence, operation, run)


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


def _run(operation: Operation, types: CallTypes, tensors: Tensors, context: Context) -> None:
    if (operation.op.shares or isinstance(operation.op, Update)) and _is_one_memory(operation, tensors):
        if isinstance(operation.op, Update):
            operation.op.put(tensors[operation.outputs[0]].array, *(snapshot(tensors[i]) for i in operation.used[1:]))
        return
    inputs = [None if i is None else snapshot(tensors[i]) for i in operation.inputs]
    for output, result in zip(operation.outputs, evaluate(operation.op, inputs, types, context), strict=True):
        tensors[output].assign(result)


def _is_one_memory(operation: Operation, tensors: Tensors) -> bool:
    """Whether an operation's result has the same address as its first operand."""
    source, result = (tensors[i] for i in (operation.used[0], operation.outputs[0]))
    return source.memory.name == result.memory.name == HOST.name and address(source.array) == address(result.array)


def _is_known(types: CallTypes) -> bool:
    """Whether the types are those of every run: strings are of unknown size, but not of unknown shape."""
    every = [t for t in (*types.inputs, *types.outputs) if t is not None]
    return all(t.is_static and (t.dtype is DType.STRING or not t.dtype.is_handle) for t in every)
