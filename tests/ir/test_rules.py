"""Rules about axes, indices, windows and shapes, at the limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onert.ir import Array, CallTypes, Constant, DType, Op, RuleError, TensorType, evaluate, infer
from onert.ir.analysis.inference import shapes_ok
from onert.ir.analysis.model_inference import join
from onert.ir.content import Content, InMemory
from onert.ir.ops.arithmetic.window import Padding, Window
from onert.ir.ops.data_movement.gather import Gather, GatherNd
from onert.ir.ops.data_movement.slicing import Mirror, MirrorPad, Slice, StridedSlice
from onert.ir.shape import Shape, broadcast, normalize_axis


def type_of(array: Array) -> TensorType:
    return TensorType(DType.from_numpy(array.dtype), array.shape, data=Constant(array))


def computed(op: Op, *arrays: Array) -> Array:
    types = tuple(type_of(a) for a in arrays)
    results = infer(op, types)
    assert results is not None
    (found,) = evaluate(op, arrays, CallTypes(types, results))
    assert found.shape == results[0].shape
    return found


ROW = np.arange(5, dtype=np.int32)


def ints(*values: Any) -> Array:
    return np.array(values, np.int32)


REJECTED: dict[str, tuple[Op, list[Array]]] = {
    "an index after the last": (Gather(), [ROW, ints(5)]),
    "an index before the first": (Gather(), [ROW, ints(-1)]),
    "indices after the last": (GatherNd(), [ROW, ints([5])]),
    "an axis after the last": (Gather(1), [ROW, ints(0)]),
    "a slice that begins after the end": (Slice(), [ROW, ints(6), ints(-1)]),
    "a slice that ends after the end": (Slice(), [ROW, ints(4), ints(2)]),
    "a shrunk index after the last": (StridedSlice(shrink_axis_mask=1), [ROW, ints(5), ints(6), ints(1)]),
    "a reflected margin as wide as the whole": (MirrorPad(), [ROW, ints([5, 0])]),
    "a repeated margin wider than the whole": (MirrorPad(Mirror.SYMMETRIC), [ROW, ints([0, 6])]),
}


@pytest.mark.parametrize(("op", "arrays"), REJECTED.values(), ids=REJECTED.keys())
def test_one_beyond_the_limit_is_rejected(op: Op, arrays: list[Array]) -> None:
    if not isinstance(op, GatherNd):  # its indices are checked at run time
        with pytest.raises(RuleError):
            infer(op, tuple(type_of(a) for a in arrays))
    types = CallTypes(tuple(type_of(a) for a in arrays), (TensorType(DType.INT32, (1,)),))
    with pytest.raises(RuleError):
        evaluate(op, arrays, types)


ALLOWED: dict[str, tuple[Op, list[Array], list[int]]] = {
    "the last index": (Gather(), [ROW, ints(4)], [4]),
    "a slice of nothing at the end": (Slice(), [ROW, ints(5), ints(-1)], []),
    "a slice up to the end": (Slice(), [ROW, ints(3), ints(2)], [3, 4]),
    "a reflected margin": (MirrorPad(), [ROW, ints([4, 0])], [4, 3, 2, 1, 0, 1, 2, 3, 4]),
    "a repeated margin": (MirrorPad(Mirror.SYMMETRIC), [ROW, ints([0, 5])], [0, 1, 2, 3, 4, 4, 3, 2, 1, 0]),
}


@pytest.mark.parametrize(("op", "arrays", "expected"), ALLOWED.values(), ids=ALLOWED.keys())
def test_the_limit_itself_is_allowed(op: Op, arrays: list[Array], expected: list[int]) -> None:
    assert computed(op, *arrays).tolist() == expected


@pytest.mark.parametrize(
    ("begin_mask", "begin", "stride", "expected"),
    [(0, 2, 1, 2), (0, -1, 1, 4), (1, 2, 1, 0), (1, 4, 1, 0), (0, 3, -1, 3), (1, 3, -1, 3)],
)
def test_a_masked_begin_of_a_shrunk_axis_is_the_first_index(
    begin_mask: int, begin: int, stride: int, expected: int
) -> None:
    op = StridedSlice(begin_mask=begin_mask, shrink_axis_mask=1)
    assert computed(op, ROW, ints(begin), ints(begin + stride), ints(stride)).tolist() == expected


@pytest.mark.parametrize(
    ("inputs", "size", "stride", "dilation", "outputs"),
    [
        (5, 5, 1, 1, 1), (5, 6, 1, 1, 0), (5, 7, 1, 1, None), (5, 6, 2, 1, 0), (5, 7, 2, 1, 0), (5, 8, 2, 1, 0),
        (5, 9, 2, 1, None), (5, 3, 3, 2, 1), (4, 3, 3, 2, 0), (1, 3, 2, 2, None), (2, 3, 2, 2, 0),
    ],
)  # fmt: skip
def test_a_window_slightly_too_large_gives_no_outputs_and_a_larger_one_is_rejected(
    inputs: int, size: int, stride: int, dilation: int, outputs: int | None
) -> None:
    # C's division of `inputs - extent + stride` by the stride truncates a negative quotient to 0.
    window = Window(size, stride, dilation, Padding.VALID)
    if outputs is None:
        with pytest.raises(RuleError, match="is larger than the"):
            window.outputs(inputs)
    else:
        assert window.outputs(inputs) == outputs


@pytest.mark.parametrize(("axis", "rank", "found"), [(0, 1, 0), (-1, 1, 0), (2, 3, 2), (-3, 3, 0)])
def test_axes_are_counted_from_either_end(axis: int, rank: int, found: int) -> None:
    assert normalize_axis(axis, rank) == found
    for outside in (rank, -rank - 1):
        with pytest.raises(RuleError):
            normalize_axis(outside, rank)


@pytest.mark.parametrize(
    ("a", "b", "shape"),
    [((None,), (3,), (3,)), ((None,), (1,), (None,)), ((None,), (None,), (None,)), ((2, 1), (None, 5), (2, 5))],
)
def test_an_unknown_dimension_broadcasts_to_the_other_one(a: Shape, b: Shape, shape: Shape) -> None:
    assert broadcast([a, b]) == broadcast([b, a]) == shape


@pytest.mark.parametrize("shape", [(0, 1 << 41), (1 << 21, 1 << 21), (1,) * 17, (-1,)])
def test_invalid_shapes_are_rejected(shape: tuple[int, ...]) -> None:
    with pytest.raises(RuleError):
        shapes_ok(TensorType(DType.INT8, shape))


def test_dimensions_that_differ_between_calls_are_unknown() -> None:
    a, b = (TensorType(DType.INT8, shape) for shape in ((2, 3, None), (2, 4, 5)))
    assert join(a, b).shape == join(b, a).shape == (2, None, None)


# ---- constants and contents


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        (np.zeros(2), np.zeros(2), True), (np.array([0.0]), np.array([-0.0]), False),
        (np.array([np.nan]), np.array([np.nan]), True), (np.zeros((2, 3)), np.zeros((3, 2)), False),
        (np.zeros(1, np.int32), np.zeros(1, np.float32), False), (np.zeros(1), np.zeros((1, 1)), False),
        (np.array([b"a"], object), np.array([b"a"], object), True),
        (np.array([b"a"], object), np.array([b"b"], object), False),
    ],
)  # fmt: skip
def test_constants_are_equal_if_their_bits_types_and_shapes_are(a: Array, b: Array, equal: bool) -> None:
    assert (Constant(a) == Constant(b)) is equal


def content(data: bytes) -> Content:
    return Content(InMemory(data), lambda _: ())


@pytest.mark.parametrize("at", [0, 4095, 100_000 - 4096, 99_999])
def test_contents_that_differ_near_an_end_have_different_outlines(at: int) -> None:
    data = bytearray(100_000)
    first = content(bytes(data)).outline
    data[at] = 1
    assert content(bytes(data)).outline != first
    assert content(bytes(99_999)).outline != first


def test_contents_with_equal_outlines_have_different_digests() -> None:
    data = bytearray(100_000)
    first = content(bytes(data))
    data[50_000] = 1
    second = content(bytes(data))
    assert first.outline == second.outline
    assert first.digest != second.digest
