"""The meaning of operations on NumPy arrays: the oracle of all tests, constant folding, the reference backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from onert.ir.dtype import NARROW_FLOATS, Array, DType
from onert.ir.errors import ExecutionError, RuleError
from onert.ir.op import Context, Op
from onert.ir.quant import dequantize, quantize
from onert.ir.types import CallTypes

_LOW = NARROW_FLOATS | {DType.FLOAT16, DType.BFLOAT16}


def evaluate(
    op: Op, inputs: Sequence[Array | None], types: CallTypes, context: Context | None = None
) -> tuple[Array, ...]:
    """The results of `op` on `inputs`; `types` are the types of operands and results (with static input shapes).

    Low-precision floats are computed in float32 and rounded once at the end. RuleError if an element breaks a rule.
    """
    with np.errstate(all="ignore"):  # IEEE results (inf, nan, wrapped integers) are intended
        results = _evaluate(op, inputs, types, context)
    return _checked(op, results, types)


def is_plain(op: Op, types: CallTypes) -> bool:
    """Whether the results are those of `op.evaluate` on the arrays as they are."""
    if op.evaluate_in is not None or op.evaluate is None:
        return False
    if _is_quantized(types) and not (op.stored and op.evaluate_quantized is None):
        return False
    return op.stored or not any(t is not None and t.dtype in _LOW for t in types.inputs)


def evaluate_plain(
    op: Op, function: Callable[..., Any], inputs: Sequence[Array | None], types: CallTypes
) -> tuple[Array, ...]:
    """`evaluate` for types that are plain, by a function that is the operation's `evaluate`, or prepared for some of
    its operands and called with the others."""
    if op.stored:  # elements are only moved, and nothing needs to be ignored
        return _checked(op, _tuple(function(*inputs)), types)
    with np.errstate(all="ignore"):
        results = _tuple(function(*inputs))
    return _checked(op, results, types)


def sized(op: Op, types: CallTypes) -> Callable[..., tuple[Array, ...]] | None:
    """`evaluate` for operands and results of these plain types, if the operation has a function for them."""
    found = None if op.sized is None else op.sized(types)
    if found is None:
        return None
    function: Callable[..., Array | tuple[Array, ...]] = found if op.stored else _unnoticed(found)
    if len(types.outputs) > 1:
        return lambda *xs: _checked(op, _tuple(function(*xs)), types)
    dtype = types.output.dtype.numpy

    def one(*xs: Array | None) -> tuple[Array, ...]:
        result = function(*xs)
        return (
            (result,)
            if isinstance(result, np.ndarray) and result.dtype == dtype
            else _checked(op, _tuple(result), types)
        )

    return one


def _unnoticed(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function without warnings: IEEE results are intended."""

    def run(*xs: Array | None) -> Any:
        with np.errstate(all="ignore"):
            return function(*xs)

    return run


def _checked(op: Op, results: tuple[Array, ...], types: CallTypes) -> tuple[Array, ...]:
    for result, declared in zip(results, types.outputs, strict=True):
        if result.dtype != declared.dtype.numpy:
            raise ExecutionError(f"{op.label} returned {result.dtype}, its result is declared {declared.dtype.text}")
    return results


def _evaluate(op: Op, inputs: Sequence[Array | None], types: CallTypes, context: Context | None) -> tuple[Array, ...]:
    if op.evaluate_in is not None:
        if context is None:
            raise RuleError(f"{op.label} needs subgraphs or state, which are not available here")
        return _tuple(op.evaluate_in(context, types, *inputs))
    if op.evaluate is None and op.evaluate_quantized is None:
        raise RuleError(f"{op.label} cannot be evaluated in NumPy")
    if op.evaluate is not None and is_plain(op, types):
        return _tuple(op.evaluate(*inputs))
    if _is_quantized(types) and not (op.stored and op.evaluate_quantized is None):
        if op.evaluate_quantized is not None:
            return _tuple(op.evaluate_quantized(types, *inputs))
        return _through_float(op, inputs, types)
    if op.evaluate is None:
        raise RuleError(f"{op.label} is only defined on quantised tensors")
    wide = [
        a.astype(np.float32) if a is not None and t is not None and t.dtype in _LOW else a
        for a, t in zip(inputs, types.inputs, strict=True)
    ]
    results = _tuple(op.evaluate(*wide))
    return tuple(r.astype(t.dtype.numpy) if t.dtype in _LOW else r for r, t in zip(results, types.outputs, strict=True))


def _is_quantized(types: CallTypes) -> bool:
    every = (t for t in (*types.inputs, *types.outputs) if t is not None)
    return any(t.quantization is not None and t.dtype.is_integer for t in every)


def _through_float(op: Op, inputs: Sequence[Array | None], types: CallTypes) -> tuple[Array, ...]:
    """Dequantize, evaluate, quantize: the meaning of a quantised operation that defines no integer arithmetic."""
    assert op.evaluate is not None
    real: list[Array | None] = []
    for array, t in zip(inputs, types.inputs, strict=True):
        if array is not None and t is not None and t.quantization is not None and t.dtype.is_integer:
            real.append(dequantize(array, t.quantization))
        else:
            real.append(array)
    results = []
    for result, t in zip(_tuple(op.evaluate(*real)), types.outputs, strict=True):
        if t.quantization is not None and t.dtype.is_integer and result.dtype.kind == "f":
            results.append(quantize(result, t.quantization, t.dtype))
        else:
            results.append(result)
    return tuple(results)


def _tuple(results: Array | tuple[Array, ...]) -> tuple[Array, ...]:
    return results if isinstance(results, tuple) else (results,)
