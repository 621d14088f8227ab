"""The structural rules of all models."""

from __future__ import annotations

import graphlib
from collections.abc import Iterator

from onert.ir import shape as shapes
from onert.ir.errors import ModelError, RuleError
from onert.ir.operand import Operand
from onert.ir.operation import Operation
from onert.ir.subgraph import Subgraph, Subgraphs

from .inference import infer_operation


def verify(model: Subgraphs) -> None:
    """Raises ModelError with the place, the rule and the value for the first rule that is broken.

    Checks that indices are in range; that every operand is defined once, before it is used; arity; inputs and outputs;
    elements and quantisation of constants; state; result types against `infer`; that subgraphs exist and do not call
    one another in a cycle; and signatures.
    """
    if not model.subgraphs:
        raise ModelError("the model has no subgraph")
    for index, subgraph in enumerate(model.subgraphs):
        place = f"subgraph {index} '{subgraph.name}'"
        for problem in problems(subgraph):
            raise ModelError(f"{place}, {problem}")
        for operation in subgraph.operations:
            for called in operation.op.subgraphs:
                if not 0 <= called < len(model):
                    raise ModelError(f"{place}, {operation}: runs subgraph {called}, expected 0 to {len(model) - 1}")
    calls = {i: {c for o in g.operations for c in o.op.subgraphs} for i, g in enumerate(model.subgraphs)}
    try:
        tuple(graphlib.TopologicalSorter(calls).static_order())
    except graphlib.CycleError as error:
        raise ModelError(f"subgraphs call one another in a cycle: {error.args[1]}") from error
    for signature in model.signatures:
        if not 0 <= signature.subgraph < len(model):
            raise ModelError(f"signature '{signature.key}' names subgraph {signature.subgraph}")
        graph = model[signature.subgraph]
        for tensors, ends in ((signature.inputs, graph.inputs), (signature.outputs, graph.outputs)):
            for tensor in tensors:
                if tensor.operand not in ends:
                    raise ModelError(
                        f"signature '{signature.key}' names tensor {tensor.operand}, expected one of {ends}"
                    )


def problems(subgraph: Subgraph) -> Iterator[str]:
    """Every rule that one subgraph breaks, as a sentence with the place; later ones may follow from the first."""
    yield from _index_problems(subgraph)
    for index, operand in enumerate(subgraph.operands):
        for problem in _operand_problems(operand):
            yield f"{subgraph.label(index)}: {problem}"
    yield from _order_problems(subgraph)
    yield from _state_problems(subgraph)
    yield from _type_problems(subgraph)


def _index_problems(subgraph: Subgraph) -> Iterator[str]:
    count = len(subgraph.operands)

    def outside(indices: tuple[int, ...]) -> list[int]:
        return [i for i in indices if not 0 <= i < count]

    ends = (("inputs", subgraph.inputs), ("outputs", subgraph.outputs))
    for name, indices in ends:
        for i in outside(indices):
            yield f"{name} name tensor {i}, expected 0 to {count - 1}"
    for at, operation in enumerate(subgraph.operations):
        for i in (*outside(operation.used), *outside(operation.outputs)):
            yield f"{_place(at, operation)} names tensor {i}, expected 0 to {count - 1}"
    for update in subgraph.state:
        for i in outside((update.variable, update.source)):
            yield f"a state update names tensor {i}, expected 0 to {count - 1}"


def _place(at: int, operation: Operation) -> str:
    return operation.location or f"operation {at} {operation.op.label}"


def _operand_problems(operand: Operand) -> Iterator[str]:
    type_ = operand.type
    if any(d is not None and d < 0 for d in type_.shape):
        yield f"shape {shapes.text(type_.shape)} has a negative dimension"
    quantization = type_.quantization
    if quantization is not None:
        if not type_.dtype.is_integer:
            yield f"elements of type {type_.dtype.text} are quantised, expected integers"
        if quantization.axis is not None and type_.ranked:
            yield from _axis_problems(operand)
    if operand.data is not None:
        array = operand.data.array
        if array.dtype != type_.dtype.numpy or not type_.is_static or array.shape != type_.shape:
            yield f"has elements of {array.dtype}{shapes.text(array.shape)}, expected {type_}"
        if operand.variable:
            yield "is both a variable and a constant"
    if operand.resource is not None and not operand.variable:
        yield f"is the resource variable {operand.resource.name!r}, but not marked as a variable"


def _axis_problems(operand: Operand) -> Iterator[str]:
    type_, q = operand.type, operand.type.quantization
    assert q is not None
    assert q.axis is not None
    if not 0 <= q.axis < type_.rank:
        yield f"is quantised along axis {q.axis} of rank {type_.rank}"
    elif q.block_size is None:
        size = type_.shape[q.axis]
        if size is not None and len(q.scales) not in (1, size):
            yield f"has {len(q.scales)} scales along axis {q.axis} of {size}"


def _order_problems(subgraph: Subgraph) -> Iterator[str]:
    if len(set(subgraph.inputs)) != len(subgraph.inputs):
        yield f"inputs {list(subgraph.inputs)} name one tensor twice"
    known = {i for i, o in enumerate(subgraph.operands) if o.is_constant or o.variable} | set(subgraph.inputs)
    for at, operation in enumerate(subgraph.operations):
        place = _place(at, operation)
        try:
            operation.op.check_arity([i is not None for i in operation.inputs])
        except RuleError as error:
            yield f"{place}: {error}"
        for i in operation.used:
            if i not in known:
                yield f"{place}: {subgraph.label(i)} is read before anything writes it"
        for o in operation.outputs:
            if o in known:
                yield f"{place}: {subgraph.label(o)} is written, but it has elements already"
            known.add(o)
    for o in subgraph.outputs:
        if o not in known:
            yield f"{subgraph.label(o)} is an output, but nothing writes it"


def _state_problems(subgraph: Subgraph) -> Iterator[str]:
    for update in subgraph.state:
        variable, source = subgraph.operands[update.variable], subgraph.operands[update.source]
        if not variable.variable:
            yield f"{subgraph.label(update.variable)} is updated, but is not a variable"
        if variable.type.dtype is not source.type.dtype or not shapes.compatible(
            variable.type.shape, source.type.shape
        ):
            yield f"{subgraph.label(update.variable)} is {variable.type}, its next value {source.type}"


def _type_problems(subgraph: Subgraph) -> Iterator[str]:
    """Declared results that contradict `infer`; a less specific declaration is valid."""
    types = [operand.type for operand in subgraph.operands]
    for at, operation in enumerate(subgraph.operations):
        place = _place(at, operation)
        try:
            results = infer_operation(subgraph, operation, types)
        except RuleError as error:
            yield f"{place}: {error}"
            continue
        for out, result in zip(operation.outputs, results, strict=True):
            declared = subgraph.operands[out].type
            both = declared.ranked and result.ranked
            if both and not shapes.compatible(declared.shape, result.shape):
                yield f"{place}: {subgraph.label(out)} is declared {declared}, the operation gives {result}"
