"""NaN, infinities, zeros of both signs, denormals and huge numbers mean the same natively as in `evaluate`."""

from __future__ import annotations

import numpy as np
import pytest

from onert.ir import RuleError
from onert.ir.ops.reduction.reduce import Reduce, Reduction
from onert_llvm.target.isa import Isa, runnable

from .natively import by_meaning, natively, single, why_not
from .special_values import Special, bind, difference, order_decides, positions, replacements, specials

SPECIALS = specials()
TARGETS = pytest.mark.parametrize(
    "targets",
    [
        pytest.param((runnable()[0], runnable()[-1]), id="ends"),
        pytest.param(runnable(), id="all", marks=pytest.mark.long),
    ],
)
"""The one with least and the one with most instructions, all in the long suite."""
GIVEN = [special for special in SPECIALS if any(operand in special.floats for operand, _ in special.inputs)]


def test_most_kinds_of_operation_are_held_to_this() -> None:
    assert len({type(special.case.op) for special in SPECIALS}) > 40


@TARGETS
@pytest.mark.parametrize("special", GIVEN, ids=lambda special: special.name)
def test_an_input_with_a_special_value(targets: tuple[Isa, ...], special: Special) -> None:
    subgraph = special.subgraph()
    runs = {isa.name: bind(subgraph, isa) for isa in targets}
    inputs = [array for _, array in special.inputs]
    for at, (operand, _) in enumerate(special.inputs):
        if operand not in special.floats:
            continue
        for what, changed in replacements(inputs, at):
            try:
                expected = by_meaning(subgraph, changed)
            except RuleError:
                continue
            if order_decides(special, what):
                continue
            for name, run in runs.items():
                assert run is not None
                for mine, theirs in zip(run(changed), expected, strict=True):
                    assert difference(mine, theirs) is None, f"{what}, {name}: {difference(mine, theirs)} differ"


@pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
@pytest.mark.parametrize("kind", [Reduction.MAX, Reduction.MIN], ids=lambda kind: kind.name)
@pytest.mark.parametrize("axis", [1, 0], ids=["row", "column"])
def test_a_long_row_or_column_is_nan_wherever_its_nan_lies(axis: int, kind: Reduction, isa: Isa) -> None:
    """Whole blocks of registers, whole registers and a part of one, NaN in each place of all but the last."""
    length = 3 * 4 * isa.f32 + isa.f32 + 3
    x = np.random.default_rng(0).normal(size=(length + 1, length)).astype(np.float32)
    np.fill_diagonal(x, np.nan)
    subgraph, inputs = single(Reduce(kind), x if axis else np.ascontiguousarray(x.T), np.int32([axis]), constant=(1,))
    (found,) = natively(subgraph, inputs, isa)
    assert np.isnan(found[:-1]).all()
    assert found[-1] == (x[-1].max() if kind is Reduction.MAX else x[-1].min())


@pytest.mark.parametrize(
    "special", [s for s in SPECIALS if set(s.floats) & set(s.constant)], ids=lambda special: special.name
)
def test_a_constant_with_a_special_value(special: Special) -> None:
    """A layer may be left to `evaluate` then; the targets differ in nothing that matters here."""
    inputs = [array for _, array in special.inputs]
    for operand in set(special.floats) & set(special.constant):
        array = special.case.inputs[operand]
        assert array is not None
        for value in (np.nan, np.inf):
            subgraph = special.subgraph((operand, positions(array)[-1], value))
            reason = why_not(subgraph)
            if reason is not None:
                assert reason
                continue
            run = bind(subgraph, runnable()[-1])
            assert run is not None
            for mine, theirs in zip(run(inputs), by_meaning(subgraph, inputs), strict=True):
                assert difference(mine, theirs) is None, f"{value} in constant {operand}: {difference(mine, theirs)}"
