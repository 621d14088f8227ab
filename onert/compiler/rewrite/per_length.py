"""Constants that lengths determine, computed for each length exactly as constant folding does for one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from attrs import field, frozen

from onert.backend.evaluation.evaluating import varies, work_of_evaluating
from onert.ir import (
    Array,
    CallTypes,
    Constant,
    ExecutionError,
    OnertError,
    Operation,
    Subgraph,
    TensorType,
    evaluate,
    infer,
)
from onert.ir.analysis.inference import declare
from onert.ir.errors import MISHAPS
from onert.ir.ops.data_movement.fill import PerLength
from onert.ir.process.cached import cached
from onert.ir.shape import static
from onert.ir.symbolic.functions import of_lengths
from onert.ir.symbolic.trace import Computed, OneLengthError, hint, is_symbolic
from onert.ir.value import ByIdentity

_MOST_WORK = 1 << 30
"""The most work for one length, in additions: about as long as compiling takes."""

_Number = tuple[bool, Any]
"""Whether it is a number of a function, and then its index, otherwise its value."""
_Elements = tuple[TensorType, tuple[_Number, ...]]
"""The type of a constant, and its elements."""


@frozen(eq=False, slots=False)
class Folded(ByIdentity):
    """The elements of tensors as a function of numbers: `operations` on `constants`, some of whose elements are these
    numbers. `known` are the types of those operations whose evaluation depends on no shape; for others they are
    inferred from `types`, which only give the operands' quantisation. `targets` are the tensors, with their shapes.
    Raises ExecutionError if an operation rejects its operands for these numbers.
    """

    targets: Mapping[int, tuple[_Number, ...]]
    operations: tuple[Operation, ...] = field(repr=False)
    constants: Mapping[int, _Elements | Array] = field(repr=False)
    types: Mapping[int, TensorType] = field(repr=False)
    known: Mapping[int, CallTypes] = field(repr=False)

    @cached
    def kept(self) -> dict[tuple[Any, ...], tuple[Array, ...]]:
        """The tensors for the last numbers."""
        return {}

    def __call__(self, *numbers: Any) -> tuple[Array, ...]:
        values: dict[int, Array] = {}
        for operand, given in self.constants.items():
            values[operand] = given if isinstance(given, np.ndarray) else _array(given, numbers)
        for operation in self.operations:
            try:
                results = self._results(operation, values)
            except (OnertError, *MISHAPS) as error:
                raise ExecutionError(f"{operation}: {error}") from error
            values |= zip(operation.outputs, results, strict=True)
        for target, shape in self.targets.items():
            expected = tuple(numbers[value] if is_number else value for is_number, value in shape)
            if values[target].shape != expected:  # native code relies on it
                raise ExecutionError(f"a constant has shape {values[target].shape}, expected {expected}")
        return tuple(values[target] for target in self.targets)

    def _results(self, operation: Operation, values: Mapping[int, Array]) -> tuple[Array, ...]:
        arrays = [None if i is None else values[i] for i in operation.inputs]
        known = self.known.get(operation.outputs[0])
        if known is not None:
            return evaluate(operation.op, arrays, known)
        inputs = tuple(None if i is None else self._type(i, values[i]) for i in operation.inputs)
        found = infer(operation.op, inputs)
        assert found is not None
        outputs = tuple(declare(t, self.types[o]) for t, o in zip(found, operation.outputs, strict=True))
        return evaluate(operation.op, arrays, CallTypes(inputs, outputs))

    def _type(self, operand: int, array: Array) -> TensorType:
        return self.types[operand].with_shape(array.shape).with_data(Constant(array))


@of_lengths
def tensor_of(folded: Folded, at: int, *numbers: Any) -> Array:
    """One of the tensors, all of which are kept for the last numbers."""
    found = folded.kept.get(numbers)
    if found is None:
        folded.kept.clear()
        found = folded.kept[numbers] = folded(*numbers)
    return found[at]


def at_first(types: CallTypes) -> CallTypes:
    """The types for the lengths that a trace begins with: a choice by these adds no condition."""
    inputs = (None if t is None else _at_first(t) for t in types.inputs)
    return CallTypes(tuple(inputs), tuple(map(_at_first, types.outputs)))


def _at_first(type_: TensorType) -> TensorType:
    return type_.with_shape(tuple(map(hint, static(type_.shape)))) if type_.is_static else type_


def folded(
    subgraph: Subgraph, targets: Sequence[int], producers: Mapping[int, tuple[int, CallTypes]]
) -> list[Operation]:
    """The operations that give tensors their elements for the current lengths; `producers` are those of all tensors
    that these depend on, by operand. Raises OneLengthError if an attribute of such an operation varies, or if it takes
    longer to evaluate them than to compile.
    """
    needed, pending = set[int](), list(targets)
    constants: dict[int, _Elements | Array] = {}
    numbers: list[Any] = []
    work = 0
    while pending:
        at, known = producers[pending.pop()]
        if at in needed:
            continue
        needed.add(at)
        operation = subgraph.operations[at]
        work += work_of_evaluating(operation.op, at_first(known))
        if varies(operation.op) or work > _MOST_WORK:
            raise OneLengthError(f"{operation} has to be folded for each length separately")
        for i, type_ in zip(operation.inputs, known.inputs, strict=True):
            if i is None or type_ is None or i in constants:
                continue
            if type_.data is None:
                pending.append(i)
            else:
                constants[i] = _elements(type_, numbers) if type_.data.is_symbolic else type_.data.array
    operations = tuple(subgraph.operations[at] for at in sorted(needed))
    types = {i: _unsized(subgraph.type(i)) for each in operations for i in (*each.used, *each.outputs)}
    shapes = {target: _numbered(static(subgraph.type(target).shape), numbers) for target in targets}
    plain = {out: _of_any_length(own) for out, (at, own) in producers.items() if at in needed and _is_plain(own)}
    all_of = Folded(shapes, operations, constants, types, plain)
    return [
        Operation(
            PerLength(subgraph.type(target), Computed(partial(tensor_of, all_of, at), tuple(numbers))),
            (),
            (target,),
            subgraph.operations[producers[target][0]].location,
        )
        for at, target in enumerate(targets)
    ]


def require_known_sizes(subgraph: Subgraph, readers: Iterable[Operation], constants: Iterable[Operation]) -> None:
    """Raise OneLengthError if one of the `readers` has results of unknown size only because it reads one of the
    `constants` from `folded`: a program for one length knows these sizes, and native code needs them.
    """
    computed = {each.outputs[0]: each.op.elements for each in constants if isinstance(each.op, PerLength)}
    for operation in readers:
        if computed.keys().isdisjoint(operation.used) or all(subgraph.type(o).is_static for o in operation.outputs):
            continue
        inputs = tuple(None if i is None else _known_at_first(subgraph, i, computed.get(i)) for i in operation.inputs)
        found = infer(operation.op, inputs)
        if found is not None and all(type_.is_static for type_ in found):
            raise OneLengthError(f"the sizes of {operation} have to be computed for each length separately")


def _known_at_first(subgraph: Subgraph, operand: int, computed: object) -> TensorType:
    """The type of an operand for the lengths that a trace begins with, with the elements that it has for these."""
    type_, data = _at_first(subgraph.type(operand)), subgraph.operands[operand].data
    if isinstance(computed, Computed):
        array = computed.function(*map(hint, computed.numbers))
    elif data is not None and data.is_symbolic:
        array = np.array([hint(x) for x in data.array.reshape(-1).tolist()], type_.dtype.numpy)
    else:
        return type_.with_data(data)
    return type_.with_data(Constant(array.reshape(static(type_.shape))))


def _elements(type_: TensorType, numbers: list[Any]) -> _Elements:
    """A constant with symbolic elements, which are added to the numbers."""
    assert type_.data is not None
    elements = _numbered(type_.data.array.reshape(-1).tolist(), numbers)
    return type_.with_data(None).with_shape(type_.data.array.shape), elements


def _numbered(values: Iterable[Any], numbers: list[Any]) -> tuple[_Number, ...]:
    """Values, the symbolic ones of which are added to the numbers."""
    found: list[_Number] = []
    for value in values:
        if is_symbolic(value):
            numbers.append(value)
        found.append((True, len(numbers) - 1) if is_symbolic(value) else (False, value))
    return tuple(found)


def _of_any_length(types: CallTypes) -> CallTypes:
    """The types without data, and without the sizes that depend on lengths."""
    inputs = (None if t is None else _unsized(t) for t in types.inputs)
    return CallTypes(tuple(inputs), tuple(map(_unsized, types.outputs)))


def _unsized(type_: TensorType) -> TensorType:
    shape = tuple(None if is_symbolic(d) else d for d in type_.shape) if type_.ranked else None
    return type_.with_data(None) if shape is None else type_.with_data(None).with_shape(shape)


def _is_plain(types: CallTypes) -> bool:
    """Whether element types alone determine how an operation is evaluated."""
    return not any(t is not None and t.quantization is not None for t in (*types.inputs, *types.outputs))


def _array(given: _Elements, numbers: tuple[Any, ...]) -> Array:
    type_, elements = given
    array = np.array([numbers[value] if is_number else value for is_number, value in elements], type_.dtype.numpy)
    return array.reshape([d for d in type_.shape if d is not None])
