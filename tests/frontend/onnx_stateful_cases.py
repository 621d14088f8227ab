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
]

REFUSED: dict[str, Any] = {
    "convolution of a plane": ("CausalConvWithState", (_X, _FILTERS), {"ndim": 2}, 2, "ndim is 2, expected 1"),
    "states of several steps": (
        "CausalConvWithState",
        (_X, _FILTERS),
        {"state_window": 3},
        2,
        "state_window is 3, expected 0: others are for GPUs only",
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
}
