"""Every operation, at every rank from 0 to 6 and with every dimension empty, matches its definition natively.

The shapes are derived from the cases in `tests/cases`, so a new operation is tested as soon as it has cases. The
combinations of element types that an operation has cases for take turns; in the long suite each has every shape.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from cases import all_cases
from cases.case import Case
from shape_variants import variants

from onert.ir import Array, RuleError, Subgraph
from onert.ir.builder import Builder
from onert_llvm.target.isa import runnable

from .natively import assert_close, evaluated, natively, subgraph_of, why_not

ISA = runnable()[-1]


def _families() -> dict[str, list[Case]]:
    """For each operation, one case for each combination of element types."""
    found: dict[tuple[object, ...], Case] = {}
    for case in all_cases():
        types = tuple(None if a is None else a.dtype.str for a in case.inputs)
        if case.op.evaluate_in is None:
            found.setdefault((case.op.label, types, bool(case.quantization)), case)
    families: dict[str, list[Case]] = {}
    for case in found.values():
        families.setdefault(case.op.label, []).append(case)
    return families


FAMILIES = _families()


def _constant(case: Case) -> tuple[int, ...]:
    """The case's constant operands, and all small integer operands except the first."""
    small = (i for i, a in enumerate(case.inputs) if i and a is not None and a.ndim <= 1 and a.dtype.kind in "iu")
    return tuple(sorted({*case.constant, *small}))


def _native(case: Case) -> tuple[Subgraph, list[Array]] | None:
    """The variant's subgraph and inputs; None if it has no native form or violates a rule of its operation."""
    constant = _constant(case)
    subgraph = subgraph_of(case, constant)
    inputs = [a for i, a in enumerate(case.inputs) if a is not None and i not in constant]
    if why_not(subgraph) is not None:
        return None
    try:
        evaluated(subgraph, inputs)
    except RuleError:
        return None
    return subgraph, inputs


def _joined(parts: Sequence[tuple[Subgraph, list[Array]]]) -> tuple[Subgraph, list[Array]]:
    """Several subgraphs as one, so that they are compiled together."""
    b = Builder()
    results: list[int] = []
    inputs: list[Array] = []
    for subgraph, given in parts:
        moved: dict[int, int] = {}
        for index, operand in enumerate(subgraph.operands):
            if operand.data is not None:
                moved[index] = b.constant(operand.data.array, operand.type.quantization, dtype=operand.type.dtype)
            elif index in subgraph.inputs:
                moved[index] = b.input(operand.type)
        (operation,) = subgraph.operations
        quantization = tuple(subgraph.type(o).quantization for o in operation.outputs)
        operands = [None if i is None else moved[i] for i in operation.inputs]
        results += b.add_many(operation.op, *operands, quantization=quantization)
        inputs += given
    return b.subgraph(tuple(results)), inputs


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.long)], ids=["in turn", "all"])
@pytest.mark.parametrize("label", sorted(FAMILIES))
def test_every_rank_and_empty_dimension_matches_the_definition(label: str, every: bool) -> None:
    cases = FAMILIES[label]
    turns = 1 if every else len(cases)
    tried = [v for turn, case in enumerate(cases) for v in variants(case, turn % turns, turns)]
    found = [native for variant in tried if (native := _native(variant)) is not None]
    if not found:  # then the original cases have no native form either
        assert [case for case in cases if _native(case) is not None] == []
    for start in range(0, len(found), 64):
        subgraph, inputs = _joined(found[start : start + 64])
        assert_close(natively(subgraph, inputs, ISA), evaluated(subgraph, inputs))
