"""Nodes of com.microsoft for parallel branches of features, hashes of words, and routing to experts."""

from __future__ import annotations

from typing import Any

import numpy as np

from .onnx_domain_cases import floats

_DRAW = np.random.default_rng(7)
_X, _ROWS, _BLOCK = floats(2, 5, 3, 8), floats(2, 5, 24), floats(2, 5, 8)
_FLAT = {"num_branches": 3}
_GATES, _MATRIX = floats(2, 5, 3), floats(2, 5, 3, 3)
_OUTER = dict.fromkeys(range(4), (0, 1))
_KEYS = (_X, floats(2, 5, 3, 8), _BLOCK, floats(3, 8), floats(3, 8))

_WORDS = _DRAW.integers(0, 9, (2, 7))
_TABLES = (np.int64([3, 5, 1 << 40 | 7]), np.int64([97, 101, 89, 103]))
_BEFORE, _OFFSETS = _DRAW.integers(0, 9, (2, 2)), np.int64([0, 100, 200, 300])
_SEGMENTS = np.int32([[0, 0, 1, 1, 1, 2, 2], [0, 0, 0, 0, 0, 0, 1]])
_NGRAMS = {"pad_id": 7, "n_head_per_ngram": 2, "max_ngram_size": 3}
_WORD_AXES = {0: (0, 1), 3: (0,), 6: (0, 1)}

_SCORES, _BIAS = floats(6, 12), floats(12)
_GROUPS = {"top_k": 3, "n_group": 4, "topk_group": 2, "group_topk": 2}

BRANCHES: list[Any] = [
    *(
        ("BranchwiseRMSNorm", inputs, attributes, 1, {0: (0, 1)})
        for inputs, attributes in (
            ((_X,), {}),
            ((_X, floats(3, 8)), {"epsilon": 0.1}),
            ((_ROWS, floats(24)), _FLAT),
            ((_ROWS, floats(8)), _FLAT),
        )
    ),
    *(
        ("HyperConnectionPreMix", inputs, attributes, 1, _OUTER)
        for inputs, attributes in (
            ((_X, _GATES), {}),
            ((_X, floats(2, 5, 3, 8)), {"reduction_scale": 0.5}),
            ((_ROWS, floats(2, 5, 24)), _FLAT),
            ((_ROWS, floats(2, 5, 3, 1)), _FLAT),
        )
    ),
    *(
        ("HyperConnectionPostMix", inputs, attributes, 1, _OUTER)
        for inputs, attributes in (
            ((_X, _BLOCK, _GATES), {}),
            ((_X, _BLOCK, floats(2, 5, 3, 8), _MATRIX), {}),
            ((_ROWS, _BLOCK, _GATES, _MATRIX), _FLAT),
        )
    ),
    ("EngramGate", _KEYS, {}, 1, dict.fromkeys(range(3), (0, 1))),
    ("EngramGate", (*_KEYS, floats(3, 8)), {"epsilon": 0.1}, 2, dict.fromkeys(range(3), (0, 1))),
    *(
        ("NGramHashMapping", inputs, {**_NGRAMS, **attributes}, 2, _WORD_AXES)
        for inputs, attributes in (
            ((_WORDS, *_TABLES), {}),
            ((_WORDS - 4, *_TABLES, _BEFORE, _OFFSETS, np.int64(3)), {}),
            ((_WORDS, *_TABLES, _BEFORE, None, np.int64(3)), {"reset_on_eos": 1}),
            ((_WORDS, *_TABLES, _BEFORE, None, np.int64(3), _SEGMENTS), {"reset_on_eos": 1}),
            ((_WORDS, *_TABLES, None, None, None, _SEGMENTS), {}),
            (tuple(x.astype(np.int32) for x in (_WORDS, _TABLES[0] * 99999, _TABLES[1], _BEFORE)), {}),
        )
    ),
    ("MoEGroupRouter", (_SCORES, _BIAS), _GROUPS, 1, {0: (0,)}),
    ("MoEGroupRouter", (floats(2, 3, 12), _BIAS), {"top_k": 3, "router_sentinel": -7.0}, 1, {0: (0, 1)}),
    ("MoEGroupRouter", (_SCORES, _BIAS), {**_GROUPS, "top_k": 8}, 1, {0: (0,)}),
    ("MoEGroupRouter", (floats(6, 256), _BIAS, floats(12, 256)), {"top_k": 3}, (1, 2), {0: (0,)}),
]

