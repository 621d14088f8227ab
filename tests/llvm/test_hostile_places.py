"""With arbitrary indices, counts and shapes, native data movement matches its definition or raises."""

from __future__ import annotations

import random

import pytest
from cases import movement, onnx, onnx_pictures, places
from cases.case import Case
from mutants import mutant

from onert.ir import ExecutionError, ModelError, RuleError
from onert.ir.ops.data_movement.element_indices import GatherElements, OverwrittenSlices, ScatterElements, ScatterSlices
from onert.ir.ops.data_movement.fill import CountedWhere, TopK, Within
from onert.ir.ops.data_movement.gather import DynamicUpdateSlice, Gather, GatherNd, PutRow, ScatterNd
from onert.ir.ops.vision_audio.sampling import RoiAlign
from onert_llvm.target.isa import runnable

from .natively import assert_close, evaluated, natively, subgraph_of, why_not

KINDS = (
    *(CountedWhere, DynamicUpdateSlice, Gather, GatherElements, GatherNd, OverwrittenSlices, PutRow, ScatterElements),
    *(RoiAlign, ScatterNd, ScatterSlices, TopK, Within),
)
CASES = [
    case
    for module in (movement, onnx, onnx_pictures, places)
    for case in module.CASES
    if isinstance(case.op, KINDS) and why_not(subgraph_of(case)) is None
]
DRAWS, COMPARED = 60, 5
"""Mutants drawn at most, and those to compare: mutants that are not valid native subgraphs do not count."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.op.label}: {case.name}")
def test_a_mutated_case_matches_its_definition_or_is_rejected(case: Case) -> None:
    chance, isa, compared = random.Random(case.name), runnable()[0], 0
    for _ in range(DRAWS):
        if compared == COMPARED:
            break
        changed = mutant(chance, case)
        inputs = [a for i, a in enumerate(changed.inputs) if a is not None and i not in changed.constant]
        try:
            subgraph = subgraph_of(changed)
        except (ModelError, RuleError):
            continue
        types = [operand.type for operand in subgraph.operands]
        if any(not t.is_static or t.nbytes > 1 << 20 for t in types) or why_not(subgraph) is not None:
            continue
        compared += 1
        try:
            expected = evaluated(subgraph, inputs)
        except RuleError:
            with pytest.raises(ExecutionError):
                natively(subgraph, inputs, isa)
            continue
        assert_close(natively(subgraph, inputs, isa), expected, where=str(changed))
    assert compared > 0
