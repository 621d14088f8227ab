"""Special values are treated as in LiteRT wherever its kernels agree."""

from __future__ import annotations

from collections.abc import Iterator

import litert_peer as litert
import numpy as np
import pytest
from dtype_models import Kind, build
from dtype_recipes import RECIPES

import onert
from onert.ir import Array, OnertError

RESOLVERS = ("BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "BUILTIN")
VALUES = {"NaN": np.nan, "infinity": np.inf, "minus infinity": -np.inf, "a denormal": 1e-41, "1e8": 1e8}
_SPLIT = "NaN: LiteRT's kernels return the other operand, but which one that is depends on shapes and constants"
_CLAMPED = "infinities: these kernels clamp to finite numbers, unlike XNNPACK's for other operators"
OTHERWISE = {
    ("MAXIMUM", "NaN"): _SPLIT,
    ("MINIMUM", "NaN"): _SPLIT,
    ("TOPK_V2", "NaN"): "LiteRT compares within a heap, so the result depends on where the NaN is",
    **dict.fromkeys(((c, v) for c in ("ADD_N", "CONV_3D", "L2_POOL_2D") for v in VALUES if "inf" in v), _CLAMPED),
}
"""Cases where IEEE 754 is followed although LiteRT's kernels agree on something else."""


def _near(mine: Array, theirs: Array) -> bool:
    if mine.dtype.kind != "f":
        return np.array_equal(mine, theirs)
    finite = np.isfinite(theirs)
    room = 1e-4 * float(np.abs(theirs[finite]).max(initial=0))
    return np.allclose(mine, theirs, rtol=0, atol=room, equal_nan=True)


def _changed(inputs: list[Array], value: float) -> Iterator[list[Array]]:
    """The inputs with one element of a float operand replaced."""
    for at, array in enumerate(inputs):
        if array.dtype == np.float32 and array.size:
            for position in sorted({0, array.size // 2, array.size - 1}):
                found = [a.copy() for a in inputs]
                found[at].reshape(-1)[position] = value
                yield found


def _models() -> Iterator[tuple[str, bytes, list[Array]]]:
    for code, recipe in RECIPES.items():
        model, inputs = build(code, Kind("float32"), recipe)
        if any(a.dtype == np.float32 and a.size for a in inputs):
            yield code, model, inputs


MODELS = list(_models())


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize(("code", "model", "inputs"), MODELS, ids=[m[0] for m in MODELS])
def test_special_values_are_treated_as_in_litert(code: str, model: bytes, inputs: list[Array], value: str) -> None:
    if (code, value) in OTHERWISE:
        pytest.skip(OTHERWISE[code, value])
    rounds = list(_changed(inputs, VALUES[value]))
    theirs = []
    for resolver in RESOLVERS:
        try:
            theirs.append(litert.run_again(model, rounds, resolver))
        except (RuntimeError, ValueError):  # not an operator of this resolver
            continue
    if not theirs:
        pytest.skip("LiteRT does not support it")
    if not all(
        _near(a, b)
        for one in theirs[1:]
        for x, y in zip(one, theirs[0], strict=True)
        for a, b in zip(x, y, strict=True)
    ):
        pytest.skip("LiteRT's kernels disagree")
    try:
        execution = onert.Execution(onert.compile(onert.load(model), backends=("reference",)))
    except OnertError:
        pytest.skip("not defined on floats")
    for given, expected in zip(rounds, theirs[0], strict=True):
        for mine, wanted in zip(execution.run(given).values(), expected, strict=True):
            assert _near(mine, wanted), f"{code} of {value}: {mine.reshape(-1)[:8]}, LiteRT {wanted.reshape(-1)[:8]}"
