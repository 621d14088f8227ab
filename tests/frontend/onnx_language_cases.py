"""Nodes of com.microsoft in language models without a recurrent state."""

from __future__ import annotations

from typing import Any

import numpy as np

from .onnx_domain_cases import floats

_DRAW = np.random.default_rng(5)
_POSITIONS = _DRAW.integers(0, 20, (3, 2, 5))
_ANGLES = floats(20, 8)
_TURNS = (np.cos(_ANGLES), np.sin(_ANGLES))
_PARTIAL = (np.cos(_ANGLES[:, :4]), np.sin(_ANGLES[:, :4]))
_HEADS = floats(2, 3, 5, 16)
_BATCH_AND_TOKENS = {0: (0, 2), 1: (1, 2)}

_TOKEN = tuple(floats(2, 1, 12) for _ in range(3))
_CACHES, _OTHERS = (floats(2, 3, 8, 4), floats(2, 3, 8, 4)), (floats(2, 3, 7, 4), floats(2, 3, 7, 4))
_COUNT = np.int32([5])
_SEEN = np.int32([[1, 0, 1, 1, 0, 1], [1, 1, 1, 0, 1, 1]])
_ORIGINS = _DRAW.integers(0, 2, (1, 2, 8)).astype(np.int32)
_SHARED = {"num_heads": 3, "past_present_share_buffer": 1}
_TOKEN_AXES = dict.fromkeys(range(3), (0,)) | {3: (0, 1), 4: (3,), 5: (0, 2), 6: (0, 2), 9: (0, 2)}

LANGUAGE: list[Any] = [
    *(
        ("MRotaryEmbedding", (x, _POSITIONS, *tables), attributes, 1, open_axes)
        for x, tables, attributes, open_axes in (
            (_HEADS, _TURNS, {"mrope_section": [4, 2, 2]}, _BATCH_AND_TOKENS),
            (_HEADS, _TURNS, {"mrope_section": [0, 8, 0], "interleaved": 1, "scale": 2.0}, _BATCH_AND_TOKENS),
            (_HEADS, _TURNS, {"mrope_section": [2, 2, 4], "mrope_layout": 1}, _BATCH_AND_TOKENS),
            (
                floats(2, 5, 48),
                _PARTIAL,
                {"mrope_section": [2, 1, 1], "num_heads": 3, "rotary_embedding_dim": 8},
                {0: (0, 1), 1: (1, 2)},
            ),
        )
    ),
    *(
        ("DecoderMaskedMultiHeadAttention", (*_TOKEN, mask, bias, *_CACHES, _COUNT, *more), attributes, 3, _TOKEN_AXES)
        for mask, bias, more, attributes in (
            (None, None, (), _SHARED),
            (_SEEN, None, (), {**_SHARED, "mask_filter_value": -5.0}),
            (None, floats(1, 3, 1, 6), (None, None, floats(36)), {**_SHARED, "scale": 0.3}),
            (_SEEN, None, (np.int32([2]), _ORIGINS), _SHARED),
        )
    ),
    *(
        ("DecoderMaskedMultiHeadAttention", inputs, {"num_heads": 3}, 1, _TOKEN_AXES)
        for inputs in (
            _TOKEN,
            (_TOKEN[0], *_OTHERS),
            (_TOKEN[0], *_OTHERS, np.ones((2, 7), np.int32), *[None] * 6, floats(36)),
        )
    ),
]

_MASKED = "DecoderMaskedMultiHeadAttention"
_MROPE = ("MRotaryEmbedding", (_HEADS, _POSITIONS, *_TURNS))
MISFITS: dict[str, Any] = {
    "sections of features": (
        *_MROPE,
        {"mrope_section": [4, 2, 1]},
        1,
        "mrope_section is [4, 2, 1], expected 3 numbers",
    ),
    "layout of features": (
        *_MROPE,
        {"mrope_section": [4, 2, 2], "mrope_layout": 2},
        1,
        "mrope_layout is 2, expected 0 or 1",
    ),
    "positions": (
        "MRotaryEmbedding",
        (_HEADS, _POSITIONS[:2], *_TURNS),
        {"mrope_section": [4, 2, 2]},
        1,
        "the tensor of positions is i64[2, 2, 5], expected [3, 2, 5]",
    ),
    "angles": (
        "MRotaryEmbedding",
        (_HEADS, _POSITIONS, _TURNS[0], _TURNS[1][:7]),
        {"mrope_section": [4, 2, 2]},
        1,
        "a table of angles is f32[7, 8], expected [20, 8]",
    ),
    "packed keys": (_MASKED, _TOKEN[:1], {"num_heads": 3}, 1, "has no key or value"),
    "two tokens": (_MASKED, (floats(2, 2, 12), *_TOKEN[1:]), {"num_heads": 3}, 1, "expected [any, 1, any]"),
    "a cache that grows": (
        _MASKED,
        (*_TOKEN, None, None, *_CACHES),
        {"num_heads": 3},
        3,
        "past_present_share_buffer is 0 but there is a cache",
    ),
    "a cache of wider values": (
        _MASKED,
        (*_TOKEN, None, None, _CACHES[0], floats(2, 3, 8, 6), _COUNT),
        _SHARED,
        3,
        "the cache of values is f32[2, 3, 8, 6], expected [2, 3, 8, 4]",
    ),
    "a mask of other keys": (
        _MASKED,
        (_TOKEN[0], *_OTHERS, _SEEN),
        {"num_heads": 3},
        1,
        "the mask is i32[2, 6], expected [2, 7]",
    ),
    "beams of fewer tokens": (
        _MASKED,
        (*_TOKEN, None, None, *_CACHES, _COUNT, None, _ORIGINS[:, :, :5]),
        _SHARED,
        3,
        "the tensor of beams is i32[1, 2, 5], expected [any, 2, 8]",
    ),
    "scores of a cache": (
        _MASKED,
        (*_TOKEN, None, None, *_CACHES, _COUNT),
        _SHARED,
        4,
        "returns the scores of a cache (output 3)",
    ),
}
