"""Concurrent steps: their dependencies, how they share threads, and their priorities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onert.backend import Backend, Group, Program, Sequence, Settings
from onert.backend.planner.liveness import reachability
from onert.compiler import Options, compile
from onert.compiler.rewrite.effects import predecessors, subgraph_effects
from onert.compiler.scheduler.concurrency import BYTES_PER_FLOP, concurrent_steps, estimated_costs, ranks, threads_for
from onert.ir import BackendError, Effect, Op, Package, Subgraph, Subgraphs
from onert.ir.ops.control_flow.control import Call

from .test_program import program
from .toy import ELSEWHERE, Draft, Run, ToyAdd, ToyBackend, ToyRead, ToyScale, ToyWrite

CHAIN = ((), (0,), (1,), (2,))
DIAMOND = ((), (0,), (0,), (1, 2))
APART = ((), (), (), ())
TWO_CHAINS = ((), (), (0,), (1,))


@pytest.mark.parametrize(
    ("dependencies", "pairs"),
    [
        (CHAIN, {(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)}),
        (DIAMOND, {(0, 1), (0, 2), (0, 3), (1, 3), (2, 3)}),
        (APART, set()),
        (TWO_CHAINS, {(0, 2), (1, 3)}),
    ],
)
def test_reachability_includes_indirect_dependencies(
    dependencies: tuple[tuple[int, ...], ...], pairs: set[tuple[int, int]]
) -> None:
    assert set(map(tuple, np.argwhere(reachability(dependencies)).tolist())) == pairs


@pytest.mark.parametrize(
    ("dependencies", "others", "threads", "shares"),
    [
        (CHAIN, [0, 0, 0, 0], 4, [4, 4, 4, 4]),
        (DIAMOND, [0, 1, 1, 0], 4, [4, 2, 2, 4]),
        (APART, [3, 3, 3, 3], 4, [1, 1, 1, 1]),
        (APART, [3, 3, 3, 3], 9, [2, 2, 2, 2]),
        (APART, [3, 3, 3, 3], 2, [1, 1, 1, 1]),
        (TWO_CHAINS, [2, 2, 2, 2], 6, [2, 2, 2, 2]),
    ],
)
def test_concurrent_steps_share_the_threads(
    dependencies: tuple[tuple[int, ...], ...], others: list[int], threads: int, shares: list[int]
) -> None:
    assert concurrent_steps(dependencies) == others
    assert threads_for(dependencies, threads) == shares


def test_the_rank_of_a_step_is_the_length_of_the_longest_path_to_the_end() -> None:
    assert ranks(CHAIN, [1, 2, 3, 4]) == (10, 9, 7, 4)
    assert ranks(DIAMOND, [1, 2, 5, 4]) == (10, 6, 9, 4)
    assert ranks(TWO_CHAINS, [1, 5, 3, 1]) == (4, 6, 3, 1)


def test_guessed_costs_count_arithmetic_and_memory() -> None:
    d = Draft()
    x = d.input(100, name="x")
    graph = d.graph(d.op(ToyAdd(), x, d.op(ToyScale(), x)))
    steps = program(graph, [ToyBackend("single", single=True)], executor="Parallel", optimize=False).main.steps
    assert estimated_costs(steps) == [100 + 800 / BYTES_PER_FLOP, 100 + 1200 / BYTES_PER_FLOP]


def effects(*kinds: str) -> Subgraph:
    """Reads and writes of state and operations without effects, each with an input of its own."""
    d = Draft()
    made = {"read": ToyRead(), "write": ToyWrite(), "none": ToyScale()}
    return d.graph(*(d.op(made[kind], d.input(2, name=f"x{at}")) for at, kind in enumerate(kinds)))


@pytest.mark.parametrize(
    ("kinds", "before"),
    [
        (("read", "read", "read"), ((), (), ())),
        (("write", "read", "read"), ((), (0,), (0,))),
        (("read", "read", "write"), ((), (), (0, 1))),
        (("write", "write", "none"), ((), (0,), ())),
        (("read", "write", "read", "write"), ((), (0,), (1,), (1, 2))),
        (("write", "none", "read", "none", "write"), ((), (), (0,), (), (0, 2))),
    ],
)
def test_reads_are_unordered_and_writes_are_ordered_with_everything(
    kinds: tuple[str, ...], before: tuple[tuple[int, ...], ...]
) -> None:
    graph = effects(*kinds)
    assert predecessors(graph, (Effect.NONE,), {}) == before


def test_calls_are_ordered_by_the_effects_of_the_subgraphs_they_call() -> None:
    writes = Draft()
    body = writes.graph(writes.op(ToyWrite(), writes.input(2)))
    reads = Draft()
    reading = reads.graph(reads.op(ToyRead(), reads.input(2)))
    d = Draft()
    x = d.input(2, name="x")
    graph = d.uninferred(*(d.op(op, x) for op in (Call(1), Call(2), ToyScale(), Call(2), ToyWrite(), Call(1))))
    of_subgraphs = subgraph_effects(Subgraphs((graph, body, reading)))
    assert of_subgraphs == (Effect.WRITE, Effect.WRITE, Effect.READ)
    assert predecessors(graph, of_subgraphs, {}) == ((), (0,), (), (0,), (0, 1, 3), (4,))


class Grouping(ToyBackend):
    """Returns preset groups."""

    groups: tuple[Group, ...] = ()

    def fuse(self, sequence: Sequence, settings: Settings) -> tuple[Group, ...]:
        return self.groups


@pytest.mark.parametrize(
    ("groups", "sentence"),
    [
        ((Group((0, 1, 2), (1,)),), "does not store .*, which is read outside its group"),
        ((Group((0, 1, 2), (2,)),), "does not store .*, which is read outside its group"),
        ((Group((0, 2)), Group((1,))), "runs .* before the producer of an operand"),
        ((Group((0, 1)),), r"groups operations \[0, 1\], expected each of \[0, 1, 2\] once"),
        ((Group((0, 1, 1, 2)),), "once"),
    ],
)
def test_a_backend_that_groups_wrongly_is_rejected(groups: tuple[Group, ...], sentence: str) -> None:
    backend = Grouping("grouping")
    backend.groups = groups
    with pytest.raises(BackendError, match=sentence):
        program(read_inside_and_outside(), [backend], optimize=False)


@pytest.mark.parametrize("op", [ToyWrite(), Call(1)], ids=["writes", "calls"])
def test_a_backend_that_reorders_effects_is_rejected(op: Any) -> None:
    inner = Draft()
    body = inner.graph(inner.op(ToyScale(), inner.input(4)))
    d = Draft()
    x = d.input(4, name="x")
    graph = d.uninferred(d.op(op, x), d.op(op, x))
    backend = Grouping("grouping")
    backend.groups = (Group((1,)), Group((0,)))
    with pytest.raises(BackendError, match="changes the order of operations with effects"):
        compile(Package((Subgraphs((graph, body)),)), Options(num_threads=1, optimize=False), [backend])


# ---- results of each step, and where they are stored


def read_inside_and_outside() -> Subgraph:
    """A tensor that is an output, is read by its own step, and is read by a branch."""
    d = Draft()
    x = d.input(4, name="x")
    a = d.op(ToyScale(2.0), x)
    b = d.op(ToyScale(3.0), a)
    return d.graph(a, b, d.op(ToyAdd(), a, b))


@pytest.mark.parametrize("executor", ["Linear", "Dataflow", "Parallel"])
def test_an_output_that_its_own_step_reads_leaves_the_step(executor: str) -> None:
    compiled = program(read_inside_and_outside(), [ToyBackend("all")], executor=executor)
    assert [o.tolist() for o in Run(compiled)(np.ones(4, np.float32))] == [[2.0] * 4, [6.0] * 4, [8.0] * 4]
    graph = compiled.main.subgraph
    made = {o for step in compiled.main.steps for o in step.sequence.outputs}
    assert made >= set(graph.outputs)


@pytest.mark.parametrize(
    ("executor", "steps"),
    [("Dataflow", [["0"], ["1", "3"], ["2", "4"]]), ("Parallel", [["0"], ["2"], ["1", "3"], ["4"]])],
)
def test_steps_end_where_several_read_a_result_and_where_parallel_branches_join(
    executor: str, steps: list[list[str]]
) -> None:
    d = Draft()
    x = d.input(4, name="x")
    a = d.op(ToyScale(2.0), x)
    left, right = d.op(ToyScale(3.0), a), d.op(ToyScale(5.0), a)
    graph = d.graph(d.op(ToyAdd(), d.op(ToyScale(7.0), left), right))
    compiled = program(graph, [ToyBackend("all")], executor=executor, num_threads=2, optimize=False)
    assert [[str(o).split()[1] for o in step.sequence.body] for step in compiled.main.steps] == steps


def fan(count: int) -> Subgraph:
    d = Draft()
    x = d.input(4, name="x")
    ends = [d.op(ToyAdd(), x, d.op(ToyScale(float(i)), x)) for i in range(count)]
    total = ends[0]
    for end in ends[1:]:
        total = d.op(ToyAdd(), total, end)
    return d.graph(total)


def backends_used(compiled: Program) -> list[str]:
    return [step.backend for step in compiled.main.steps]


def test_backends_alternate_as_rarely_as_dependencies_allow() -> None:
    backends: list[Backend] = [ToyBackend("scales", [ToyScale]), ToyBackend("adds", [ToyAdd])]
    assert backends_used(program(fan(5), backends, optimize=False)) == ["scales", "adds"]


def test_the_first_operation_of_the_file_decides_which_backend_starts() -> None:
    d = Draft()
    x, y = d.input(4, name="x"), d.input(4, name="y")
    graph = d.graph(d.op(ToyAdd(), x, y), d.op(ToyScale(2.0), x), d.op(ToyAdd(), y, y))
    backends: list[Backend] = [ToyBackend("scales", [ToyScale]), ToyBackend("adds", [ToyAdd])]
    assert backends_used(program(graph, backends, optimize=False)) == ["adds", "scales"]


def test_a_tensor_is_copied_to_a_device_once_for_all_its_readers_there() -> None:
    backends: list[Backend] = [ToyBackend("device", [ToyScale], ELSEWHERE), ToyBackend("builtin")]
    compiled = program(fan(4), backends, optimize=False)
    permutes = [str(o) for o in compiled.main.subgraph.operations if o.op.name() == "Permute"]
    assert len(permutes) == 5  # the input once, and each of the four results back
    assert Run(compiled)(np.ones(4, np.float32))[0].tolist() == [10.0] * 4


@pytest.mark.parametrize("executor", ["Linear", "Parallel"])
@pytest.mark.parametrize("reader", [ToyAdd, ToyScale])
def test_state_computed_by_a_device_is_stored_where_it_is_read(executor: str, reader: type[Op]) -> None:
    d = Draft()
    x, total = d.input(3, name="x"), d.variable(3)
    new = d.op(ToyAdd(), x, total)
    graph = d.graph(d.op(ToyScale(10.0), total if reader is ToyScale else x), state=[(total, new)])
    compiled = program(graph, [ToyBackend("device", [ToyAdd], ELSEWHERE), ToyBackend("builtin")], executor=executor)
    routine = compiled.main
    home = "elsewhere" if reader is ToyAdd else "host"  # where ToyScale runs
    assert [routine.memories[u.source].name for u in routine.subgraph.state] == [home]
    assert [routine.memories[u.variable].name for u in routine.subgraph.state] == [home]
    run = Run(compiled)
    for k in (1, 2, 3):
        run(np.full(3, k, np.float32))
    variable = run.tensors[routine.subgraph.state[0].variable]
    assert variable.array.tolist() == [6.0] * 3
