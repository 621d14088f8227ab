"""Operations on 8-bit integers run natively and equal the reference bit for bit.

Each case runs on a target in turn, in the long suite on all targets.
"""

from __future__ import annotations

import compute_trials as trials
import pytest
from cases.case import Case

from onert.ir import DType
from onert_llvm.target.isa import Isa, runnable

from .natively import check, subgraph_of, why_not

BYTES = (DType.INT8, DType.UINT8)


def _on_bytes(case: Case) -> bool:
    """Whether the first operand or some result is of 8-bit integers."""
    types = case.types()
    return any(t is not None and t.dtype in BYTES for t in (types.inputs[0], *types.outputs))


CASES = [case for make in (*trials.LAYERS, trials.resizes) for case in make() if _on_bytes(case)]
NOT_NATIVE = ("L2Normalization", "Reduce.PROD")


ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
HYBRID = [c for make in (trials.convolutions, trials.products) for c in make() if c.name.startswith("hybrid")]


@ISAS
@pytest.mark.parametrize("case", HYBRID, ids=lambda case: f"{case.op.label}: {case.name}")
def test_dynamic_range_operations_are_exact(case: Case, isa: Isa) -> None:
    subgraph = subgraph_of(case)
    inputs = [a for i, a in enumerate(case.inputs) if a is not None and i not in case.constant]
    check(subgraph, inputs, isa, tolerance=0.0)


def _may_be_left_to_the_reference(case: Case) -> bool:
    """Whether a case may lack a native form: some kinds, unscaled matrix products, and 16-bit results."""
    plain_sums = case.op.label == "BatchMatMul" and case.types().output.dtype is DType.INT32
    return plain_sums or case.op.label in NOT_NATIVE or case.types().output.dtype is DType.INT16


@ISAS
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.op.label}: {case.name}")
def test_byte_operations_equal_the_reference(case: Case, isa: Isa) -> None:
    subgraph = subgraph_of(case)
    if why_not(subgraph):
        assert _may_be_left_to_the_reference(case)
        return
    inputs = [a for i, a in enumerate(case.inputs) if a is not None and i not in case.constant]
    check(subgraph, inputs, isa)
