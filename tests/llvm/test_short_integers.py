"""Operations on 16-bit integers run natively and equal the reference bit for bit.

Each case runs on a target in turn, in the long suite on all targets.
"""

from __future__ import annotations

import compute_trials as trials
import numpy as np
import pytest
from attrs import evolve
from cases.case import Case
from compute_trials import per_tensor

from onert.ir import DType, Op
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.reduction.reduce import Reduce, Reduction
from onert_llvm.target.isa import Isa, runnable

from .natively import check, subgraph_of, why_not


def _short(case: Case) -> bool:
    """Whether some input is of 16-bit integers."""
    return any(t is not None and t.dtype is DType.INT16 for t in case.types().inputs)


CASES = [case for make in trials.LAYERS for case in make() if _short(case)]
NOT_NATIVE = ("Reduce.PROD",)
ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)


@ISAS
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.op.label}: {case.name}")
def test_int16_operations_equal_the_reference(case: Case, isa: Isa) -> None:
    subgraph = subgraph_of(case)
    if why_not(subgraph):
        scattered = case.op.label.startswith("Reduce.") and "(3, 1)" in case.name
        assert scattered or case.op.label in NOT_NATIVE
        return
    inputs = [a for i, a in enumerate(case.inputs) if a is not None and i not in case.constant]
    check(subgraph, inputs, isa)


FINE, COARSE = per_tensor(0.0005), per_tensor(0.9)


def _layer(op: Op, x: tuple[int, ...], weight: tuple[int, ...], n: int, largest: bool, bias: DType | None) -> Case:
    """A layer with random operands, or with extreme ones whose sums exceed 32 bits."""
    draw, scales = trials.Draw(f"{op} {x} {weight} {largest} {bias}"), trials.per_tensor(0.013)
    image, filters = (np.full(s, -(1 << 15), np.int16) for s in (x, weight))
    operands = [(image, FINE, DType.INT16), (filters.clip(-128).astype(np.int8), scales, DType.INT8)]
    if not largest:
        operands = [draw.between(np.int16, -32768, 32767, x, FINE), draw.between(np.int8, -128, 127, weight, scales)]
    if bias is not None:
        operands.append(draw.between(bias.numpy, -(2**31) + 1, 2**31 - 1, (n,), per_tensor(6.5e-6)))
    return trials.case("", op, operands, COARSE, 1, 2)


LAYERS = [
    (FullyConnected(), (3, 5000), (7, 5000)), (FullyConnected(), (9, 1001), (33, 1001)),
    (FullyConnected(), (1, 1), (1, 1)), (Conv2D(), (1, 3, 4, 1601), (18, 1, 1, 1601)),
    (Conv2D(Padding.SAME), (1, 5, 4, 333), (6, 3, 3, 333)), (Conv2D(Padding.SAME, 2, 2), (2, 9, 9, 3), (20, 7, 7, 3)),
    (Conv2D(Padding.VALID, 1, 2), (1, 12, 9, 1), (5, 10, 4, 1)), (Conv2D(), (1, 4, 4, 6), (4, 3, 3, 3)),
]  # fmt: skip


@ISAS
@pytest.mark.parametrize("bias", [None, DType.INT32, DType.INT64], ids=lambda b: "none" if b is None else b.text)
@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize(("op", "x", "weight"), LAYERS, ids=str)
def test_int16_layers_with_sums_of_any_size_are_exact(
    isa: Isa, op: Op, x: tuple[int, ...], weight: tuple[int, ...], largest: bool, bias: DType | None
) -> None:
    subgraph = subgraph_of(_layer(op, x, weight, weight[0], largest, bias))
    check(subgraph, [_layer(op, x, weight, weight[0], largest, bias).inputs[0]], isa, threads=2)


@ISAS
@pytest.mark.parametrize("bias", [DType.INT32, DType.INT64], ids=lambda b: b.text)
@pytest.mark.parametrize("channels", [(1, 5), (3, 12), (16, 16), (37, 37)])
def test_int16_depthwise_convolutions_may_have_any_multiplier(isa: Isa, bias: DType, channels: tuple[int, int]) -> None:
    op, x, weight = DepthwiseConv2D(Padding.SAME), (2, 7, 6, channels[0]), (1, 5, 3, channels[1])
    case = _layer(op, x, weight, channels[1], False, bias)
    case = evolve(case, inputs=(*case.inputs[:2], case.inputs[2] // 1000))
    check(subgraph_of(case), [case.inputs[0]], isa, threads=2)


def test_int16_layers_that_are_not_native_state_the_reason() -> None:
    depthwise = _layer(DepthwiseConv2D(), (1, 30, 30, 2), (1, 9, 9, 2), 2, False, None)
    assert why_not(subgraph_of(depthwise)) == "the window is too large to unroll"
    wide = _layer(FullyConnected(), (1, 40000), (1, 40000), 1, False, None)
    assert why_not(subgraph_of(wide)) == "its sums need more than 37 bits"


@ISAS
@pytest.mark.parametrize("kind", [Reduction.MEAN, Reduction.SUM, Reduction.MAX, Reduction.MIN], ids=lambda k: k.name)
@pytest.mark.parametrize("shape", [(1, 1), (2, 37), (70, 1000), (3, 4097)], ids=str)
@pytest.mark.parametrize("axis", [0, 1])
def test_int16_reductions_along_either_axis_are_exact(
    isa: Isa, kind: Reduction, shape: tuple[int, int], axis: int
) -> None:
    arithmetic = kind in (Reduction.MEAN, Reduction.SUM)
    x = trials.Draw(f"{kind} {shape} {axis}").stored(np.int16, shape, per_tensor(0.001, 0 if axis else 40))
    result = per_tensor(0.0013 if kind is Reduction.MEAN else 0.03) if arithmetic else x[1]
    given = (np.array([axis], np.int32), None, None)
    case = trials.case("", Reduce(kind), [x, given], result, 1)
    check(subgraph_of(case), [x[0]], isa, threads=2)
