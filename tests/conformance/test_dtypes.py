"""Every operator matches a LiteRT kernel in every element type that LiteRT was seen to run it in.

Integers match exactly, except for one quantised function. Floats match to the last bit of the largest element.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from dtype_models import Kind, build
from dtype_recipes import RECIPES, Recipe, of
from model_writer import LiteRt
from shared_material import SHARED, needs_shared

import onert
from onert.ir import Array

PROBES = SHARED / "reference" / "tflite_ops.json"

UNSCALED = "integers without a scale stand for no real numbers; LiteRT computes with a scale of 0"
UNWRITTEN = "LiteRT leaves the result unwritten, or writes elements of half their size"
KNOWN: dict[tuple[str, str], str] = {
    **{
        (code, kind): UNSCALED
        for code, kinds in {
            "BATCH_MATMUL": ("int8", "int16"),
            "DEQUANTIZE": ("int8", "uint8", "int16"),
            "DIV": ("int8", "uint8", "int16"),
            "ELU": ("int8",),
            "EXP": ("int8", "int16"),
            "GELU": ("int8", "uint8", "int16"),
            "HARD_SWISH": ("int8", "uint8"),
            "LEAKY_RELU": ("int8", "uint8", "int16"),
            "MEAN": ("int8", "uint8", "int16"),
            "MUL": ("int8", "uint8"),
            "PRELU": ("int8", "uint8", "int16"),
            "RELU": ("int8", "uint8", "int16"),
            "RELU6": ("int8", "uint8", "int16"),
            "RELU_0_TO_1": ("int8", "uint8"),
            "RELU_N1_TO_1": ("int8", "uint8"),
            "SUM": ("int8", "uint8", "int16"),
            "TANH": ("int8", "uint8"),
        }.items()
        for kind in kinds
    },
    **{
        (code, kind): UNWRITTEN
        for code in ("MATRIX_DIAG", "MATRIX_SET_DIAG")
        for kind in ("float16", "bfloat16", "float64", "bool")
    },
    ("NOT_EQUAL", "int16"): "LiteRT leaves the result unwritten",
    ("PRELU", "int16q"): "LiteRT reads the alphas as if they were int8",
}
"""(Operator, element type) pairs that are not compared because LiteRT's output is not a valid result, with reasons."""


def _probed() -> list[tuple[str, str]]:
    """The (operator, element type) pairs that a LiteRT kernel ran; for CAST the type is a pair of types."""
    if not PROBES.is_file():
        return []
    found = []
    for op in json.loads(PROBES.read_text(encoding="utf-8"))["ops"]:
        kinds = dict.fromkeys([*(op.get("probed_ok") or ()), *(op.get("probed_ref_ok") or ())])
        found += [(op["name"], kind) for kind in kinds]
        found += [(op["name"], pair) for pair in op.get("probed_cast_pairs") or ()]
    return found


def _model(code: str, kind: str, draw: int = 0) -> tuple[bytes, list[Array]]:
    if code != "CAST":
        return build(code, Kind(kind), RECIPES[code], draw=draw)
    source, target = kind.split(">")
    role = "mask" if target == "bool" else "small"
    recipe = Recipe((of(3, 4, role=role),), (((3, 4), None),), ("CastOptions", {}))
    return build(code, Kind(source), recipe, Kind(target).dtype, draw)


OF_ONE_VALUE = ("FILL", "RANK", "ZEROS_LIKE")
"""Operators whose results have a single value."""
DRAWS = 10


def _varies(arrays: list[Array]) -> bool:
    """Whether no result is constant. Saturated or zeroed results would match whatever was computed."""
    return all((a != a.reshape(-1)[0]).any() for a in arrays)


UNITS = {("SQRT", "int16q"): 1}
"""Units by which quantised results may differ, because LiteRT interpolates in a table and we do not."""
NEAR = {"float16": 0.0, "bfloat16": 0.0, "float32": 2e-7, "float64": 0.0, "complex64": 2e-7}
"""Tolerance for floats, relative to the largest element."""
ROUNDED = {("GELU", "float16"): 1.2e-3}
"""Tolerances where LiteRT's kernel rounds intermediate values."""


def _agree(mine: Array, theirs: Array, slack: int, near: float) -> bool:
    if mine.dtype != theirs.dtype or mine.shape != theirs.shape:
        return False
    if mine.dtype.kind in "iu":
        return bool(np.all(np.abs(mine.astype(np.int64) - theirs.astype(np.int64)) <= slack))
    if mine.dtype.kind == "b":
        return bool(np.array_equal(mine, theirs))
    wide = np.complex128 if mine.dtype.kind == "c" else np.float64
    a, b = mine.astype(wide), theirs.astype(wide)
    scale = np.abs(b).max(initial=1e-30, where=np.isfinite(b))
    return bool(np.allclose(a, b, rtol=0, atol=near * scale, equal_nan=True))


def _litert(model: bytes, inputs: list[Array]) -> list[list[Array]]:
    """The results of each LiteRT kernel that runs the model."""
    found = []
    for resolver in ("BUILTIN_WITHOUT_DEFAULT_DELEGATES", "BUILTIN_REF"):
        try:
            found.append(LiteRt(model, resolver)(*inputs))
        except (RuntimeError, ValueError):
            continue
    return found


@needs_shared
@pytest.mark.parametrize(("code", "kind"), [pytest.param(c, k, id=f"{c} {k}") for c, k in _probed()])
def test_a_litert_kernel_agrees_with_both_backends(code: str, kind: str) -> None:
    if (code, kind) in KNOWN:
        pytest.skip(KNOWN[code, kind])
    for draw in range(DRAWS):
        model, inputs = _model(code, kind, draw)
        theirs = _litert(model, inputs)
        assert theirs, "neither kernel runs the model of the recipe"
        if code in OF_ONE_VALUE or any(_varies(found) for found in theirs):
            break
    else:
        pytest.fail(f"all elements of LiteRT's results are the same in each of {DRAWS} draws")
    for backends in ("reference",), ():
        program = onert.compile(onert.load(model), backends=backends)
        mine: list[Any] = list(onert.Execution(program).run(inputs).values())
        slack, near = UNITS.get((code, kind), 0), ROUNDED.get((code, kind), NEAR.get(mine[0].dtype.name, 0.0))
        assert any(all(_agree(a, b, slack, near) for a, b in zip(mine, found, strict=True)) for found in theirs), (
            backends,
            [a.tolist() for a in mine],
            [[b.tolist() for b in found] for found in theirs],
        )


@needs_shared
def test_every_known_difference_is_a_probed_pair() -> None:
    assert not set(KNOWN) - set(_probed())
