"""Loops and branches run natively as one operation and match their definition, on every target."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from control.loops import ONE, collatz, fibonacci, floats, loop, one_more, running_sums, triangle

import onert
from onert.backend import Settings
from onert.ir import DType, ExecutionError, Package, Subgraph, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.control_flow.enclosed import run
from onert.ir.ops.data_movement.gather import DynamicUpdateSlice
from onert.ir.ops.data_movement.joining import Pack
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert_llvm.command.command import kernel_calls
from onert_llvm.compile import lowered
from onert_llvm.target.isa import Isa, runnable

from .harness import Array
from .natively import assert_close, enclosed, natively, sequence_of, why_not

CONTEXT: Any = object()
"""Stands for the context, which operations with enclosed graphs do not use."""

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)


def _number(value: int) -> Array:
    return np.array(value, np.int32)


def _check(graphs: Sequence[Subgraph], inputs: Sequence[Array], isa: Isa) -> None:
    graph = enclosed(graphs)
    assert_close(natively(graph, inputs, isa, threads=2, runs=2), run(graph, inputs, CONTEXT))


@ISAS
@pytest.mark.parametrize("rounds", [0, 1, 6])
def test_loop_operands_may_be_swapped(isa: Isa, rounds: int) -> None:
    rows = np.random.default_rng(0).uniform(-1, 1, (2, 3)).astype(np.float32)
    _check(fibonacci(), [_number(0), _number(rounds), rows[0], rows[1]], isa)


@ISAS
@pytest.mark.parametrize("width", [5, 33])
def test_loops_read_and_update_rows(isa: Isa, width: int) -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (2, 9, width)).astype(np.float32)
    _check(running_sums(9, width), [_number(1), _number(8), x[0], x[0, 0], x[1]], isa)


@ISAS
def test_nested_loops_and_branches_match_their_definition(isa: Isa) -> None:
    _check(collatz(), [_number(0), _number(9), _number(3)], isa)
    _check(triangle(), [_number(0), _number(5), _number(3)], isa)


@ISAS
def test_loops_may_contain_products_and_elementwise_chains(isa: Isa) -> None:
    rng = np.random.default_rng(3)
    weights, bias = rng.uniform(-0.5, 0.5, (17, 17)).astype(np.float32), rng.uniform(-1, 1, 17).astype(np.float32)

    def body(b: Builder, given: list[int]) -> list[int]:
        i, n, x, y, z = given
        product = b.add(FullyConnected(), x, b.constant(weights), b.constant(bias))
        new = b.add(Unary(UnaryKind.TANH), b.add(Binary(BinaryKind.ADD), product, y))
        return [one_more(b, i), n, new, b.add(Binary(BinaryKind.MUL), x, new), z]

    row = floats(2, 17)
    graphs = loop([ONE, ONE, row, row, TensorType(DType.UINT8, (3,))], body)
    x = rng.uniform(-1, 1, (2, 2, 17)).astype(np.float32)
    _check(graphs, [_number(0), _number(4), x[0], x[1], np.uint8([1, 2, 3])], isa)


@pytest.mark.parametrize("rounds", [0, 5])
def test_threads_share_the_work_of_long_iterations(rounds: int) -> None:
    weights = np.random.default_rng(3).uniform(-0.1, 0.1, (200, 200)).astype(np.float32)

    def body(b: Builder, given: list[int]) -> list[int]:
        i, n, x = given
        return [one_more(b, i), n, b.add(Unary(UnaryKind.TANH), b.add(FullyConnected(), x, b.constant(weights)))]

    graph = enclosed(loop([ONE, ONE, floats(64, 200)], body))
    inputs = [_number(0), _number(rounds), np.ones((64, 200), np.float32)]
    (isa, *_) = runnable()
    alone, together = (natively(graph, inputs, isa, threads=threads, runs=2) for threads in (1, 3))
    assert_close(alone, run(graph, inputs, CONTEXT))
    for mine, theirs in zip(together, alone, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_a_loop_shared_by_threads_respects_the_iteration_limit() -> None:
    weights = np.zeros((200, 200), np.float32)

    def body(b: Builder, given: list[int]) -> list[int]:
        return [one_more(b, given[0]), given[1], b.add(FullyConnected(), given[2], b.constant(weights))]

    graphs = loop([ONE, ONE, floats(64, 200)], body)
    program = onert.compile(Package((Subgraphs(graphs),), "made"), num_threads=2, max_iterations=3)
    inputs = [_number(0), _number(5), np.ones((64, 200), np.float32)]
    with pytest.raises(ExecutionError, match=r"While.*the loop runs more than 3 times"):
        onert.Execution(program).run(inputs)
    assert int(onert.Execution(program).run([_number(2), *inputs[1:]])["output_0"]) == 5


def test_the_reason_names_the_operation_in_a_loop_that_is_not_native() -> None:
    def body(b: Builder, given: list[int]) -> list[int]:
        return [one_more(b, given[0]), given[1], b.add(Unary(UnaryKind.CBRT), given[2])]

    wide = TensorType(DType.FLOAT64, (3,))
    reason = why_not(enclosed(loop([ONE, ONE, wide], body)))
    assert reason is not None
    assert reason.startswith("in it operation 1 Unary.CBRT: ")


def _partial_updates(reads_it: bool) -> tuple[Subgraph, ...]:
    """A loop that updates part of a table, and optionally reads the whole table too."""

    def body(b: Builder, given: list[int]) -> list[int]:
        i, n, table, part = given
        starts = b.add(Pack(0), i, b.constant(np.array(1, np.int32)))
        grown = b.add(Binary(BinaryKind.ADD), part, b.constant(np.ones(1, np.float32)))
        changed = b.add(DynamicUpdateSlice(), table, grown, starts)
        if reads_it:
            changed = b.add(Binary(BinaryKind.ADD), changed, table)
        return [one_more(b, i), n, changed, grown]

    return loop([ONE, ONE, floats(7, 40), floats(2, 37)], body)


def _kernels(graph: Subgraph, isa: Isa) -> list[str]:
    """The names of the kernels generated for a graph and the graphs enclosed in it."""
    settings = Settings(num_threads=1, target=isa.name)
    made = lowered(sequence_of(graph, settings), isa, settings)
    return [command.spec.name for command in kernel_calls(made.commands)]


@ISAS
@pytest.mark.parametrize("reads_it", [False, True])
def test_part_of_a_loop_state_is_updated_in_place_unless_all_of_it_is_read(isa: Isa, reads_it: bool) -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (7, 40)).astype(np.float32)
    graphs = _partial_updates(reads_it)
    _check(graphs, [_number(0), _number(9), x, x[:2, :37].copy()], isa)
    kernels = _kernels(enclosed(graphs), isa)
    assert (kernels[kernels.index("put_part") - 1] == "copy_rows") is reads_it


def test_an_inner_loop_counts_its_iterations_anew_each_time_it_is_entered(tmp_path: Path) -> None:
    """The limit is 5 iterations in process and a million in a bundle; the inner loop runs more often in total."""
    package = Package((Subgraphs(triangle()),), "made")
    execution = onert.Execution(onert.compile(package, max_iterations=5))
    onert.bundle(package, tmp_path)
    bundle = onert.load_bundle(tmp_path)
    for call, most in ((execution.run, 5), (bundle.run, 1500)):
        for _ in range(2):
            total = call([_number(0), _number(most), _number(3)])["output_2"]
            assert int(total) == 3 + most * (most - 1) // 2
    with pytest.raises(ExecutionError, match="the loop runs more than 5 times"):
        execution.run([_number(0), _number(6), _number(3)])
    assert int(execution.run([_number(0), _number(5), _number(3)])["output_2"]) == 13