UNFIT: dict[str, Any] = {
    "branches of a vector": ("BranchwiseRMSNorm", (floats(8),), {}, 1, "the input is f32[8], expected branches and"),
    "number of branches": (
        "BranchwiseRMSNorm",
        (_ROWS,),
        {"num_branches": 5},
        1,
        "the input is f32[2, 5, 24], expected a multiple of 5 features",
    ),
    "scale of branches": ("BranchwiseRMSNorm", (_X, floats(3)), {}, 1, "expected [8], [3, 8] or [24]"),
    "gate of branches": (
        "HyperConnectionPreMix",
        (_X, floats(2, 5, 4)),
        {},
        1,
        "the gate is f32[2, 5, 4], expected [2, 5, 3]",
    ),
    "gate of another batch": ("HyperConnectionPreMix", (_X, floats(1, 5, 3)), {}, 1, "expected [2, 5, 3]"),
    "flat gate of branches": ("HyperConnectionPostMix", (_ROWS, _BLOCK, _ROWS), _FLAT, 1, "expected [2, 5, 3]"),
    "features": (
        "HyperConnectionPostMix",
        (_X, floats(2, 5, 1), _GATES),
        {},
        1,
        "the added tensor is f32[2, 5, 1], expected [2, 5, 8]",
    ),
    "matrix": ("HyperConnectionPostMix", (_X, _BLOCK, _GATES, floats(3, 3)), {}, 1, "expected [2, 5, 3, 3]"),
    "query": ("EngramGate", (_X, _X[:1], *_KEYS[2:]), {}, 1, "the query is f32[1, 5, 3, 8], expected [2, 5, 3, 8]"),
    "value": ("EngramGate", (_X, _X, _BLOCK[:, :, :1], *_KEYS[3:]), {}, 1, "the value is f32[2, 5, 1]"),
    "scale of a gate's key": ("EngramGate", (*_KEYS[:4], floats(8)), {}, 1, "a scale is f32[8], expected [3, 8]"),
    "length of n-grams": (
        "NGramHashMapping",
        (_WORDS, *_TABLES),
        {**_NGRAMS, "max_ngram_size": 1},
        1,
        "max_ngram_size is 1 with 2 heads",
    ),
    "multipliers": (
        "NGramHashMapping",
        (_WORDS, _TABLES[0][:2], _TABLES[1]),
        _NGRAMS,
        1,
        "the tensor of multipliers is i64[2], expected at least 3 elements",
    ),
    "sizes of tables": (
        "NGramHashMapping",
        (_WORDS, *_TABLES),
        {**_NGRAMS, "n_head_per_ngram": 1 << 40},
        1,
        "the tensor of sizes is i64[4]",
    ),
    "words before": (
        "NGramHashMapping",
        (_WORDS, *_TABLES, _BEFORE[:, :1]),
        _NGRAMS,
        1,
        "the tensor of words before is i64[2, 1], expected [2, 2]",
    ),
    "offsets of tables": (
        "NGramHashMapping",
        (_WORDS, *_TABLES, None, _OFFSETS[:2]),
        _NGRAMS,
        1,
        "the tensor of offsets is i64[2], expected [4]",
    ),
    "end of a text": (
        "NGramHashMapping",
        (_WORDS, *_TABLES, None, None, np.int64([1, 2])),
        _NGRAMS,
        1,
        "the end of a text is i64[2], expected []",
    ),
    "segments": (
        "NGramHashMapping",
        (_WORDS, *_TABLES, None, None, None, _SEGMENTS[:1]),
        _NGRAMS,
        1,
        "the tensor of segments is i32[1, 7], expected [2, 7]",
    ),
    "number of experts": ("MoEGroupRouter", (_SCORES, _BIAS), {"top_k": 30}, 1, "selects 30 of 12 experts in 1 of 1"),
    "number of groups": ("MoEGroupRouter", (_SCORES, _BIAS), {**_GROUPS, "n_group": 5}, 1, "in 2 of 5 groups"),
    "experts of a group": ("MoEGroupRouter", (_SCORES, _BIAS), {**_GROUPS, "group_topk": 0}, 1, "group_topk is 0"),
    "bias of experts": ("MoEGroupRouter", (_SCORES, _BIAS[:5]), _GROUPS, 1, "the bias is f32[5], expected [12]"),
    "both kinds of shares": ("MoEGroupRouter", (_SCORES, _BIAS), {"top_k": 3}, 3, "expected one of these"),
    "all shares of groups": ("MoEGroupRouter", (_SCORES, _BIAS), _GROUPS, (1, 2), "in 4 groups, expected 1"),
    "projection of the best": (
        "MoEGroupRouter",
        (_SCORES, _BIAS, floats(12, 12)),
        _GROUPS,
        1,
        "which only the shares of all experts may have",
    ),
    "projection": (
        "MoEGroupRouter",
        (_SCORES, _BIAS, floats(12, 8)),
        {"top_k": 3},
        (1, 2),
        "the tensor of weights is f32[12, 8], expected [any, 12]",
    ),
}
