"""Every operation, at every rank from 0 to 6 and with every dimension empty, natively gives what it means.

The shapes are made from the cases of `tests/cases`, so that a new operation is held to this as soon as it has cases.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence

import cases
import pytest
from cases.case import Case
from shape_variants import variants

from onert.ir import Array, RuleError, Subgraph
from onert.ir.builder import Builder
from onert_llvm.target.isa import runnable

from .natively import by_meaning, natively, same, subgraph_of, why_not

ISA = runnable()[-1]


def _families() -> dict[str, list[Case]]:
    """One case for every operation and element types, by the operation."""
    found: dict[tuple[object, ...], Case] = {}
    for module in pkgutil.iter_modules(cases.__path__):
        for case in getattr(importlib.import_module(f"cases.{module.name}"), "CASES", ()):
            types = tuple(None if a is None else a.dtype.str for a in case.inputs)
            if case.op.evaluate_in is None:
                found.setdefault((case.op.label, types, bool(case.quantization)), case)
    families: dict[str, list[Case]] = {}
    for case in found.values():
        families.setdefault(case.op.label, []).append(case)
    return families


FAMILIES = _families()


def _constant(case: Case) -> tuple[int, ...]:
    """What the case says is constant, and all small integers but the first operand."""
    small = (i for i, a in enumerate(case.inputs) if i and a is not None and a.ndim <= 1 and a.dtype.kind in "iu")
    return tuple(sorted({*case.constant, *small}))


def _native(case: Case) -> tuple[Subgraph, list[Array]] | None:
    """The variant as a subgraph, and its inputs; None where it has no native form, or its elements break a rule."""
    constant = _constant(case)
    subgraph = subgraph_of(case, constant)
    inputs = [a for i, a in enumerate(case.inputs) if a is not None and i not in constant]
    if why_not(subgraph) is not None:
        return None
    try:
        by_meaning(subgraph, inputs)
    except RuleError:
        return None
    return subgraph, inputs


def _joined(parts: Sequence[tuple[Subgraph, list[Array]]]) -> tuple[Subgraph, list[Array]]:
    """Subgraphs side by side as one, so that they are compiled together."""
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


@pytest.mark.parametrize("label", sorted(FAMILIES))
def test_every_rank_and_empty_dimension_natively_means_the_same(label: str) -> None:
    found = [native for case in FAMILIES[label] for v in variants(case) if (native := _native(v)) is not None]
    if not found:  # then it has none in the cases that it was made from either
        assert [case for case in FAMILIES[label] if _native(case) is not None] == []
    for start in range(0, len(found), 64):
        subgraph, inputs = _joined(found[start : start + 64])
        same(natively(subgraph, inputs, ISA), by_meaning(subgraph, inputs))
