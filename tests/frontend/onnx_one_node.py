"""ONNX models of one node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from .onnx_domain_cases import LEARNING, MICROSOFT, Constant

onnx = pytest.importorskip("onnx", reason="the package onnx writes the models")


def one_node_model(
    domain: str,
    name: str,
    inputs: tuple[Any, ...],
    attributes: dict[str, Any],
    results: int | Sequence[int],
    open_axes: Mapping[int, Sequence[int]] | None = None,
) -> tuple[bytes, dict[str, Any]]:
    """One node, and its inputs by name; those marked `Constant` are stored in the model.

    `results` is their number, or the numbers of those that are used. `open_axes` are the axes of some inputs, by
    number, whose size the model does not say.
    """
    h = onnx.helper
    given = {f"x{at}": x for at, x in enumerate(inputs) if x is not None}
    feed = {n: np.asarray(x) for n, x in given.items() if not isinstance(x, Constant)}
    stored = [onnx.numpy_helper.from_array(x.array, n) for n, x in given.items() if isinstance(x, Constant)]
    used = range(results) if isinstance(results, int) else results
    outputs = [f"y{at}" if at in used else "" for at in range(max(used) + 1)]
    names = ["" if x is None else f"x{at}" for at, x in enumerate(inputs)]
    node = h.make_node(name, names, outputs, domain=domain, **attributes)
    ends = []
    for n, x in feed.items():
        unknown = (open_axes or {}).get(int(n[1:]), ())
        shape = [f"{n}_{axis}" if axis in unknown else size for axis, size in enumerate(x.shape)]
        ends.append(h.make_tensor_value_info(n, h.np_dtype_to_tensor_dtype(x.dtype), shape))
    graph = h.make_graph([node], "one", ends, [onnx.ValueInfoProto(name=o) for o in outputs if o], stored)
    own = 17 if domain else 9  # the last opset for which ONNX Runtime has the operators that ONNX withdrew
    opsets = [h.make_opsetid("", own), h.make_opsetid(MICROSOFT, 1), h.make_opsetid(LEARNING, 3)]
    return h.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString(), feed
