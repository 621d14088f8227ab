"""What no round of a loop changes is a constant in it, or is computed before it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import onert
from onert.ir import Array, Package, Subgraph, Subgraphs
from onert.ir.builder import Builder
from onert.ir.ops.contraction.matmul import BatchMatMul
from onert.ir.ops.control_flow.control import If, While
from onert.ir.ops.control_flow.enclosed import Branch, Loop
from onert.ir.ops.data_movement.copy import Copy
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind

from .loops import ADD, LESS, ONE, floats, one_more

BACKENDS = pytest.mark.parametrize("backends", [(), ("reference",)], ids=["native", "reference"])
STATE, FEATURES, WEIGHTS = floats(1, 4), floats(1, 6, 4), floats(4, 4)
TYPES = (ONE, ONE, STATE, FEATURES, WEIGHTS)
RNG = np.random.default_rng(3)
WEIGHTS_VALUE: Array = RNG.uniform(-1, 1, (4, 4)).astype(np.float32)
FEATURES_VALUE: Array = RNG.uniform(-1, 1, (1, 6, 4)).astype(np.float32)
START: Array = RNG.uniform(-1, 1, (1, 4)).astype(np.float32)


def _attending(*, with_branch: bool, changes: int | None = None) -> tuple[Subgraph, ...]:
    """for i < n: state = state x weights + row 0 of (features x weights), and 1 more if it is odd.

    The weights are an operand of the loop, which a branch returns too if there is one. Side `changes` of the
    branch returns other weights.
    """
    top = Builder()
    given = [top.input(t) for t in TYPES[:4]]
    results = top.add_many(While(1, 2, TYPES), *given, top.constant(WEIGHTS_VALUE))
    condition = Builder("condition")
    i, n, *_ = (condition.input(t) for t in TYPES)
    body = Builder("body")
    i_, n_, state, features, weights = (body.input(t) for t in TYPES)
    keys = body.add(BatchMatMul(), features, weights)
    row = body.add(Gather(axis=1), keys, body.constant(np.int32(0)))
    state = body.add(ADD, body.add(BatchMatMul(), state, weights), row)
    graphs = [top.subgraph(results), condition.subgraph([condition.add(LESS, i, n)])]
    if not with_branch:
        return (*graphs, body.subgraph([one_more(body, i_), n_, state, features, weights]))
    odd = body.add(LESS, body.constant(np.int32(0)), body.add(Binary(BinaryKind.FLOOR_MOD), i_, _two(body)))
    state, weights = body.add_many(If(3, 4, (STATE, WEIGHTS)), odd, state, weights)
    graphs.append(body.subgraph([one_more(body, i_), n_, state, features, weights]))
    for at, more in enumerate((1, 0)):
        side = Builder("side")
        x, w = side.input(STATE), side.input(WEIGHTS)
        x = side.add(ADD, x, side.constant(np.float32(more)))
        w = side.add(Unary(UnaryKind.NEG) if changes == at else Copy(), w)
        graphs.append(side.subgraph([x, w]))
    return tuple(graphs)


def _two(b: Builder) -> int:
    return b.constant(np.int32(2))


def _expected(rounds: int, *, with_branch: bool, changes: int | None = None) -> tuple[Array, Array]:
    state, weights = START, WEIGHTS_VALUE
    for i in range(rounds):
        state = state @ weights + (FEATURES_VALUE @ weights)[:, 0]
        if with_branch:
            odd = i % 2
            state, weights = state + odd, -weights if changes == 1 - odd else weights
    return state, weights


def _loop_of(program: Any) -> Loop:
    (found,) = [o.op for o in program.main.subgraph.operations if isinstance(o.op, Loop)]
    assert isinstance(found, Loop)
    return found


@BACKENDS
@pytest.mark.parametrize("rounds", [0, 1, 5])
@pytest.mark.parametrize(("with_branch", "changes"), [(False, None), (True, None), (True, 0), (True, 1)])
def test_loops_compute_the_same_with_what_no_round_changes_taken_out(
    with_branch: bool, changes: int | None, rounds: int, backends: tuple[str, ...]
) -> None:
    graphs = _attending(with_branch=with_branch, changes=changes)
    program = onert.compile(Package((Subgraphs(graphs),), "attending"), backends=backends)
    found = list(onert.Execution(program).run([np.int32(0), np.int32(rounds), START, FEATURES_VALUE]).values())
    state, weights = _expected(rounds, with_branch=with_branch, changes=changes)
    np.testing.assert_allclose(found[2], state, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(found[3], FEATURES_VALUE)
    np.testing.assert_array_equal(found[4], weights)


@pytest.mark.parametrize("with_branch", [False, True])
def test_a_loop_reads_constant_weights_that_a_branch_in_it_returns_too(with_branch: bool) -> None:
    program = onert.compile(Package((Subgraphs(_attending(with_branch=with_branch)),), "attending"))
    body = _loop_of(program).body
    assert body.outputs[4] == body.inputs[4]
    assert not body.uses.get(body.inputs[4])
    sides = [side for o in body.operations if isinstance(o.op, Branch) for side in (o.op.then, o.op.otherwise)]
    assert [len(side.outputs) for side in sides] == [1, 1][: 2 * with_branch]


def test_products_of_what_no_round_changes_are_computed_once() -> None:
    program = onert.compile(Package((Subgraphs(_attending(with_branch=True)),), "attending"))
    inner = [o for o in _loop_of(program).body.operations if isinstance(o.op, BatchMatMul)]
    assert len(inner) == 1  # the product with the state
    assert any(isinstance(o.op, BatchMatMul) for o in program.main.subgraph.operations)


@pytest.mark.parametrize("side", [0, 1])
def test_weights_that_a_side_of_a_branch_changes_stay_the_state_of_a_loop(side: int) -> None:
    program = onert.compile(Package((Subgraphs(_attending(with_branch=True, changes=side)),), "attending"))
    body = _loop_of(program).body
    assert body.outputs[4] != body.inputs[4]
    assert body.uses[body.inputs[4]]
    assert len([o for o in body.operations if isinstance(o.op, BatchMatMul)]) == 2


def test_integers_stay_in_a_loop_since_a_lookup_may_fail_in_rounds_that_never_run() -> None:
    """A lookup out of range is an error only if the loop makes a round."""
    types = (ONE, ONE, ONE, floats(3, 2), floats(2))
    top, condition, body = Builder(), Builder("condition"), Builder("body")
    results = top.add_many(While(1, 2, types), *(top.input(t) for t in types))
    i, n, *_ = (condition.input(t) for t in types)
    given = [body.input(t) for t in types]
    row = body.add(ADD, body.add(Gather(axis=0), given[3], given[2]), given[4])
    graphs = (
        top.subgraph(results),
        condition.subgraph([condition.add(LESS, i, n)]),
        body.subgraph([one_more(body, given[0]), *given[1:4], row]),
    )
    execution = onert.Execution(onert.compile(Package((Subgraphs(graphs),), "looking up")))
    table, start = np.ones((3, 2), np.float32), np.zeros(2, np.float32)
    found = list(execution.run([np.int32(0), np.int32(0), np.int32(7), table, start]).values())
    np.testing.assert_array_equal(found[4], start)
    with pytest.raises(onert.ir.ExecutionError, match="index 7 is outside of"):
        execution.run([np.int32(0), np.int32(1), np.int32(7), table, start])
