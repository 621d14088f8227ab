"""3-D convolutions processed part by part, with a residual."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest

from onert.ir import DType, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.contraction.conv3d import Conv3D
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert_llvm.lower.contraction.spatial import conv3d
from onert_llvm.target.isa import Isa, runnable

from .natively import check, natively


@pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
@pytest.mark.parametrize("op", [Conv3D(Padding.SAME), Conv3D(Padding.SAME, 2, 1, 2, 2), Conv3D(Padding.VALID)])
def test_volumes_processed_in_parts_match_their_definition(isa: Isa, op: Conv3D) -> None:
    rng, b = np.random.default_rng(1), Builder("volume")
    x = rng.normal(size=(2, 7, 6, 5, 8)).astype(np.float32)
    weight = b.constant(rng.normal(size=(3, 3, 3, 8, 20)).astype(np.float32))
    made = b.add(op, b.input(TensorType(DType.FLOAT32, x.shape)), weight, b.constant(np.ones(20, np.float32)))
    graph = b.subgraph([b.add(Binary(BinaryKind.ADD), made, b.input(b.type(made)))])
    inputs = [x, rng.normal(size=b.type(made).shape).astype(np.float32)]
    with patch.object(conv3d, "_MOST_BYTES", 2 * 6 * 5 * 24 * 4):
        check(graph, inputs, isa, 1e-5, threads=2)
        np.testing.assert_array_equal(natively(graph, inputs, isa, 3), natively(graph, inputs, isa, 1))
