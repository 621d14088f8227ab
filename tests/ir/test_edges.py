"""Single lines of operations that their cases do not reach."""

from __future__ import annotations

import os.path
from pprint import pprint
from typing import Any

import numpy as np
import pytest

from onert.ir import CallTypes, DType, ModelError, Quantization, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.contraction.conv3d import Conv3D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.control_flow.control import _unchanged
from onert.ir.ops.control_flow.sequences import _place
from onert.ir.ops.data_movement.part_update import broken_rule
from onert.ir.ops.lookup.ngrams import CountGroups, Weighting
from onert.ir.ops.reduction.unpool import MaxPoolWithIndices
from onert.ir.ops.stablehlo.with_bodies import HloSort
from onert.ir.ops.vision_audio.detection import NonMaxSuppression
from onert.ir.ops.vision_audio.interpolate import Interpolate, Interpolation
from onert.ir.process.later import later

F32 = DType.FLOAT32


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ([1.0, 2.0], [1.0, 2.0], True),
        ([1.0, 2.0], [1.0, 3.0], False),
        ([1.0, 2.0], [0.0, 2.0], False),
        ([1.0, 2.0], [2.0, 1.0], False),
        ([0.0], [-0.0], False),
        ([np.nan], [np.nan], True),
    ],
)
def test_a_state_is_unchanged_only_if_every_bit_is(before: list[float], after: list[float], same: bool) -> None:
    assert _unchanged([np.float32(before)], [np.float32(after)]) is same


@pytest.mark.parametrize(("at", "behind", "found"), [(-1, False, 4), (-5, False, 0), (-3, True, 2), (5, True, 5)])
def test_a_negative_position_counts_from_the_end(at: int, behind: bool, found: int) -> None:
    assert _place(np.array(at), 5, behind=behind) == found


def test_errors_of_updates_call_a_part_of_one_entry_an_index() -> None:
    assert broken_rule(1, 0, 5).format(7) == "index 7 is outside of dimension 0 of 5"
    assert broken_rule(3, 1, 5).format(7) == "3 entries from 7 on are not within dimension 1 of 5"


def test_flops_of_a_3d_convolution_count_one_filter_for_each_output() -> None:
    x, weight, result = ((1, 4, 4, 4, 2), (3, 2, 2, 2, 5), (1, 2, 3, 3, 5))
    types = CallTypes((TensorType(F32, x), TensorType(F32, weight)), (TensorType(F32, result),))
    assert Conv3D().flops(types) == 2 * (2 * 3 * 3 * 5) * (3 * 2 * 2 * 2)


@pytest.mark.parametrize("padding", [Padding.SAME, Padding.VALID])
def test_max_pool_with_indices_gives_one_value_and_index_per_window(padding: Padding) -> None:
    op = MaxPoolWithIndices(2, 3, padding, 1, 2)
    x = np.arange(84, dtype=np.float32).reshape(1, 4, 7, 3)
    largest, places = op.evaluate(x)
    types = op.infer(TensorType(F32, x.shape))
    assert largest.shape == places.shape == types[0].shape == types[1].shape
    np.testing.assert_array_equal(x.reshape(-1)[places], largest)


@pytest.mark.parametrize("columns", [(0,), (0, 1, 2), (0, -1), (0, 1 << 24)])
def test_every_group_of_words_needs_one_column(columns: tuple[int, ...]) -> None:
    op = CountGroups(Weighting.TF, 1, 1, 0, (0,), columns, (3, 5))
    b = Builder()
    with pytest.raises(ModelError, match=f"there are {len(columns)} columns for 2 groups"):
        b.add(op, b.input(TensorType(DType.INT32, (4,)), "x"))


def test_a_negative_number_of_boxes_is_rejected() -> None:
    b = Builder()
    boxes, scores = b.input(TensorType(F32, (6, 4)), "boxes"), b.input(TensorType(F32, (6,)), "scores")
    half = b.constant(np.float32(0.5))
    for most in (b.constant(np.int32(0)), b.input(TensorType(DType.INT32, ()), "most")):
        assert b.add_many(NonMaxSuppression(), boxes, scores, most, half, half)
    with pytest.raises(ModelError, match="max_output_size is -1, expected at least 0"):
        b.add_many(NonMaxSuppression(), boxes, scores, b.constant(np.int32(-1)), half, half)


def test_a_lazy_name_is_the_module_itself_unless_the_module_has_that_attribute() -> None:
    get = later("made", {"path": "os.path", "sep": "os.path", "pprint": "pprint"})
    assert get("path") is os.path
    assert get("sep") == os.path.sep
    assert get("pprint") is pprint
    with pytest.raises(AttributeError, match="module 'made' has no attribute 'gone'"):
        get("gone")


def test_a_blockwise_quantised_layer_takes_one_round_per_block_of_a_row() -> None:
    blocks = Quantization((0.5,) * 12, (0,) * 12, 1, 32)
    weight = TensorType(DType.INT8, (6, 64), blocks)
    types = CallTypes((TensorType(F32, (2, 64)), weight), (TensorType(F32, (2, 6)),))
    assert FullyConnected().rounds(types) == 2
    plain = CallTypes((TensorType(F32, (2, 64)), TensorType(F32, (6, 64))), types.outputs)
    assert FullyConnected().rounds(plain) == 0


@pytest.mark.parametrize(("descending", "order"), [(False, [1, 2, 0, 3]), (True, [0, 3, 2, 1])])
def test_tensors_are_sorted_by_the_first_one(descending: bool, order: list[int]) -> None:
    rows = [np.float32([3, 1, 2, 3]), np.float32([9, 8, 0, 1])]
    context: Any = None  # not used by any comparison here
    assert list(HloSort(body=1, dimension=0, descending=descending)._order(context, rows)) == order


def test_elements_outside_the_filter_of_an_interpolated_position_have_weight_zero() -> None:
    _, shares = Interpolate(Interpolation.LINEAR, (1,), antialias=True)._taps(np.array([0.0, 1.3, 7.9]), 0.4)
    assert shares.min() == 0
    np.testing.assert_allclose(shares.sum(axis=1), 1)
