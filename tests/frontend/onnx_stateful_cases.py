"""Nodes of com.microsoft with a state as input and output: causal convolution and linear attention."""

from __future__ import annotations

from typing import Any

import numpy as np

from .onnx_domain_cases import floats

_BATCH_AND_PLACES = {0: (0, 2), 3: (0,)}
_BATCH_AND_ROWS = {0: (0, 1), 3: (0,)}
_X, _FILTERS, _BIAS, _PAST = floats(2, 6, 5), floats(6, 1, 4), floats(6), floats(2, 6, 3)


def _shares(*shape: int) -> Any:
    """Numbers between 0 and 1."""
    return 1 / (1 + np.exp(-floats(*shape)))


_Q, _K, _V, _STATE = floats(2, 5, 32), floats(2, 5, 16) / 4, floats(2, 5, 12), floats(2, 2, 8, 6)
_DECAY, _RATE = -_shares(2, 5, 2), _shares(2, 5, 2)
_HEADS = {"q_num_heads": 4, "kv_num_heads": 2}
_INVERSE = {"q_num_heads": 2, "kv_num_heads": 4}
_FLAT = (floats(10, 2, 8), floats(10, 2, 8) / 4, floats(10, 4, 6))
_BATCHED = tuple(x.reshape(2, 5, *x.shape[1:]) for x in _FLAT)
_PACKED = (np.concatenate([x.reshape(10, -1) for x in _FLAT], 1), None, None)
_TURNED, _GATES = floats(2, 4, 6, 8), (-_shares(10, 4), _shares(10, 4))
_BOUNDS = np.int32([0, 3, 10])
_ROWS, _STATES = floats(10, 6), floats(2, 6, 3)
_PACKED_AXES = {0: (0,), 2: (0,), 4: (0,)}
_FLAT_TOKENS = dict.fromkeys((0, 1, 2, 4, 5), (0,)) | {6: (0,)}
_SOFTPLUS = {"gate_activation": "softplus", "beta_activation": "sigmoid", "qk_l2_norm": 1}
_TOKENS = dict.fromkeys((0, 1, 2, 4, 5), (0, 1)) | {3: (0,)}

STATEFUL: list[Any] = [
    *(
        ("CausalConvWithState", inputs, attributes, 2, open_axes)
        for inputs, attributes, open_axes in (
            ((_X, _FILTERS), {}, _BATCH_AND_PLACES),
            ((_X, _FILTERS, _BIAS, _PAST), {"activation": "silu"}, _BATCH_AND_PLACES),
            ((_X, _FILTERS, None, floats(2, 6, 6)), {"activation": "swish", "dilation": 2}, _BATCH_AND_PLACES),
            ((_X, floats(6, 1, 1), _BIAS), {}, _BATCH_AND_PLACES),
            ((floats(2, 5, 6), _FILTERS, _BIAS, floats(2, 3, 6)), {"channels_last": 1}, _BATCH_AND_ROWS),
            ((floats(2, 5, 2, 3), _FILTERS, _BIAS), {"channels_last": 1, "activation": "silu"}, _BATCH_AND_ROWS),
        )
    ),
    *(
        ("LinearAttention", inputs, attributes, 2, _TOKENS)
        for inputs, attributes in (
            ((_Q, _K, _V), {**_HEADS, "update_rule": "linear"}),
            ((_Q, _K, _V, _STATE, _DECAY), {**_HEADS, "update_rule": "gated", "scale": 0.3}),
            ((_Q, _K, _V, _STATE, None, _shares(2, 5, 1)), {**_HEADS, "update_rule": "delta"}),
            ((_Q, _K, _V, _STATE, _DECAY, _RATE), _HEADS),
            ((_Q, _K, _V, None, -_shares(2, 5, 16), _RATE), _HEADS),
            ((floats(2, 1, 32), _K[:, :1], _V[:, :1], _STATE, _DECAY[:, :1], _RATE[:, :1]), _HEADS),
            (
                (_Q[:, :, :16], floats(2, 5, 32) / 4, floats(2, 5, 24), None, -_shares(2, 5, 4), _shares(2, 5, 4)),
                _INVERSE,
            ),
            ((_Q[:, :, :16], _K, floats(2, 5, 24)), {**_INVERSE, "update_rule": "linear"}),
        )
    ),
    ("LinearAttentionGate", (floats(2, 5, 4), floats(4), floats(4), floats(2, 5, 4)), {}, 2, {0: (0, 1), 3: (0, 1)}),
    ("LinearAttentionGate", (floats(5, 4) * 40, floats(4), floats(4)), {}, 1, {0: (0,)}),
    *(
        ("GatedDeltaNet", inputs, attributes, 2, _FLAT_TOKENS)
        for inputs, attributes in (
            ((*_FLAT, _BOUNDS, *_GATES, _TURNED), {}),
            ((*_FLAT, np.int32([0, 3, 3, 10]), *_GATES), {}),
            ((*_FLAT, None, *_GATES, _TURNED), {}),
            ((*_BATCHED, None, *(x.reshape(2, 5, 4) for x in _GATES)), {}),
            ((*_PACKED, None, *_GATES, _TURNED), {"scale": 0.3}),
            ((*_FLAT, None, None, _GATES[1], _TURNED), {"update_rule": "delta"}),
            ((*_FLAT, None, *_GATES, _TURNED, floats(4), floats(4)), _SOFTPLUS),
            (
                (*_FLAT, None, floats(10, 4, 8), _GATES[1], _TURNED, floats(4), floats(32)),
                {"gate_activation": "kda", "gate_lower_bound": -3.0},
            ),
        )
    ),
    *(
        ("VarlenCausalConvWithState", inputs, attributes, 2, _PACKED_AXES)
        for inputs, attributes in (
            ((_ROWS, _FILTERS, _BOUNDS, None, _STATES), {}),
            ((_ROWS, _FILTERS, np.int32([0, 1, 9, 10]), _BIAS, floats(3, 6, 6)), {"dilation": 2, "activation": "silu"}),
        )
    ),
]

