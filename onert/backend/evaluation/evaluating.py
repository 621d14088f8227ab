"""Evaluating each operation's NumPy definition: the fallback for all operations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import fields, frozen, has

from onert.backend.kernel import Part, Redirect, Sequence, Stretched
from onert.backend.memory import HOST, require_room
from onert.backend.tensor import Tensor, Tensors
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
from onert.ir.analysis.evaluate import evaluate_plain
from onert.ir.analysis.run_types import Priced, RunTypes, priced
from onert.ir.dtype import address
from onert.ir.ops.data_movement.fill import FirstEntries
from onert.ir.ops.data_movement.part_update import Update
from onert.ir.symbolic.trace import is_symbolic
from onert.ir.value import ByIdentity

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


def evaluating(sequence: Sequence, tensors: Tensors, context: Context, is_stretched: bool = False) -> Evaluating:
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
    types = sequence.subgraph.types(operation)
    run: Callable[[], None]
    if isinstance(operation.op, FirstEntries) and not any(tensor.dynamic for tensor in involved[:2]):
        x, count, result = involved
        run = partial(_run_cut, operation.op, x, count, result, context)
    elif is_stretched or any(tensor.dynamic for tensor in involved):
        known = None if is_stretched or not _is_known(types) else priced(operation.op, types, work_of_evaluating)
        run = _Dynamic(sequence, operation, known, tensors, context)
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


class _Dynamic:
    """An operation with tensors whose sizes only a run determines.

    Unless its types are `known` before, its rules are checked against those of the run before it is computed.
    """

    __slots__ = (
        "_constants",
        "_context",
        "_fixed",
        "_function",
        "_given",
        "_known",
        "_op",
        "_outputs",
        "_places",
        "_types",
        "_varying",
    )

    def __init__(
        self, sequence: Sequence, operation: Operation, known: Priced | None, tensors: Tensors, context: Context
    ) -> None:
        self._op = operation.op
        inputs = [None if i is None else tensors[i] for i in operation.inputs]
        self._outputs = [tensors[i] for i in operation.outputs]
        self._known = known
        self._context = context
        constant = [i is not None and sequence.subgraph.operands[i].data is not None for i in operation.inputs]
        present = [(at, tensor) for at, tensor in enumerate(inputs) if tensor is not None]
        self._constants = [(at, tensor) for at, tensor in present if constant[at]]
        self._varying = [(at, tensor) for at, tensor in present if not constant[at]]
        declared = [None if tensor is None else tensor.declared for tensor in inputs]
        results = [tensor.declared for tensor in self._outputs]
        self._types = RunTypes(operation.op, declared, results, work_of_evaluating, [at for at, _ in self._varying])
        self._given: list[Array | None] | None = None
        """The elements of constants, and None for other operands, once the operation has run."""
        self._fixed = 0
        """The bytes of constants."""
        self._function: Any = operation.op.evaluate
        """Computes plain results from the operands at these places."""
        self._places = list(range(len(inputs)))

    def __call__(self) -> None:
        given = self._given
        arrays = (self._begin() if given is None else given).copy()
        read = self._fixed
        for at, tensor in self._varying:
            arrays[at] = array = _elements(tensor)
            read += array.nbytes
        run, context = self._known or self._types(arrays), self._context
        needed, held = run.nbytes, _bytes_of(self._outputs)
        require_room(needed)
        context.hold(needed - held, beside=needed + read)
        context.spend(run.work)
        try:
            if run.is_plain:
                found = evaluate_plain(self._op, self._function, [arrays[at] for at in self._places], run.types)
            else:
                found = evaluate(self._op, arrays, run.types, context)
        except BaseException:
            context.hold(held - needed)  # the tensors are unchanged
            raise
        for tensor, result in zip(self._outputs, found, strict=True):
            tensor.assign(result)
        # Sizes that were unknown before the evaluation are known now.
        more = _bytes_of(self._outputs) - needed
        if more:
            context.hold(more)
            context.spend(WORK_OF_AN_EVALUATED_BYTE * max(0, more))

    def _begin(self) -> list[Array | None]:
        """Read the constants, and prepare the operation for them."""
        given: list[Array | None] = [None] * len(self._places)
        for at, tensor in self._constants:
            given[at] = array = _elements(tensor)
            self._fixed += array.nbytes
        is_whole = len(self._constants) + len(self._varying) == len(given)
        prepared = None if self._op.prepare is None or not is_whole else self._op.prepare(*given)
        if prepared is not None:
            self._function, self._places = prepared, [at for at, _ in self._varying]
        self._given = given
        return given


def _is_known(types: CallTypes) -> bool:
    """Whether the types are those of every run: strings are of unknown size, but not of unknown shape."""
    every = [t for t in (*types.inputs, *types.outputs) if t is not None]
    return all(t.is_static and (t.dtype is DType.STRING or not t.dtype.is_handle) for t in every)


def _run_cut(op: FirstEntries, x: Tensor, count: Tensor, result: Tensor, context: Context) -> None:
    """`FirstEntries` of a tensor of known shape: nothing needs inferring, and the result is not larger than it."""
    whole = x.array
    found = op.evaluate(whole, count.array)  # reads the count only once
    moved = found.nbytes + whole.nbytes
    context.hold(found.nbytes - _bytes_of((result,)), beside=moved)
    context.spend(WORK_OF_AN_EVALUATION + WORK_OF_AN_EVALUATED_BYTE * moved)
    result.assign(found)


def _bytes_of(tensors: Iterable[Tensor]) -> int:
    """The current bytes of those tensors that are of unknown size."""
    total = 0
    for tensor in tensors:
        if tensor.dynamic and (buffer := tensor.buffer) is not None:
            total += buffer.nbytes if isinstance(buffer, np.ndarray) else tensor.array.nbytes
    return total


def _elements(tensor: Tensor) -> Array:
    if tensor.buffer is None:
        raise RuleError(f"an operand, {tensor.declared}, has no elements yet")
    return _snapshot(tensor)
