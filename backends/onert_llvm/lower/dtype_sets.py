"""Sets of element types that lowering asks for in several places."""

from __future__ import annotations

from onert.ir import DType

BYTES = (DType.INT8, DType.UINT8)
"""The types of one byte that quantised activations have."""
