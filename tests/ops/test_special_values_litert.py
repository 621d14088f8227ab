"""Special values are treated as in LiteRT wherever its kernels agree."""

from __future__ import annotations

from collections.abc import Iterator

import litert_peer as litert
import numpy as np
import pytest
from dtype_models import Kind, build
from dtype_recipes import RECIPES

import onert
from onert.ir import Array

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


NOT_COMPARED = {
    "LOCAL_RESPONSE_NORMALIZATION": "LiteRT's kernels disagree on every value",
    **dict.fromkeys(
        (
            *("BITWISE_XOR", "DEQUANTIZE", "LOGICAL_AND", "LOGICAL_NOT", "LOGICAL_OR"),
            *("REDUCE_ALL", "REDUCE_ANY", "RIGHT_SHIFT"),
        ),
        "LiteRT has no kernel for floats",
    ),
}
"""Operators for which there is nothing to compare with."""


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


def _theirs(model: bytes, rounds: list[list[Array]]) -> Iterator[list[list[Array]]]:
    """The results of each of LiteRT's kernels."""
    for resolver in RESOLVERS:
        try:
            yield litert.run_again(model, rounds, resolver)
        except (RuntimeError, ValueError):  # not an operator of this resolver
            continue


def _agree(kernels: list[list[list[Array]]], at: int) -> bool:
    """Whether all of LiteRT's kernels return the same in round `at`."""
    first, *others = (rounds[at] for rounds in kernels)
    return all(_near(a, b) for other in others for a, b in zip(other, first, strict=True))


@pytest.mark.parametrize(("code", "model", "inputs"), MODELS, ids=[m[0] for m in MODELS])
def test_special_values_are_treated_as_in_litert(code: str, model: bytes, inputs: list[Array]) -> None:
    rounds = [(name, given) for name, value in VALUES.items() for given in _changed(inputs, value)]
    kernels = list(_theirs(model, [given for _, given in rounds]))
    split = {name for at, (name, _) in enumerate(rounds) if kernels and not _agree(kernels, at)}
    compared = {name for name, _ in rounds if kernels and name not in split and (code, name) not in OTHERWISE}
    assert bool(compared) is (code not in NOT_COMPARED)
    if code in NOT_COMPARED:
        return
    execution = onert.Execution(onert.compile(onert.load(model), backends=("reference",)))
    for (name, given), expected in zip(rounds, kernels[0], strict=True):
        if name in compared:
            for mine, wanted in zip(execution.run(given).values(), expected, strict=True):
                assert _near(mine, wanted), f"{code} of {name}: {mine.reshape(-1)[:8]}, LiteRT {wanted.reshape(-1)[:8]}"
