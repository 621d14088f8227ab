"""Evaluating an operation with tensors whose sizes only a run determines."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Any

from onert.backend.memory import LITTLE, require_room
from onert.backend.tensor import Tensor, Tensors
from onert.ir import Array, CallTypes, Context, Op, Operation, RuleError, evaluate
from onert.ir.analysis.evaluate import evaluate_plain
from onert.ir.analysis.run_types import MOST_BYTES, Priced, RunTypes


class Dynamic:
    """A call that evaluates an operation on tensors of an execution.

    Unless its types are `known` before, its rules are checked against those of the run before it is computed; for sizes
    seen before, this and what the operation makes of them (`Op.sized`) is kept. `constants` are operands, `work` is the
    cost of evaluating an operation of known types, and `work_of_a_byte` that of a byte of unknown number.
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
        "_work_of_a_byte",
    )

    def __init__(
        self,
        operation: Operation,
        known: Priced | None,
        constants: Set[int],
        tensors: Tensors,
        context: Context,
        work: Callable[[Op, CallTypes], int],
        work_of_a_byte: int,
    ) -> None:
        self._op = operation.op
        self._outputs = [tensors[i] for i in operation.outputs]
        self._known = known
        self._context = context
        self._work_of_a_byte = work_of_a_byte
        present = [(at, i, tensors[i]) for at, i in enumerate(operation.inputs) if i is not None]
        self._constants = [(at, tensor) for at, i, tensor in present if i in constants]
        self._varying = [(at, tensor) for at, i, tensor in present if i not in constants]
        declared = [None if i is None else tensors[i].declared for i in operation.inputs]
        results = [tensor.declared for tensor in self._outputs]
        self._types = RunTypes(operation.op, declared, results, work, [at for at, _ in self._varying])
        self._given: list[Array | None] = []
        """The elements of constants, and None for other operands, once the operation has run."""
        self._fixed = 0
        """The bytes of constants."""
        self._function: Any = operation.op.evaluate
        """Computes plain results from the operands at these places."""
        self._places = list(range(len(operation.inputs)))

    def __call__(self) -> None:
        arrays = self._given.copy() or self._begin()
        read, shapes = self._fixed, []
        for at, tensor in self._varying:
            arrays[at] = array = tensor.array
            if array is None:
                raise RuleError(f"an operand, {tensor.declared}, has no elements yet")
            read += array.nbytes
            shapes.append(array.shape)
        run = self._types.kept(arrays, shapes)
        if run is None or run.function is None:
            for at, _ in self._varying:
                arrays[at] = steady(arrays[at])
            run = self._known or self._types(arrays)
        needed, held, outputs, context = run.nbytes, 0, self._outputs, self._context
        for tensor in outputs:
            held += tensor.held
        if needed > LITTLE:
            require_room(needed)
        context.hold(needed - held, needed + read)
        context.spend(run.work)
        try:
            if run.function is not None:
                found = run.function(*arrays)
            elif run.is_plain:
                found = evaluate_plain(self._op, self._function, [arrays[at] for at in self._places], run.types)
            else:
                found = evaluate(self._op, arrays, run.types, context)
        except BaseException:
            context.hold(held - needed)  # the tensors are unchanged
            raise
        size = 0
        for tensor, result in zip(outputs, found, strict=True):
            tensor.assign(result)
            size += tensor.held
        if size != needed:  # sizes that were unknown before the evaluation are known now
            context.hold(size - needed)
            context.spend(self._work_of_a_byte * max(0, size - needed))

    def _begin(self) -> list[Array | None]:
        """Read the constants, and prepare the operation for them."""
        given: list[Array | None] = [None] * len(self._places)
        for at, tensor in self._constants:
            given[at] = array = snapshot(tensor)
            self._fixed += array.nbytes
        is_whole = len(self._constants) + len(self._varying) == len(given)
        prepared = None if self._op.prepare is None or not is_whole else self._op.prepare(*given)
        if prepared is not None:
            self._function, self._places = prepared, [at for at, _ in self._varying]
        self._given = given
        return given.copy()


def snapshot(tensor: Tensor) -> Array:
    """A tensor's elements; integers as a copy, because they may be indices, sizes or offsets: if another thread writes
    to the caller's memory meanwhile, the operation still uses the values that it checked.
    """
    array = tensor.array
    return array.copy() if array.dtype.kind in "iu" and array.flags.writeable else array


def steady(array: Array | None) -> Array | None:
    """A copy of integers, as `snapshot`, and of other elements so few that sizes may be computed from them."""
    if array is None or not (array.nbytes <= MOST_BYTES or array.dtype.kind in "iu") or not array.flags.writeable:
        return array
    return array.copy()
