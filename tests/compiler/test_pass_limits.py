"""What passes leave alone: graphs that resemble those they rewrite but have another meaning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onert.compiler.passes.fuse_padding import fuse_padding
from onert.compiler.passes.fuse_update_row import fuse_update_row
from onert.compiler.passes.layout.merge_blocks import merge_blocks
from onert.compiler.rewrite.edit import only_user
from onert.ir import DType, Quantization, Subgraph, TensorType
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.data_movement.joining import Concat, Pack
from onert.ir.ops.data_movement.layout import SpaceToDepth, Transpose
from onert.ir.ops.data_movement.slicing import Pad, Slice
from onert.ir.ops.elementwise.binary import Binary, BinaryKind

from .toy import Draft, ToyAdd, ToyScale

INTEGER = TensorType(DType.INT32)


def ints(*values: Any) -> Any:
    return np.array(values, np.int32)


# ---- margins


def margined(
    margins: list[list[int]], weight: Any = None, quantization: Quantization | None = None, value: int | None = None
) -> Subgraph:
    """A pad of an image of 8 by 8 pixels and 2 channels, followed by a convolution with stride 2."""
    d = Draft()
    stored = DType.INT8 if quantization is not None else DType.FLOAT32
    x = d.quantized_input(stored, quantization, 1, 8, 8, 2)
    like = TensorType(stored, (), quantization)
    values = [] if value is None else [d.constant(np.array(value, stored.numpy))]
    padded = d.op(Pad(), x, d.constant(ints(*margins)), *values, like=like)
    if weight is None:
        channels = 2 + sum(margins[3])
        kind = np.int8 if quantization is not None else np.float32
        weight = d.constant(np.ones((3, 3, 3, channels), kind), Quantization((0.1,), (0,)) if quantization else None)
    else:
        weight = d.constant(weight, Quantization((0.1,), (0,)))
    result = TensorType(stored, (), quantization)
    return d.graph(d.op(Conv2D(stride_height=2, stride_width=2), padded, weight, like=result))


LIKE_SAME = [[0, 0], [0, 1], [0, 1], [0, 0]]
Q = Quantization((0.5,), (3,))


@pytest.mark.parametrize(
    ("graph", "fused"),
    [
        (margined(LIKE_SAME), True),
        (margined([[0, 0], [1, 0], [1, 0], [0, 0]]), True),
        (margined([[0, 0], [0, 1], [0, 1], [0, 1]]), False),
        (margined([[0, 0], [0, 1], [0, 1], [1, 0]]), False),
        (margined([[0, 1], [0, 1], [0, 1], [0, 0]]), False),
        (margined(LIKE_SAME, np.ones((3, 3, 3, 2), np.int8)), False),  # the input is quantised including its margins
        (margined(LIKE_SAME, quantization=Q), True),
        (margined(LIKE_SAME, quantization=Q, value=3), True),
        (margined(LIKE_SAME, quantization=Q, value=0), False),
    ],
)
def test_only_zero_margins_of_the_spatial_axes_are_fused(graph: Subgraph, fused: bool) -> None:
    assert (fuse_padding(graph) is not graph) is fused


# ---- rows of lists


def setting(kind: BinaryKind = BinaryKind.ADD, step: int = 1, other: bool = False, axis: int = 0) -> Subgraph:
    """Concatenates a list's rows before i, a row, and the rows from `i kind step` on, of the list or of another."""
    d = Draft()
    x, second = d.input(5, 3, name="x"), d.input(5, 3, name="second")
    i, row = d.input(dtype=DType.INT32, name="i"), d.input(1, 3, name="row")
    minus, zero, one = (d.constant(np.array(v, np.int32)) for v in (-1, 0, step))
    before = d.op(Slice(), x, d.constant(ints(0, 0)), d.op(Pack(0), i, minus, like=INTEGER))
    start = d.op(Pack(0), d.op(Binary(kind), i, one, like=INTEGER), zero, like=INTEGER)
    after = d.op(Slice(), second if other else x, start, d.constant(ints(-1, -1)))
    return d.graph(d.op(Concat(axis), before, row, after))


@pytest.mark.parametrize(
    ("graph", "becomes_put"),
    [
        (setting(), True),
        (setting(BinaryKind.SUB), False),
        (setting(BinaryKind.MUL), False),
        (setting(step=2), False),
        (setting(other=True), False),
        (setting(axis=1), False),
    ],
)
def test_only_a_row_between_its_neighbours_of_the_same_list_becomes_put_row(graph: Subgraph, becomes_put: bool) -> None:
    assert ("PutRow" in [o.op.name() for o in fuse_update_row(graph).operations]) is becomes_put


# ---- blocks


def _scaled(channels: int, axis: int) -> Quantization:
    return Quantization(tuple(0.1 * (1 + i % 3) for i in range(channels)), (0,) * channels, axis)


@pytest.mark.parametrize("per_channel", [False, True])
def test_blocks_whose_channels_have_scales_are_not_merged(per_channel: bool) -> None:
    d = Draft()
    one = Quantization((0.1,), (0,))
    few, many = (_scaled(3, 1), _scaled(12, 1)) if per_channel else (one, one)
    x = d.quantized_input(DType.INT8, few, 1, 3, 4, 16)
    turned = TensorType(DType.INT8, (), _scaled(3, 3) if per_channel else one)
    deep = TensorType(DType.INT8, (), _scaled(12, 3) if per_channel else one)
    blocks = d.op(SpaceToDepth(2), d.op(Transpose(), x, d.constant(ints(0, 2, 3, 1)), like=turned), like=deep)
    back = d.op(Transpose(), blocks, d.constant(ints(0, 3, 1, 2)), like=TensorType(DType.INT8, (), many))
    graph = d.graph(back)
    assert (merge_blocks(graph) is graph) is per_channel


# ---- readers


def test_an_operand_that_one_operation_reads_twice_has_no_only_user() -> None:
    d = Draft()
    x = d.input(4)
    once, twice, kept, shared = (d.op(ToyScale(float(f)), x) for f in range(4))
    first = d.op(ToyScale(5.0), once)
    graph = d.graph(first, d.op(ToyAdd(), twice, twice), kept, d.op(ToyAdd(), shared, kept), d.op(ToyScale(), shared))
    assert only_user(graph, once) == 4
    assert [only_user(graph, operand) for operand in (twice, kept, shared)] == [None] * 3
