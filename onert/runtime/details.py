"""The details of tensors as LiteRT's interpreter returns them: dictionaries with the same keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from onert.ir import Array, DType, Operand, Quantization, Subgraph

Details = dict[str, Any]
"""Keys: name, index, shape, shape_signature, dtype, quantization, quantization_parameters, sparsity_parameters."""


def tensor_indices(graph: Subgraph) -> list[int]:
    """The numbers of the file's tensors: all operands but the next values of state, which the loader adds."""
    added = {update.source for update in graph.state if graph.operands[update.source].name.endswith(":next")}
    return [i for i in range(len(graph.operands)) if i not in added]


def operand_details(index: int, operand: Operand, shape: Sequence[int] | None) -> Details:
    """The details of one tensor; `shape` is its current shape if it differs from the file's. As in LiteRT, unknown
    dimensions are 1 in `shape` and -1 in `shape_signature`."""
    type_, q = operand.type, operand.type.quantization
    declared = operand.signature_shape or type_.shape
    now = tuple(1 if d is None else d for d in type_.shape) if shape is None else tuple(shape)
    scales, zero_points, quantization, axis, block_size = _UNQUANTIZED if q is None else _quantized(q)
    return {
        "name": operand.name,
        "index": index,
        "shape": np.array(now, np.int32),
        "shape_signature": np.array([-1 if d is None else d for d in declared], np.int32),
        "dtype": np.bytes_ if type_.dtype is DType.STRING else type_.dtype.numpy.type,
        "quantization": quantization,
        "quantization_parameters": {
            "scales": scales.copy(),
            "zero_points": zero_points.copy(),
            "quantized_dimension": axis,
            "block_size": block_size,
        },
        "sparsity_parameters": {},
    }


_Quantized = tuple[Array, Array, tuple[float, int], int, int]
_UNQUANTIZED: _Quantized = np.zeros(0, np.float32), np.zeros(0, np.int32), (0.0, 0), 0, 0


def _quantized(q: Quantization) -> _Quantized:
    """Scales, zero points, both of a tensor with one scale, the axis of the scales, and their block size."""
    one = (q.scales[0], q.zero_points[0]) if len(q.scales) == 1 else (0.0, 0)
    return np.array(q.scales, np.float32), np.array(q.zero_points, np.int32), one, q.axis or 0, q.block_size or 0
