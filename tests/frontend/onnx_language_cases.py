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
]

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
}
