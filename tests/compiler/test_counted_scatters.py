"""Scatters and top-k of a number of entries known only at run time run natively."""

from __future__ import annotations

import numpy as np
import pytest

import onert
from onert.ir import DType
from onert.ir.builder import Builder
from onert.ir.ops.data_movement.copy import Copy
from onert.ir.ops.data_movement.element_indices import Combination, ScatterElements, ScatterSlices
from onert.ir.ops.data_movement.fill import FirstEntries, Range, TopK, Where
from onert.ir.ops.data_movement.gather import ScatterNd
from onert.ir.ops.data_movement.joining import Concat, Pack
from onert.ir.ops.data_movement.layout import Reverse, Transpose
from onert.ir.ops.data_movement.reshape import ExpandDims, Reshape
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.vision_audio.resize import ResizeBilinear

from .counted_rows import Write, check_native, column_of, evaluated, number, package_of, row_of, rows_given


def _places(b: Builder, n: int, most: int = 6) -> int:
    """The numbers below a count, subtracted from the largest possible index."""
    found = b.add(Range(), number(b, 0), n, number(b, 1))
    return b.add(Binary(BinaryKind.SUB), number(b, most - 1), found)


def _column(b: Builder, places: int) -> int:
    return b.add(ExpandDims(), places, number(b, 1))


def _rows_put(b: Builder, x: int, n: int, rows: int) -> list[int]:
    """Selected rows into fixed ones, fixed rows into selected ones, and selected ones into as many."""
    upwards = _column(b, b.add(Range(), number(b, 0), n, number(b, 1)))
    twice = b.add(Concat(0), rows, rows)
    pairs = b.constant(np.int32([[1, 2], [0, 3]]))
    first, columns = column_of(b, rows), b.add(Transpose(), rows, row_of(b, 1, 0))
    return [
        b.add(ScatterSlices(), x, _column(b, _places(b, n)), rows),
        b.add(
            ScatterSlices(Combination.ADD),
            twice,
            b.constant(np.int32([[1], [0]])),
            b.constant(np.ones((2, 4), np.float32)),
        ),
        b.add(ScatterSlices(), twice, pairs, b.constant(np.float32([7, 8]))),
        b.add(ScatterSlices(Combination.MUL), twice, upwards, b.add(Unary(UnaryKind.NEG), rows)),
        b.add(ScatterSlices(), columns, b.constant(np.int32([[2], [0]])), b.add(Pack(0), first, first)),
    ]


def _sums_put(b: Builder, x: int, n: int, rows: int) -> list[int]:
    """Fixed and selected rows scattered into zeros of a computed shape."""
    more = b.add(Binary(BinaryKind.ADD), n, number(b, 2))
    ones = b.constant(np.ones((2, 4), np.float32))
    upwards = _column(b, b.add(Range(), number(b, 0), n, number(b, 1)))
    return [
        b.add(ScatterNd(), b.constant(np.int32([[1], [1]])), ones, b.add(Pack(0), more, number(b, 4))),
        b.add(ScatterNd(), upwards, rows, b.add(Pack(0), more, number(b, 4))),
        b.add(
            ScatterNd(),
            b.constant(np.int32([[1, 0], [0, 1]])),
            b.constant(np.float32([2, 3])),
            b.add(Pack(0), more, more),
        ),
    ]


def _elements_put(b: Builder, x: int, n: int, rows: int) -> list[int]:
    first, known = column_of(b, rows), column_of(b, x, 1)
    twice = b.add(Concat(0), rows, rows)
    columns = b.add(
        Cast(DType.INT32), b.add(Binary(BinaryKind.MUL), b.add(Unary(UnaryKind.ABS), rows), b.constant(np.float32(3.9)))
    )
    return [
        b.add(ScatterElements(), known, _places(b, n), first),
        b.add(
            ScatterElements(0, Combination.ADD),
            twice,
            b.constant(np.int32([[1, 0], [0, 1]])),
            b.constant(np.float32([[1, 2], [3, 4]])),
        ),
        b.add(ScatterElements(1, Combination.ADD), rows, columns, rows),
        b.add(ScatterElements(1, Combination.MUL), x, columns, rows),
    ]


def _largest(b: Builder, x: int, n: int, rows: int) -> list[int]:
    """Of each selected row, a constant and a computed number of elements; of a computed number of columns, one."""
    some = b.add_many(TopK(), rows, number(b, 2))
    asked = b.add_many(TopK(DType.INT64), rows, b.add(Binary(BinaryKind.MINIMUM), n, number(b, 3)))
    columns = b.add(Transpose(), b.add(Concat(0), rows, rows), row_of(b, 1, 0))
    least = b.add_many(TopK(least=True), rows, number(b, 2))
    return [*some, *asked, *least, *b.add_many(TopK(), columns, b.add(Binary(BinaryKind.MINIMUM), n, number(b, 1)))]


