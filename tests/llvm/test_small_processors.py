"""Code generated for processors with word-size registers, run on this machine: byte products and single steps.

Code that uses such processors' own instructions runs under emulation (`tests/bundle/test_boards.py`).
"""

from __future__ import annotations

from itertools import chain

import pytest
from attrs import evolve

from onert.ir import DType
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.depthwise import DepthwiseConv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert_llvm.target.isa import Products, runnable

from .natively import assert_close, evaluated, natively_legalized, subgraph_of
from .test_cases import FAMILIES, cases_of, variants

SMALL = evolve(runnable()[0], doubles=False, small=True, products=Products.BYTES)
BYTES = (DType.INT8, DType.UINT8)
LAYERS = [
    case
    for family in FAMILIES
    for case in cases_of(family)
    if isinstance(case.op, Conv2D | DepthwiseConv2D | FullyConnected)
    and case.input_types(known=False)[0].dtype in BYTES  # type: ignore[union-attr]
]


def test_int8_layers_match_their_definition(subtests: pytest.Subtests) -> None:
    for name, case, constant, decomposed in chain(*map(variants, LAYERS)):
        with subtests.test(name):
            subgraph = subgraph_of(case, constant)
            inputs = [a for i, a in enumerate(case.inputs) if a is not None and i not in constant]
            assert_close(natively_legalized(decomposed, inputs, SMALL), evaluated(subgraph, inputs))