_DELTA_NET = (*_FLAT, None, *_GATES, _TURNED)
REFUSED: dict[str, Any] = {
    "convolution of a plane": ("CausalConvWithState", (_X, _FILTERS), {"ndim": 2}, 2, "ndim is 2, expected 1"),
    "states of several steps": (
        "CausalConvWithState",
        (_X, _FILTERS),
        {"state_window": 3},
        2,
        "state_window is 3, expected 0: others are not supported",
    ),
    "dilation": ("CausalConvWithState", (_X, _FILTERS), {"dilation": 0}, 2, "dilation is 0 for 4 weights"),
    "wide dilation": ("CausalConvWithState", (_X, _FILTERS), {"dilation": 1 << 40}, 2, "expected at least 1, and at"),
    "activation": (
        "CausalConvWithState",
        (_X, _FILTERS),
        {"activation": "relu"},
        2,
        "activation is 'relu', expected none, silu or swish",
    ),
    "channels": ("CausalConvWithState", (_X, floats(5, 1, 4)), {}, 2, "the input is f32[2, 6, 5], expected 5 channels"),
    "several weights for an input": ("CausalConvWithState", (_X, floats(6, 2, 4)), {}, 2, "expected [6, 1, 4]"),
    "bias": ("CausalConvWithState", (_X, _FILTERS, floats(5)), {}, 2, "the bias is f32[5], expected [6]"),
    "convolution's state": (
        "CausalConvWithState",
        (_X, _FILTERS, _BIAS, floats(2, 6, 4)),
        {},
        2,
        "the state is f32[2, 6, 4], expected [2, 6, 3]",
    ),
    "update rule": ("LinearAttention", (_Q, _K, _V), {**_HEADS, "update_rule": "sum"}, 2, "update_rule is 'sum'"),
    "no decay": ("LinearAttention", (_Q, _K, _V), _HEADS, 2, "is 'gated_delta' but the decay (input 4) is absent"),
    "no rate": ("LinearAttention", (_Q, _K, _V, None, _DECAY), _HEADS, 2, "the update rate (input 5) is absent"),
    "wide decay": (
        "LinearAttention",
        (_Q, _K, _V, None, floats(2, 5, 6), _RATE),
        _HEADS,
        2,
        "the decay is f32[2, 5, 6], expected 2 or 16 features",
    ),
    "wide rate": (
        "LinearAttention",
        (_Q, _K, _V, None, _DECAY, floats(2, 5, 3)),
        _HEADS,
        2,
        "the update rate is f32[2, 5, 3], expected 1 or 2 features",
    ),
    "query heads": (
        "LinearAttention",
        (floats(2, 5, 24), _K, _V),
        {"q_num_heads": 3, "kv_num_heads": 2, "update_rule": "linear"},
        2,
        "3 query heads are not a multiple of 2 key and value heads",
    ),
    "key heads": (
        "LinearAttention",
        (floats(2, 5, 16), floats(2, 5, 24), floats(2, 5, 24)),
        {**_INVERSE, "update_rule": "linear"},
        2,
        "4 value heads are not a multiple of 3 key heads",
    ),
    "attention's state": (
        "LinearAttention",
        (_Q, _K, _V, floats(2, 2, 8, 5), _DECAY, _RATE),
        _HEADS,
        2,
        "the state is f32[2, 2, 8, 5], expected [2, 2, 8, 6]",
    ),
    "bias of a gate": (
        "LinearAttentionGate",
        (floats(2, 5, 4), floats(3), floats(4)),
        {},
        1,
        "the bias is f32[3], expected [4]",
    ),
    "scale of a gate": ("LinearAttentionGate", (floats(5, 4), floats(4), floats(1)), {}, 1, "the scale is f32[1]"),
    "projection of a rate": (
        "LinearAttentionGate",
        (floats(5, 4), floats(4), floats(4), floats(5, 1)),
        {},
        2,
        "the update rate's projection is f32[5, 1], expected [5, 4]",
    ),
    "lengths of batches": (
        "GatedDeltaNet",
        (*_BATCHED, _BOUNDS, *_GATES),
        {},
        2,
        "has the lengths of sequences (input 3) of f32[2, 5, 2, 8], expected 3 dimensions",
    ),
    "no lengths": ("GatedDeltaNet", (*_FLAT, np.int32([]), *_GATES), {}, 2, "the tensor of lengths is i32[0]"),
    "states of sequences": (
        "GatedDeltaNet",
        (*_FLAT, _BOUNDS, *_GATES, floats(3, 4, 6, 8)),
        {},
        2,
        "the state is f32[3, 4, 6, 8], expected [2, 4, 6, 8]",
    ),
    "convolution's states of sequences": (
        "VarlenCausalConvWithState",
        (_ROWS, _FILTERS, _BOUNDS, None, floats(3, 6, 3)),
        {},
        2,
        "the state is f32[3, 6, 3], expected [2, 6, 3]",
    ),
    "channels of sequences": (
        "VarlenCausalConvWithState",
        (_ROWS, floats(5, 1, 4), _BOUNDS, None, _STATES),
        {},
        2,
        "the input is f32[10, 6], expected [any, 5]",
    ),
    "weights that change": (
        "VarlenCausalConvWithState",
        (_ROWS, _FILTERS, _BOUNDS, None, _STATES, None, floats(10, 2, 6), floats(10, 1)),
        {},
        2,
        "has changes of weights (input 6), which is not supported",
    ),
    "number of sequences": ("GatedDeltaNet", (*_FLAT, None, *_GATES), {}, 2, "has neither lengths of sequences"),
    "captured states": (
        "GatedDeltaNet",
        _DELTA_NET,
        {"state_update_capacity": 2},
        2,
        "state_update_capacity is 2, expected 0",
    ),
    "unneeded rate": (
        "GatedDeltaNet",
        _DELTA_NET,
        {"update_rule": "gated"},
        2,
        "update_rule is 'gated' but the update rate (input 5) is given",
    ),
    "parameters of a decay": ("GatedDeltaNet", _DELTA_NET, _SOFTPLUS, 2, "its parameters (inputs 7 and 8) are absent"),
    "biases of a decay": (
        "GatedDeltaNet",
        (*_DELTA_NET, floats(4), floats(4, 8)),
        _SOFTPLUS,
        2,
        "the bias is f32[4, 8], expected [4]",
    ),
    "keys": (
        "GatedDeltaNet",
        (_FLAT[0], floats(10, 4, 8), *_DELTA_NET[2:]),
        {},
        2,
        "the key is f32[10, 4, 8], expected [any, 2, 8]",
    ),
    "packed features": (
        "GatedDeltaNet",
        (floats(10, 57), None, None, *_DELTA_NET[3:]),
        {},
        2,
        "the query is f32[10, 57], expected 24 features and a multiple of 16",
    ),
    "packed features without a state": (
        "GatedDeltaNet",
        (*_PACKED, None, *_GATES),
        {},
        2,
        "expected [tokens, features] and a state (input 6)",
    ),
    "turned state": (
        "GatedDeltaNet",
        (*_DELTA_NET[:6], floats(2, 4, 8, 6)),
        {},
        2,
        "the state is f32[2, 4, 8, 6], expected [2, 4, 6, 8]",
    ),
}
