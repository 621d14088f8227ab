"""Inference of result types from operand types; errors say where a rule is broken."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from onert.ir import shape as shapes
from onert.ir.errors import MISHAPS, ModelError, OnertError, RuleError
from onert.ir.op import Op
from onert.ir.operation import Operation
from onert.ir.subgraph import Subgraph
from onert.ir.types import TensorType, unranked


def infer(op: Op, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...] | None:
    """The results' types, or None if an operand is of unknown rank, since no shape can then be inferred.

    Raises RuleError for a wrong number of operands, and if the operation's own rules reject them.
    """
    op.check_arity([t is not None for t in inputs])
    if any(t is not None and not t.ranked for t in inputs):
        return None
    results = op.infer(*inputs)
    return results if isinstance(results, tuple) else (results,)


def declare(inferred: TensorType, declared: TensorType) -> TensorType:
    """The inferred type with the declared quantisation.

    Raises RuleError if the element types differ. The inferred shape takes precedence because a file's shape may be
    stale (TFLite computes its own before a run); if the inferred rank is unknown, the result is unranked.
    """
    if inferred.dtype is not declared.dtype:
        raise RuleError(f"result is declared {declared.dtype.text}, but the operation gives {inferred.dtype.text}")
    return TensorType(inferred.dtype, inferred.shape, declared.quantization, inferred.ranked)


def infer_operation(
    subgraph: Subgraph, operation: Operation, operand_types: Sequence[TensorType]
) -> tuple[TensorType, ...]:
    """The types of an operation's results in its subgraph. Raises RuleError, which does not name the operation."""
    inputs = tuple(
        None if i is None else operand_types[i].with_data(subgraph.operands[i].data) for i in operation.inputs
    )
    results = infer(operation.op, inputs)
    declared = [subgraph.operands[o].type for o in operation.outputs]
    if results is None:
        return tuple(unranked(d.dtype, d.quantization) for d in declared)
    if len(results) != len(declared):
        raise RuleError(f"has {len(declared)} outputs, expected {len(results)}")
    return tuple(declare(r, d) for r, d in zip(results, declared, strict=True))


InferOperation = Callable[[Subgraph, Operation, Sequence[TensorType]], tuple[TensorType, ...]]
"""Infers the types of an operation's results from the types of all operands so far."""


def infer_subgraph(subgraph: Subgraph, place: str = "", each: InferOperation = infer_operation) -> Subgraph:
    """The subgraph with every result's type inferred from the inputs' types. Raises ModelError that names the place.

    Returns the same object if every declared type is already correct. `each` infers one operation.
    """
    types = [operand.type for operand in subgraph.operands]
    changed: dict[int, TensorType] = {}
    for operation in subgraph.operations:
        try:
            results = each(subgraph, operation, types)
            for out, result in zip(operation.outputs, results, strict=True):
                shapes_ok(result)
                if result != types[out]:
                    types[out] = changed[out] = result
        except RuleError as error:
            raise ModelError(f"{place}{operation}: {error}") from error
        except OnertError:
            raise
        except MISHAPS as error:
            raise ModelError(f"{place}{operation}: {type(error).__name__}: {error}") from error
    return subgraph.with_types(changed)


def shapes_ok(type_: TensorType) -> None:
    """Raises RuleError for an invalid shape: negative dimensions, too many dimensions or too many elements."""
    if type_.rank > shapes.MAX_RANK:
        raise RuleError(f"rank {type_.rank} is more than {shapes.MAX_RANK}")
    total = 1
    for d in type_.shape:
        if d is not None:
            if d < 0:
                raise RuleError(f"shape {shapes.text(type_.shape)} has a negative dimension")
            total *= max(d, 1)  # NumPy rejects even an empty array if its other dimensions are too large
    if total > shapes.MAX_ELEMENTS:
        raise RuleError(f"shape {shapes.text(type_.shape)} has more than {shapes.MAX_ELEMENTS} elements")
