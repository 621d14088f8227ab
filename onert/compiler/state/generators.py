"""Random numbers of the entry: bits of a generator whose state is a variable, kept from run to run.

%y = Random(UNIFORM, 1, 2) %shape   -->   %s = variable "1 2 0", begins with [1, 0, 2]
                                          %n, %bits = HloRngBitGenerator %s
                                          %y = uniform numbers of %bits
                                          after the run: %s := %n
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from onert.compiler.legalize.draft import Draft
from onert.compiler.legalize.hlo.randomness import classes, normal, uniform
from onert.compiler.rewrite.edit import Edit
from onert.ir import CallTypes, DType, Operand, StateUpdate, Subgraph, Subgraphs
from onert.ir.ops.data_movement.random_numbers import STATE, Distribution, Multinomial, Random
from onert.ir.ops.elementwise.convert import Bitcast
from onert.ir.ops.stablehlo.gather import BitGenerator, HloRngBitGenerator
from onert.ir.shape import num_elements, static

MOST_COMPARED = 1 << 22
"""Sums of chances that drawing classes may compare."""


def with_generators(graph: Subgraph, model: Subgraphs | None) -> Subgraph:
    """The graph with variables in the place of generators, where it is known how much is drawn and no other operation
    draws from the same one; itself where there are none."""
    graphs = (graph,) if model is None else model.subgraphs
    operations = (operation.op for each in graphs for operation in each.operations)
    drawn = Counter(op.resource for op in operations if isinstance(op, Random | Multinomial))
    edit, updates = Edit(graph), list(graph.state)
    for at, operation in enumerate(graph.operations):
        op = operation.op
        if not isinstance(op, Random | Multinomial) or drawn[op.resource] > 1:
            continue
        made = _written(op, graph.types(operation))
        if made is not None:
            held = op.resource
            variable = edit.operand(Operand(STATE, held.name, variable=True, resource=held))
            following = edit.operand(Operand(STATE))
            given = operation.used[: len(made.inputs) - 1]
            edit.inline(at, made, (variable, *given), (*operation.outputs, following))
            updates.append(StateUpdate(variable, following))
    edit.end_with(graph.outputs, updates)
    return edit.done() if drawn else graph


def _written(op: Random | Multinomial, types: CallTypes) -> Subgraph | None:
    """What gives the numbers of a state, and the next state; None where only a run knows how many there are."""
    shape, count = types.output.shape, num_elements(types.output.shape)
    if not count:
        return None
    d = Draft()
    state = d.input(STATE)
    if isinstance(op, Random):
        following, bits = _drawn(d, state, -(-count // 4) * 4)
        numbers = (uniform if op.distribution is Distribution.UNIFORM else normal)(d, bits)
        return d.subgraph([d.reshaped(d.part(numbers, (0,), (count,)), *static(shape)), following])
    logits = types.input(0)
    batch, known = logits.shape
    if known is None or count * known > MOST_COMPARED:
        return None
    following, bits = _drawn(d, state, 2 * count)
    ahead = op.reserved(batch or 0, count // (batch or 1)) - -(-count // 2)
    later = d.sum(d.add(Bitcast(DType.INT64), following), d.constant(np.array([0, ahead, 0], np.int64)))
    return d.subgraph([classes(d, d.input(logits), bits, op.to), d.add(Bitcast(DType.UINT64), later)])


def _drawn(d: Draft, state: int, words: int) -> tuple[int, ...]:
    """The next state, and so many words of this one."""
    return d.add_many(HloRngBitGenerator(BitGenerator.PHILOX, DType.UINT32, (words,)), state)
