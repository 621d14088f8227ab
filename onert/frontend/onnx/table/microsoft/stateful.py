"""Layers with a state as input and output: causal convolution and linear attention."""

from __future__ import annotations

from collections.abc import Mapping

from onert.frontend.onnx.node import Importer, Node, Results
from onert.frontend.onnx.table.layers.linear_attention import TABLE as ATTENTION
from onert.frontend.onnx.table.layers.stateful import TABLE as LAYERS
from onert.ir import ModelError

from . import DOMAIN

_STATE_EXTENSIONS = {
    "input_channel_offset": 0,
    "input_channels": 0,
    "ndim": 1,
    "state_channels_last": -1,
    "state_length": 0,
    "state_update_capacity": 0,
    "state_window": 0,
}


def _with_usual(importer: Importer, usual: Mapping[str, int]) -> Importer:
    """Another operator, some attributes of which must have the values for which ONNX Runtime has code for CPUs."""

    def build(node: Node) -> Results:
        for name, value in usual.items():
            given = node.integer(name, value)
            if given != value:
                raise ModelError(f"{name} is {given}, expected {value}: others are for GPUs only")
        return importer(node)

    return build


_IMPORTERS: dict[str, Importer] = {
    "CausalConvWithState": _with_usual(LAYERS["CausalConvWithState"], _STATE_EXTENSIONS),
    "LinearAttention": _with_usual(ATTENTION["LinearAttention"], {"state_window": 0}),
}
OTHERS = {(DOMAIN, name): importer for name, importer in _IMPORTERS.items()}
