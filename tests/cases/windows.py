"""Cases of reductions by known functions, of windows of every kind, and of sorting."""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import evolve
from formulas import floats, spread

from onert.ir import Array, Quantization
from onert.ir.ops.elementwise.binary import BinaryKind
from onert.ir.ops.reduction.reduce import ArgReduce, Extreme, Reduce, Reduction
from onert.ir.ops.reduction.reduce_window import ReduceWindow, WindowReduction
from onert.ir.ops.stablehlo.sliding import Sliding
from onert.ir.ops.stablehlo.with_bodies import HloReduce, HloReduceWindow, HloSort

from .case import Case

_X = floats((2, 3, 4))
_TRUTH = np.array([[True, False], [True, True]])
_SPECIAL = np.float32([[1, np.nan, np.inf], [-np.inf, 2, -1]])
_BYTES = spread((2, 3, 4), -100, 100).astype(np.int8)
_IMAGE = floats((1, 5, 6, 2))


def _window(name: str, x: Array, start: Any, function: BinaryKind, size: tuple[int, ...], **options: Any) -> Case:
    ones, none = (1,) * x.ndim, (0,) * x.ndim
    sliding = evolve(Sliding(ones, none, none, ones, ones), **options)
    op = HloReduceWindow(0, size, sliding, function)
    return Case(name, op, (x, np.asarray(start, x.dtype)), constant=(1,))


def _own(name: str, x: Array, start: Any, kind: WindowReduction, *steps: tuple[int, ...]) -> Case:
    return Case(name, ReduceWindow(kind), (x, np.asarray(start, x.dtype), *map(np.int64, steps)), constant=(2, 3, 4))


ADD, MAX, MIN = BinaryKind.ADD, BinaryKind.MAXIMUM, BinaryKind.MINIMUM

