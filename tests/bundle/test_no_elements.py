"""Operations that read or produce empty tensors need no code but run natively, also in bundles."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import onert
from onert.backend import EvaluatingKernel
from onert.ir import DType, Package, Quantization, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.data_movement.joining import Concat, SplitV
from onert.ir.ops.data_movement.slicing import Pad, Slice
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.convert import Dequantize, Quantize
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.reduce import Reduce, Reduction

from .machines import needs_compiler

BYTES = Quantization((0.1,), (3,))


def _package() -> Package:
    """Operations on tensors without rows or with empty rows, derived from x `[4, 3]`, also combined with x itself."""
    b = Builder("main")
    x = b.input(TensorType(DType.FLOAT32, (4, 3)), "x")

    def integers(*values: object) -> int:
        return b.constant(np.array(values, np.int32))

    none, thin = (b.add(Slice(), x, integers(1, 0), integers(*size)) for size in ((0, 3), (3, 0)))
    shifted = b.add(Binary(BinaryKind.ADD), b.add(Unary(UnaryKind.EXP), none), b.constant(np.ones(3, np.float32)))
    stored = b.add(Quantize(DType.INT8), none, quantization=(BYTES,))
    bent = b.add(
        Unary(UnaryKind.TANH), b.add(Unary(UnaryKind.ABS), stored, quantization=(BYTES,)), quantization=(BYTES,)
    )
    results = (
        none,
        shifted,
        b.add(Dequantize(), bent),
        b.add(Concat(0), b.add(Unary(UnaryKind.NEG), x), shifted),
        b.add(Pad(), none, integers([1, 1], [0, 0])),
        *b.add_many(SplitV(2), x, integers(4, 0), integers(0)),
        b.add(Gather(0), x, b.constant(np.zeros(0, np.int32))),
        b.add(BatchMatMul(), none, b.constant(np.ones((3, 5), np.float32))),
        b.add(BatchMatMul(), thin, b.constant(np.ones((0, 5), np.float32))),
        b.add(Reduce(Reduction.SUM), thin, integers(1)),
        b.add(Reduce(Reduction.SUM), none, integers(1)),
    )
    return Package((b.model(results),), "nothing")


@needs_compiler
def test_operations_on_empty_tensors_are_native_in_process_and_in_bundles(tmp_path: Path) -> None:
    inputs = [np.arange(12, dtype=np.float32).reshape(4, 3)]
    wanted = onert.Execution(onert.compile(_package(), backends=("reference",))).run(inputs)
    program = onert.compile(_package())
    assert not any(isinstance(step.kernel, EvaluatingKernel) for step in program.main.steps)
    onert.bundle(program, tmp_path)
    for found in (onert.Execution(program).run(inputs), onert.load_bundle(tmp_path).run(inputs)):
        assert [array.shape for array in found.values()] == [array.shape for array in wanted.values()]
        for mine, theirs in zip(found.values(), wanted.values(), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-6)
