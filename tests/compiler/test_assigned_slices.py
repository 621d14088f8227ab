"""Assignments to slices with run-time bounds, written as scattered elements, run natively and fail as before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import onert
from onert.ir import DType, OnertError, Package, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.data_movement.element_indices import Combination, ScatterElements
from onert.ir.ops.data_movement.fill import Range
from onert.ir.ops.data_movement.joining import Pack
from onert.ir.ops.data_movement.reshape import Reshape, ShapeOf
from onert.ir.ops.data_movement.slicing import BroadcastTo, StridedSlice, Tile
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.select import Select

from .counted_rows import evaluated

Array = np.ndarray[Any, Any]
SHAPE = (2, 5, 3)


def _assignment(
    axis: int, dtype: DType, raised: int | None, sliced: int = 0, step: int = 1, repeats: int = 1
) -> Package:
    """x[start:limit] = value along an axis; `raised` is added to negative indices. The slice begins `sliced` later."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, SHAPE), "x")
    value = b.input(TensorType(DType.FLOAT32, tuple(1 if i == axis else n for i, n in enumerate(SHAPE))), "value")
    start, limit = (b.input(TensorType(dtype, ()), name) for name in ("start", "limit"))

    def one(number: int) -> int:
        return b.constant(np.array(number, dtype.numpy))

    def at(number: int) -> int:
        return b.add(Pack(0), *(number if i == axis else one(0) for i in range(len(SHAPE))))

    masks = 7 & ~(1 << axis)
    begin = b.add(Binary(BinaryKind.ADD), start, one(sliced)) if sliced else start
    strides = b.constant(np.ones(3, dtype.numpy))
    shape = b.add(ShapeOf(), b.add(StridedSlice(masks, masks), x, at(begin), at(limit), strides))
    numbers = b.add(Range(), start, limit, one(step))
    row = b.add(Reshape(tuple(-1 if i == axis else 1 for i in range(3))), numbers)
    indices = b.add(Tile(), row, b.constant(np.array([repeats if i == axis else n for i, n in enumerate(SHAPE)])))
    if raised is not None:
        negative = b.add(Comparison(ComparisonKind.LESS), indices, one(0))
        indices = b.add(Select(), negative, b.add(Binary(BinaryKind.ADD), indices, one(raised)), indices)
    scatter = ScatterElements(axis, Combination.REPLACE)
    return Package((b.model([b.add(scatter, x, indices, b.add(BroadcastTo(), value, shape))]),), "assignment")


def _outcome(execution: onert.Execution, axis: int, dtype: DType, start: int, limit: int) -> Array | None:
    """The result; None if the run fails."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, SHAPE).astype(np.float32)
    value = rng.uniform(-1, 1, [1 if i == axis else n for i, n in enumerate(SHAPE)]).astype(np.float32)
    try:
        (found,) = execution.run([x, value, dtype.numpy.type(start), dtype.numpy.type(limit)]).values()
    except OnertError:
        return None
    return found


@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("dtype", [DType.INT32, DType.INT64], ids=lambda dtype: dtype.text)
@pytest.mark.parametrize("is_raised", [True, False], ids=["negative indices raised", "as they are"])
def test_every_slice_is_assigned_as_by_its_operations(axis: int, dtype: DType, is_raised: bool) -> None:
    package = _assignment(axis, dtype, SHAPE[axis] if is_raised else None)
    program = onert.compile(package, num_threads=1)
    assert evaluated(program) == set()
    native, expected = onert.Execution(program), onert.Execution(onert.compile(package, backends=("reference",)))
    bounds = range(-SHAPE[axis] - 2, SHAPE[axis] + 3)
    outcomes = set()
    for start in bounds:
        for limit in bounds:
            one, other = (_outcome(each, axis, dtype, start, limit) for each in (native, expected))
            assert (one is None) == (other is None), (start, limit)
            if one is not None:
                np.testing.assert_array_equal(one, other, err_msg=f"{start}:{limit}")
            outcomes.add(one is None)
    assert outcomes == {True, False}


OTHERS: dict[str, Callable[[], Package]] = {
    "another number is added to negative indices": lambda: _assignment(1, DType.INT64, 4),
    "another step": lambda: _assignment(1, DType.INT64, 5, step=2),
    "repeated along the axis": lambda: _assignment(1, DType.INT64, 5, repeats=2),
    "fewer updates": lambda: _assignment(1, DType.INT64, 5, sliced=1),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_scatters_have_the_outcomes_of_their_operations(name: str) -> None:
    package = OTHERS[name]()
    native, expected = (
        onert.Execution(onert.compile(package, num_threads=1, backends=backends)) for backends in ((), ("reference",))
    )
    for start, limit in ((0, 1), (1, 3), (0, 4), (-3, -1), (-2, -1), (-5, -4), (2, 2), (4, 1)):
        one, other = (_outcome(each, 1, DType.INT64, start, limit) for each in (native, expected))
        assert (one is None) == (other is None), (start, limit)
        if one is not None:
            np.testing.assert_array_equal(one, other)