CASES = [
    Case("products", HloReduce(0, (1,), BinaryKind.MUL), (_X, np.float32(2)), (2 * _X.prod(1),)),
    Case("smallest of all", HloReduce(0, (2, 0, 1), MIN), (_X, np.float32(0)), (_X.min(initial=0),)),
    Case("all are true", HloReduce(0, (1,), BinaryKind.LOGICAL_AND), (_TRUTH, np.array(True)), (_TRUTH.all(1),)),
    Case("one is true", HloReduce(0, (0,), BinaryKind.LOGICAL_OR), (_TRUTH, np.array(False)), (_TRUTH.any(0),)),
    Case("sums of special numbers", HloReduce(0, (1,), ADD), (_SPECIAL, np.float32(0)), (_SPECIAL.sum(1),)),
    Case(
        "the largest of special numbers",
        HloReduce(0, (1,), MAX),
        (_SPECIAL, np.float32(0)),
        (_SPECIAL.max(1, initial=0),),
    ),
    Case("bytes that wrap", HloReduce(0, (0,), ADD), (np.int8([100, 100]), np.int8(0)), (np.array(-56, np.int8),)),
    Case("64 bits", HloReduce(0, (0,), MAX), (np.int64([1 << 40, 3]), np.int64(5)), (np.array(1 << 40),)),
    Case("no dimensions", HloReduce(0, (), ADD), (_X, np.float32(1)), (_X + 1,)),
    Case("of nothing", HloReduce(0, (0,), ADD), (np.zeros((0, 2), np.float32), np.float32(3)), (np.float32([3, 3]),)),
    Case("to nothing", HloReduce(0, (0,), ADD), (np.zeros((2, 0), np.int32), np.int32(3)), (np.zeros(0, np.int32),)),
    _window("the largest of an image", _IMAGE, -np.inf, MAX, (1, 3, 2, 1), strides=(1, 2, 2, 1), low=(0, 1, 0, 0)),
    _window("the largest from 0", _IMAGE, 0, MAX, (1, 2, 2, 1), high=(0, 1, 1, 0)),
    _window("the largest along one dimension", _X, -np.inf, MAX, (1, 2, 1), strides=(1, 2, 1)),
    _window("the largest apart", _IMAGE, 0, MAX, (1, 2, 2, 1), window_dilations=(1, 2, 3, 1)),
    _window("sums of an image", _IMAGE, 0, ADD, (1, 2, 3, 1), strides=(1, 2, 1, 1), high=(0, 1, 0, 0)),
    _window("every other element", _IMAGE, 0, ADD, (1, 1, 1, 1), strides=(1, 2, 3, 1)),
    _window("smallest integers apart", np.int32([[5, 3], [4, 9]]), 7, MIN, (2, 2), dilations=(2, 3), low=(1, -1)),
    _window("products that wrap", np.int8([[5, 30], [40, 9]]), 1, BinaryKind.MUL, (2, 2)),
    _window("all true", _TRUTH, True, BinaryKind.LOGICAL_AND, (2, 1)),
    _window("a running sum", floats((3, 5)), 0, ADD, (1, 5), low=(0, 4)),
    _window("a running sum from the end", np.int32([[1, 2, 3]]), 0, ADD, (1, 3), high=(0, 2)),
    _window("no window fits", _X, 0, ADD, (3, 1, 1)),
    _window("special numbers in windows", _SPECIAL, -np.inf, MAX, (1, 2)),
    _own("windows apart", _IMAGE, 1, WindowReduction.ADD, (1, 2, 3, 1), (1, 2, 1, 1), (1, 1, 2, 1)),
    _own("no windows", _X, 1, WindowReduction.MAX, (3, 1, 1), (1, 1, 1), (1, 1, 1)),
    _own("a window as large as a row", _X, 9, WindowReduction.MIN, (1, 3, 1), (1, 2, 1), (1, 1, 1)),
    Case(
        "ascending columns",
        HloSort(0, 0, descending=False),
        (np.int32([[3, -(2**31)], [1, 5], [2**31 - 1, 5]]),),
        (np.int32([[1, -(2**31)], [3, 5], [2**31 - 1, 5]]),),
    ),
    Case(
        "equal ones in their order",
        HloSort(0, 1, descending=True),
        (np.float32([[1, 2, 1, 2]]), np.int32([[0, 1, 2, 3]]), np.int8([[5, 6, 7, 8]])),
        (np.float32([[2, 2, 1, 1]]), np.int32([[1, 3, 0, 2]]), np.int8([[6, 8, 5, 7]])),
    ),
    Case(
        "ascending infinities",
        HloSort(0, 0, descending=False),
        (np.float32([np.inf, -1, -np.inf, 0]),),
        (np.float32([-np.inf, -1, 0, np.inf]),),
    ),
    *(
        Case(f"{kind.value} of nothing", Reduce(kind), (np.zeros((0, 2), np.float32), np.int32([0])), constant=(1,))
        for kind in (Reduction.MEAN, Reduction.SUM, Reduction.PROD, Reduction.MAX, Reduction.MIN)
    ),
    Case("a mean to nothing", Reduce(Reduction.MEAN), (np.zeros((2, 0), np.float32), np.int32([0])), constant=(1,)),
    Case(
        "a mean of large integers, cut",
        Reduce(Reduction.MEAN, keep_dims=True),
        (np.int32([[2**31 - 1, 2**31 - 2], [-3, 0]]), np.int32([-1])),
        (np.int32([[2**31 - 2], [-1]]),),
        constant=(1,),
    ),
    *(
        Case(
            f"{kind.value} of bytes, axes apart",
            Reduce(kind, keep_dims=kind is Reduction.MEAN),
            (_BYTES, np.int32([0, -1])),
            quantization=(Quantization((0.5,), (3,)),),
            result_quantization=(Quantization((0.25 if kind is Reduction.MEAN else 0.5,), (3,)),),
            constant=(1,),
        )
        for kind in (Reduction.MEAN, Reduction.MAX)
    ),
    Case("index of the last false", ArgReduce(Extreme.MIN), (_TRUTH, np.int32(-1)), (np.int64([1, 0]),), constant=(1,)),
]
