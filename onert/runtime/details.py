"""The details of tensors as LiteRT's interpreter returns them: dictionaries with the same keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from onert.ir import DType, Operand, Subgraph

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
    per_tensor = q is not None and len(q.scales) == 1
    return {
        "name": operand.name,
        "index": index,
        "shape": np.array(now, np.int32),
        "shape_signature": np.array([-1 if d is None else d for d in declared], np.int32),
        "dtype": np.bytes_ if type_.dtype is DType.STRING else type_.dtype.numpy.type,
        "quantization": (q.scales[0], q.zero_points[0]) if q is not None and per_tensor else (0.0, 0),
        "quantization_parameters": {
            "scales": np.array(() if q is None else q.scales, np.float32),
            "zero_points": np.array(() if q is None else q.zero_points, np.int32),
            "quantized_dimension": 0 if q is None or q.axis is None else q.axis,
            "block_size": 0 if q is None or q.block_size is None else q.block_size,
        },
        "sparsity_parameters": {},
    }
