"""Nodes of com.microsoft: image regions, text, unique elements, inverses, gates, 4-bit codes; withdrawn operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from .onnx_domain_cases import LEARNING, MICROSOFT, Constant, floats, octets

_REGIONS = np.float32([[0, 0, 1, 1], [0.2, 0.1, 0.7, 0.9], [-0.2, 0.5, 0.6, 1.3], [0.9, 0.8, 0.1, 0.2]])
_OF_FOUR_BITS = {"K": 40, "N": 3, "bits": 4, "block_size": 16}
_PACKED, _SCALES = Constant(octets(3, 3, 8)), Constant(np.abs(floats(9)))
_BLOCKS = Constant(np.int32([at * 7 % 48 // 16 for at in range(48)]))
_MAGNITUDES = Constant(np.abs(floats(8)))
_CODES = {"K": 24, "N": 5, "block_size": 16}
_MARKED = {"mark": 1, "pad_value": "#", "mincharnum": 1}
_LINES = np.array(["hello world", "", "  to  be ", "äöü ß日本"], object)
_PICTURES = np.int32([0, 1, 1, 0])
_ONE_SCORE = {"coefficients": [1.0, -2.0, 0.5], "intercepts": [0.1]}
_WORDS = np.int64([[1, 2, 3, 1, 2, 4, 1, 2], [5, 5, 5, 5, 5, 5, 5, 5]])

_SHUFFLED = (
    Constant(octets(5, 2, 16)),
    Constant(floats(10)),
    None,
    Constant(np.random.default_rng(3).permutation(np.arange(64, dtype=np.int32) // 32)),
)
"""Two blocks whose rows are interleaved."""


def _of_bits(
    bits: int, zeros: bool, level: int, rows: int = 96, block: int = 32
) -> tuple[str, str, tuple[Any, ...], dict[str, Any], int]:
    """MatMulNBits with six columns of blocks, three by default, at an accuracy level."""
    blocks = -(-rows // block)
    more = (Constant(octets(6 * -(-blocks * bits // 8))),) if zeros else ()
    inputs = (floats(3, rows), Constant(octets(6, blocks, block * bits // 8)), Constant(floats(6 * blocks)), *more)
    return (
        MICROSOFT,
        "MatMulNBits",
        inputs,
        {"K": rows, "N": 6, "bits": bits, "block_size": block, "accuracy_level": level},
        1,
    )


SELECTED: list[tuple[str, str, tuple[Any, ...], dict[str, Any], int]] = [
    (MICROSOFT, "CropAndResize", (floats(2, 3, 5, 6), _REGIONS, _PICTURES, Constant(np.int32([4, 3]))), {}, 1),
    (
        MICROSOFT,
        "CropAndResize",
        (floats(2, 3, 5, 6), _REGIONS, _PICTURES, Constant(np.int32([3, 1]))),
        {"mode": "nearest", "extrapolation_value": 7.0},
        1,
    ),
    (MICROSOFT, "GatedRMSNorm", (floats(2, 3, 8), floats(8), floats(2, 3, 8)), {"epsilon": 0.01}, 1),
    (MICROSOFT, "GatedRMSNorm", (floats(3, 8), floats(4), floats(3, 8)), {"activation": "sigmoid"}, 1),
    (MICROSOFT, "Inverse", (floats(3, 4, 4),), {}, 1),
    *(
        (MICROSOFT, "MatMulNBits", (floats(2, 40), _PACKED, _SCALES, zeros, _BLOCKS), _OF_FOUR_BITS, 1)
        for zeros in (None, Constant(8 * floats(9)))
    ),
    (MICROSOFT, "MurmurHash3", (np.array([["", "a"], ["some words", "grün"]], object),), {"positive": 0, "seed": 3}, 1),
    *((MICROSOFT, "MurmurHash3", (floats(2, 3).astype(kind),), {}, 1) for kind in (np.float32, np.float64, np.int32)),
    (MICROSOFT, "NGramRepeatBlock", (_WORDS, floats(2, 7)), {"ngram_size": 3}, 1),
    *(_of_bits(bits, zeros, level) for bits in (2, 4, 8) for zeros in (False, True) for level in (0, 4)),
    *(_of_bits(bits, False, level, rows=72) for bits in (2, 4, 8) for level in (0, 4)),
    *(_of_bits(2, False, 4, rows=256, block=block) for block in (16, 64, 128, 256)),
    (MICROSOFT, "MatMulNBits", (floats(2, 3, 64), *_SHUFFLED), {"K": 64, "N": 5, "block_size": 32}, 1),
    (MICROSOFT, "NGramRepeatBlock", (_WORDS, floats(2, 7)), {"ngram_size": 1}, 1),
    (MICROSOFT, "NGramRepeatBlock", (_WORDS, floats(2, 7)), {"ngram_size": 9}, 1),
    (MICROSOFT, "Unique", (np.float32([2, 1, 1, 3, 4, 3]),), {}, 3),
    *(
        (MICROSOFT, "Tokenizer", (_LINES,), {**_MARKED, **attributes}, 1)
        for attributes in (
            {"separators": [" "]},
            {"separators": ["o", " +"], "mincharnum": 2, "mark": 0},
            {"separators": [""]},
            {"separators": ["l*"]},
            {"separators": ["l", ""]},
            {"tokenexp": "."},
            {"tokenexp": "l|ll|[a-z]*"},
            {"tokenexp": "(l)(o)", "mark": 0},
            {"tokenexp": "never"},
            {"tokenexp": "l", "separators": [r"\bw"]},
        )
    ),
    (MICROSOFT, "Tokenizer", (_LINES.reshape(2, 2),), {**_MARKED, "separators": [" "]}, 1),
    *(
        (MICROSOFT, "MatMulBnb4", (floats(3, 24), Constant(octets(60)), _MAGNITUDES), {**_CODES, "quant_type": kind}, 1)
        for kind in (0, 1)
    ),
    *(
        (LEARNING, "LinearClassifier", (floats(9, 3),), {**_ONE_SCORE, "post_transform": after, **named}, 2)
        for after in ("NONE", "LOGISTIC", "SOFTMAX")
        for named in ({}, {"classlabels_ints": [0, 1]}, {"classlabels_strings": ["no", "yes"]})
    ),
    ("", "Affine", (floats(2, 3),), {"alpha": 2.0, "beta": -0.5}, 1),
    ("", "Crop", (floats(1, 2, 6, 7),), {"border": [1, 2, 3, 1]}, 1),
    ("", "Crop", (floats(1, 2, 6, 7),), {"border": [1, 2, 0, 0], "scale": [3, 4]}, 1),
    ("", "ImageScaler", (floats(2, 3, 4, 5),), {"scale": 0.5, "bias": [1.0, -2.0, 0.25]}, 1),
    ("", "ParametricSoftplus", (floats(2, 3),), {"alpha": 2.0, "beta": 0.5}, 1),
    ("", "Scale", (floats(2, 3),), {"scale": 3.0}, 1),
    ("", "ScaledTanh", (floats(2, 3),), {"alpha": 2.0, "beta": 0.5}, 1),
    ("", "DynamicSlice", (floats(4, 5), np.int64([1]), np.int64([-1]), np.int64([1])), {}, 1),
]

_NBITS = (MICROSOFT, "MatMulNBits")
_X = floats(2, 40)


def _bnb4(packed: Any, **attributes: int) -> tuple[Any, ...]:
    return (MICROSOFT, "MatMulBnb4", (floats(3, 24), Constant(packed), _MAGNITUDES), {**_CODES, **attributes})


MISFITS: dict[str, tuple[Any, ...]] = {
    "weights that are floats": (
        *_NBITS,
        (_X, Constant(floats(3, 3, 8)), _SCALES),
        _OF_FOUR_BITS,
        "the weights (input 1) is f32[3, 3, 8], expected bytes",
    ),
    "too few weights": (*_NBITS, (_X, Constant(octets(3, 2, 8)), _SCALES), _OF_FOUR_BITS, "expected 72 elements"),
    "too few scales": (*_NBITS, (_X, _PACKED, Constant(np.float32(1))), _OF_FOUR_BITS, "expected 9 elements"),
    "no zero points": (*_NBITS, (_X, _PACKED, _SCALES, Constant(octets(0))), _OF_FOUR_BITS, "expected 6 elements"),
    "zero points that are words": (
        *_NBITS,
        (_X, _PACKED, _SCALES, Constant(np.array(["a"] * 6, object))),
        _OF_FOUR_BITS,
        "expected bytes",
    ),
    "no blocks of rows": (
        *_NBITS,
        (_X, _PACKED, _SCALES, None, Constant(np.int32([]))),
        _OF_FOUR_BITS,
        "has the blocks of 0 rows, expected 40 or 48",
    ),
    "blocks of rows that are floats": (
        *_NBITS,
        (_X, _PACKED, _SCALES, None, Constant(floats(48))),
        _OF_FOUR_BITS,
        "the blocks of rows (input 4) is f32[48], expected integers",
    ),
    "blocks of rows that are truths": (
        *_NBITS,
        (_X, _PACKED, _SCALES, None, Constant(np.ones(48, np.bool_))),
        _OF_FOUR_BITS,
        "expected integers",
    ),
    "a block that is not there": (
        *_NBITS,
        (_X, _PACKED, _SCALES, None, Constant(np.full(48, 3, np.int32))),
        _OF_FOUR_BITS,
        "rows are in blocks 3 to 3, expected 0 to 2",
    ),
    "half a byte": (*_NBITS, (_X, _PACKED, _SCALES), {**_OF_FOUR_BITS, "block_size": 1}, "4 bits in blocks of 1"),
    "codes that are words": (*_bnb4(octets(60).astype(np.int32)), "the weights (input 1) is i32[60], expected bytes"),
    "a block beyond all memory": (*_bnb4(octets(60), block_size=1 << 40), "expected 1 elements"),
}