def _found_again(b: Builder, x: int, column: int = 0) -> int:
    """The places in a column, read backwards, that hold more than 0: counted apart from the rows, and up to 9."""
    above = b.add(Comparison(ComparisonKind.GREATER), column_of(b, x, column), b.constant(np.float32(0)))
    return b.add(Where(), b.add(Concat(0), b.add(Reverse(), above, row_of(b, 0)), b.constant(np.zeros(3, np.bool_))))


def _rows_counted_apart(b: Builder, x: int, n: int, rows: int) -> list[int]:
    places = _found_again(b, x)
    flat = b.add(Reshape(), places, row_of(b, -1))
    return [
        b.add(ScatterSlices(), x, places, rows),
        b.add(ScatterNd(), places, rows, b.constant(np.int64([6, 4]))),
        b.add(ScatterElements(), column_of(b, x, 1), flat, column_of(b, rows)),
    ]


WRITTEN: dict[str, Write] = {
    "rows": _rows_put,
    "rows counted apart": _rows_counted_apart,
    "sums": _sums_put,
    "elements": _elements_put,
    "largest": _largest,
}
LEAST = {"rows": 2, "elements": 1}
"""The smallest number of rows for which all indices exist."""


@pytest.mark.parametrize("name", WRITTEN)
def test_scatters_and_top_k_of_a_computed_size_are_native(name: str) -> None:
    check_native(WRITTEN[name], range(LEAST.get(name, 0), 7))


def _beyond(b: Builder, x: int, n: int, rows: int) -> list[int]:
    return [b.add(ScatterSlices(), rows, b.constant(np.int32([[2]])), b.constant(np.ones((1, 4), np.float32)))]


def _beyond_sums(b: Builder, x: int, n: int, rows: int) -> list[int]:
    ones = b.constant(np.ones((1, 4), np.float32))
    return [b.add(ScatterNd(), b.constant(np.int32([[2]])), ones, b.add(Pack(0), n, number(b, 4)))]


def _beyond_elements(b: Builder, x: int, n: int, rows: int) -> list[int]:
    return [b.add(ScatterElements(), column_of(b, rows), row_of(b, 2), b.constant(np.ones(1, np.float32)))]


def _no_picture(b: Builder, x: int, n: int, rows: int) -> list[int]:
    picture = b.add(ExpandDims(), b.add(ExpandDims(), x, number(b, 0)), number(b, 3))
    less = b.add(Binary(BinaryKind.SUB), n, number(b, 2))
    return [b.add(ResizeBilinear(), picture, b.add(Pack(0), less, less))]


@pytest.mark.parametrize("write", [_beyond, _beyond_sums, _beyond_elements, _no_picture])
def test_indices_beyond_a_computed_size_are_rejected(write: Write) -> None:
    program = onert.compile(package_of(write), num_threads=1)
    assert evaluated(program) <= {FirstEntries, Copy}
    execution = onert.Execution(program)
    for count in range(7):
        if count > 2:
            execution.run([rows_given(count)])
            continue
        with pytest.raises(onert.ExecutionError):
            execution.run([rows_given(count)])


def _other_rows(b: Builder, x: int, n: int, rows: int) -> list[int]:
    return [b.add(ScatterSlices(), x, _found_again(b, x), b.constant(np.ones((4, 4), np.float32)))]


def _other_elements(b: Builder, x: int, n: int, rows: int) -> list[int]:
    return [b.add(ScatterElements(), column_of(b, x), row_of(b, 3, 1, 0, 2), column_of(b, rows))]


def _other_sums(b: Builder, x: int, n: int, rows: int) -> list[int]:
    return [b.add(ScatterNd(), _found_again(b, x, 2), rows, b.constant(np.int64([6, 4])))]


@pytest.mark.parametrize("write", [_other_rows, _other_elements, _other_sums])
def test_as_many_updates_as_indices_are_put_natively_and_other_numbers_are_refused(write: Write) -> None:
    program = onert.compile(package_of(write), num_threads=1)
    assert evaluated(program) <= {FirstEntries, Copy}
    execution, expected = (
        onert.Execution(program),
        onert.Execution(onert.compile(package_of(write), backends=("reference",))),
    )
    equal = int((rows_given(0)[:, 2] > 0).sum()) if write is _other_sums else 4
    for count in range(7):
        if count == equal:
            (found,), (theirs,) = (each.run([rows_given(count)]).values() for each in (execution, expected))
            np.testing.assert_array_equal(found, theirs, strict=True)
            continue
        for each in (execution, expected):
            with pytest.raises(onert.ExecutionError):
                each.run([rows_given(count)])
