"""NaN, infinities, zeros of both signs, denormals and huge numbers are treated natively as in `evaluate`."""

from __future__ import annotations

import pkgutil

import cases
import numpy as np
import pytest

from onert.ir import ExecutionError, RuleError
from onert.ir.ops.reduction.reduce import Reduce, Reduction
from onert_llvm.target.isa import Isa, runnable

from .natively import evaluated, legal, natively, single, unsupported
from .special_values import (
    Special,
    Stretched,
    bind,
    compared,
    difference,
    order_decides,
    positions,
    replacements,
    specials,
)

KINDS = {
    "conv": 2, "detection": 2, "elementwise": 10, "hlo_shapes": 3, "lookup": 2, "lstm": 3, "matmul": 2, "movement": 28,
    "norm": 6, "onnx": 4, "pool": 3, "recurrent": 5, "reduce": 4, "scatter": 2, "transpose_conv": 4,
}  # fmt: skip
"""The minimum number of operation kinds with float32 operands and native forms, by the file of their cases."""


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.long)], ids=["ends", "all"])
@pytest.mark.parametrize("family", [module.name for module in pkgutil.iter_modules(cases.__path__)])
def test_special_values_behave_as_in_evaluate(family: str, every: bool, subtests: pytest.Subtests) -> None:
    """On the targets with the fewest and the most instructions in turn, and with the choices of constant operands in
    turn; in the long suite on all targets and with all choices, and with special values in constants also where only
    the first operand is longer than in the case.
    """
    kinds = set()
    for at, special in enumerate(specials(family, every)):
        targets = runnable() if every else (runnable()[-1 if at % 2 else 0],)
        kinds.add(type(special.case.op))
        if any(operand in special.floats for operand, _ in special.inputs):
            with subtests.test(special.name):
                _check_inputs(special, targets)
        constants = set(special.floats) & set(special.constant)
        if special.stretched is Stretched.FIRST and not every:
            constants.clear()  # they are as in the case itself
        for operand in constants:
            with subtests.test(f"{special.name}, constant {operand}"):
                _check_constant(special, operand)
    assert len(kinds) >= KINDS.get(family, 0)


def _check_inputs(special: Special, targets: tuple[Isa, ...]) -> None:
    subgraph = special.subgraph()
    runs = {isa.name: special.bound(isa) for isa in targets}
    inputs = [array for _, array in special.inputs]
    for at, (operand, _) in enumerate(special.inputs):
        if operand not in special.floats:
            continue
        for what, changed in replacements(inputs, at):
            try:
                expected = evaluated(subgraph, changed)
            except RuleError:
                continue
            if order_decides(special, what):
                continue
            for name, run in runs.items():
                for pair in zip(run(changed), expected, strict=True):
                    mine, theirs = (compared(special, result) for result in pair)
                    assert difference(mine, theirs) is None, f"{what}, {name}: {difference(mine, theirs)} differ"


@pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
@pytest.mark.parametrize("kind", [Reduction.MAX, Reduction.MIN], ids=lambda kind: kind.name)
@pytest.mark.parametrize("axis", [1, 0], ids=["row", "column"])
def test_a_long_row_or_column_reduces_to_nan_wherever_its_nan_is(axis: int, kind: Reduction, isa: Isa) -> None:
    """A length of whole register blocks, whole registers and part of one; each row but the last has NaN elsewhere."""
    length = 3 * 4 * isa.f32 + isa.f32 + 3
    x = np.random.default_rng(0).normal(size=(length + 1, length)).astype(np.float32)
    np.fill_diagonal(x, np.nan)
    subgraph, inputs = single(Reduce(kind), x if axis else np.ascontiguousarray(x.T), np.int32([axis]), constant=(1,))
    (found,) = natively(subgraph, inputs, isa)
    assert np.isnan(found[:-1]).all()
    assert found[-1] == (x[-1].max() if kind is Reduction.MAX else x[-1].min())


def _check_constant(special: Special, operand: int) -> None:
    """The layer may then lack a native form, because the value is not finite. One target suffices for this."""
    inputs = [array for _, array in special.inputs]
    array = special.case.inputs[operand]
    assert array is not None
    for value in (np.nan, np.inf):
        if order_decides(special, f"{value} in constant {operand}"):
            continue
        subgraph = special.subgraph((operand, positions(array)[-1], value))
        decomposed = legal(subgraph)
        reason = unsupported(decomposed)
        if reason is not None:
            assert "finite" in reason
            continue
        run = bind(decomposed, runnable()[-1])
        try:
            expected = evaluated(subgraph, inputs)
        except RuleError:
            with pytest.raises(ExecutionError):
                run(inputs)
            continue
        for mine, theirs in zip(run(inputs), expected, strict=True):
            assert difference(mine, theirs) is None, f"{value} in constant {operand}: {difference(mine, theirs)}"
