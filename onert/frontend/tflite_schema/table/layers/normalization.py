"""Normalisations and batched matrix products."""

from __future__ import annotations

from onert.frontend.tflite_schema.table.importer import Table, other_result, read
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.reduction.norm import InstanceNorm, L2Normalization, LocalResponseNormalization, RmsNorm

TABLE: Table = {
    "BATCH_MATMUL": read(BatchMatMul, output=other_result),
    "INSTANCE_NORM": read(InstanceNorm, epsilon=lambda operator: operator.number("epsilon") or 1e-5),
    "L2_NORMALIZATION": read(L2Normalization),
    "LOCAL_RESPONSE_NORMALIZATION": read(LocalResponseNormalization),
    "RMS_NORM": read(RmsNorm, epsilon=lambda operator: operator.number("epsilon") or 1e-6),
}
"""An epsilon of 0 means the default, as in ONE's loader."""
CUSTOM: Table = {}
