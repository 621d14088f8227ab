"""Byte convolutions whose groups are copied apart first equal their definition bit for bit, on every target."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import frozen
from cases.case import Case

from onert.ir import Quantization, Subgraph
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.window import Margins, Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert_llvm.target.isa import Isa, runnable

from .harness import Array
from .natively import check, kernels, subgraph_of

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
SAME, TWICE = Conv2D(Padding.SAME), Conv2D(Padding.SAME, 2, 2, activation=Activation.RELU6)


@frozen
class Groups:
    """A convolution of `groups` groups with `inputs` channels and `outputs` filters each."""

    groups: int
    inputs: int
    outputs: int
    window: tuple[int, int] = (3, 3)
    op: Conv2D = TWICE
    images: int = 1
    apart: bool = True


LAYERS = {
    "a register each": Groups(3, 8, 8, (5, 5), SAME),
    "half a register each": Groups(6, 4, 4),
    "an eighth of a register, an odd number of channels": Groups(16, 3, 1, op=SAME),
    "one and a half registers": Groups(4, 5, 12),
    "two registers": Groups(2, 12, 16),
    "three registers": Groups(2, 16, 24, (2, 3)),
    "five registers, an odd number of channels": Groups(3, 7, 40),
    "several images": Groups(4, 8, 8, images=3),
    "dilated down": Groups(3, 4, 8, (3, 2), Conv2D(Padding.VALID, 1, 2, 2, 1)),
    "margins on two sides": Groups(3, 4, 8, op=Conv2D(Margins(((0, 2), (5, 0))))),
    "dilated across": Groups(3, 8, 8, op=Conv2D(Padding.SAME, 1, 1, 1, 2), apart=False),
    "an uneven number of groups": Groups(5, 4, 4, apart=False),
}


def layer(made: Groups, dtype: str) -> tuple[Subgraph, list[Array]]:
    """The convolution with constant weights of 8 bits and a bias, and its input."""
    rng, channels, n = np.random.default_rng(made.groups), made.groups * made.inputs, made.groups * made.outputs
    shape = made.images, 7, 6, channels
    scales = tuple(float(s) for s in rng.uniform(0.001, 0.01, n).astype(np.float32))
    weights = rng.integers(-127, 128, (n, *made.window, made.inputs)).astype(np.int8)
    filters, bias = Quantization(scales, (0,) * n, 0), rng.normal(size=n).astype(np.float32)
    if dtype == "float32":
        x = rng.normal(size=shape).astype(np.float32)
        case = Case("", made.op, (x, weights, bias), quantization=(None, filters, None), constant=(1, 2))
        return subgraph_of(case), [x]
    limits = np.iinfo(dtype)
    zero = 3 if limits.min else 130
    x = rng.integers(limits.min, limits.max + 1, shape).astype(dtype)
    sums = Quantization(tuple(s / 32 for s in scales), (0,) * n, 0)
    case = Case(
        "",
        made.op,
        (x, weights, np.rint(bias * 300).astype(np.int32)),
        quantization=(Quantization((1 / 32,), (zero,)), filters, sums),
        result_quantization=(Quantization((0.05,), (zero,)),),
        constant=(1, 2),
    )
    return subgraph_of(case), [x]


@ISAS
@pytest.mark.parametrize("dtype", ["int8", "uint8", "float32"])
@pytest.mark.parametrize("name", LAYERS)
def test_grouped_byte_convolutions_match_their_definition(isa: Isa, dtype: str, name: str) -> None:
    graph, inputs = layer(LAYERS[name], dtype)
    for threads in (1, 3):
        check(graph, inputs, isa, threads=threads)


@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize("name", LAYERS)
def test_targets_that_widen_bytes_compute_all_groups_by_one_product(dtype: str, name: str) -> None:
    made = LAYERS[name]
    graph, _ = layer(made, dtype)
    for isa in runnable():
        if isa.widens_bytes and isa.f32 == 8:
            assert kernels(graph, isa)["group_conv_int8"] == made.images * made.apart
