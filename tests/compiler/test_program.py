"""Whole programs compute the same whatever the backends, planner and executor."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from itertools import permutations
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onert.backend import Backend, Program
from onert.backend.planner import PLANNERS
from onert.backend.registry import load_backends
from onert.compiler import Options, compile
from onert.exec import Execution
from onert.ir import Array, CompileError, DType, Package, Subgraph, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.data_movement.layout import Transpose
from onert.ir.ops.data_movement.permute import Permute
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind

from .toy import (
    ELSEWHERE,
    Draft,
    FusingBackend,
    Run,
    ToyAdd,
    ToyBackend,
    ToyFlat,
    ToyHalves,
    ToyRead,
    ToyScale,
    ToyVeil,
    ToyWrite,
    interpret,
)


def program(graph: Subgraph, backends: Sequence[Backend], **options: Any) -> Program:
    return compile(Package((Subgraphs((graph,)),), "toy"), Options(**{"num_threads": 1, **options}), backends)


def everything() -> list[Backend]:
    """Backends of every sort: another memory space, one operation at a time, fusing, and one that runs the rest."""
    return [
        ToyBackend("device", [ToyAdd], ELSEWHERE),
        ToyBackend("single", [ToyScale], single=True),
        FusingBackend("fusing", [ToyFlat, ToyHalves]),
        ToyBackend("builtin"),
    ]


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(-8, 8, shape).astype(np.float32)


@st.composite
def graphs(draw: st.DrawFn) -> Subgraph:
    """Random graphs of toy operations on tensors of a few sizes, with constants, unused results and odd outputs."""
    d = Draft()
    pool: list[tuple[int, tuple[int, ...]]] = []
    for _ in range(draw(st.integers(1, 2))):
        width = draw(st.sampled_from([1, 2, 8]))
        pool.append((d.input(4, width, name="x"), (4, width)))
    pool.append((d.constant(numbers(4, 2, seed=3)), (4, 2)))
    for _ in range(draw(st.integers(0, 14))):
        x, shape = draw(st.sampled_from(pool))
        kind = draw(st.sampled_from(["add", "sum", "relu", "scale", "flat", "halves", "write", "read"]))
        if kind == "add":
            y, _ = draw(st.sampled_from([p for p in pool if p[1] == shape]))
            pool.append((d.op(ToyAdd(), x, y), shape))
        elif kind == "sum":
            pool.append((d.op(Binary(BinaryKind.ADD), x, x), shape))
        elif kind == "relu":
            pool.append((d.op(Unary(draw(st.sampled_from([UnaryKind.RELU, UnaryKind.RELU6]))), x), shape))
        elif kind == "scale":
            pool.append((d.op(ToyScale(draw(st.sampled_from([0.5, 2.0]))), x), shape))
        elif kind == "flat":
            pool.append((d.op(ToyFlat(), x), (int(np.prod(shape)),)))
        elif kind == "halves" and shape[0] % 2 == 0:
            a, b = d.op(ToyHalves(), x, results=2)
            pool += [(a, (shape[0] // 2, *shape[1:])), (b, (shape[0] // 2, *shape[1:]))]
        elif kind == "write":
            pool.append((d.op(ToyWrite(), x), shape))
        elif kind == "read":
            pool.append((d.op(ToyRead(), x), shape))
    outputs = draw(st.lists(st.sampled_from([p[0] for p in pool]), min_size=1, max_size=4))
    return d.graph(*outputs)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(graphs(), st.sampled_from(sorted(PLANNERS)), st.booleans(), st.sampled_from(["Linear", "Dataflow"]))
def test_a_program_of_any_graph_matches_the_interpreter(
    graph: Subgraph, planner: str, optimize: bool, executor: str
) -> None:
    inputs = [numbers(*(d or 0 for d in graph.type(i).shape), seed=i) for i in graph.inputs]
    compiled = program(graph, everything(), planner=planner, optimize=optimize, executor=executor)
    for got, expected in zip(Run(compiled)(*inputs), interpret(graph, inputs), strict=True):
        np.testing.assert_array_equal(got, expected, strict=True)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(graphs(), st.sampled_from(sorted(PLANNERS)), st.randoms(use_true_random=False))
def test_steps_may_run_in_any_order_that_dependencies_allow(graph: Subgraph, planner: str, random: Random) -> None:
    inputs = [numbers(*(d or 0 for d in graph.type(i).shape), seed=i) for i in graph.inputs]
    compiled = program(graph, everything(), planner=planner, executor="Parallel")
    remaining = dict(enumerate(compiled.main.dependencies))
    order: list[int] = []
    while remaining:
        order.append(random.choice([step for step, needed in remaining.items() if set(needed) <= set(order)]))
        del remaining[order[-1]]
    for got, expected in zip(Run(compiled)(*inputs, order=order), interpret(graph, inputs), strict=True):
        np.testing.assert_array_equal(got, expected, strict=True)


def diamond() -> Subgraph:
    d = Draft()
    x = d.input(4, name="x")
    a = d.op(ToyScale(2.0), x)
    remaining = d.op(ToyScale(3.0), a)
    right = d.op(ToyScale(4.0), a)
    return d.graph(d.op(ToyAdd(), remaining, right))


def test_one_backend_runs_a_linear_program_as_one_step() -> None:
    compiled = program(diamond(), [ToyBackend("builtin")])
    assert [len(step.sequence.operations) for step in compiled.main.steps] == [4]


@pytest.mark.parametrize(
    ("executor", "threads", "dependencies"),
    [
        ("Dataflow", 1, ((), (0,), (0, 1))),  # the addition joins the later branch
        ("Parallel", 2, ((), (0,), (0,), (1, 2))),  # joining it would make the other branch wait
        ("Parallel", 1, ((),)),  # nothing can run concurrently
    ],
)
def test_branches_are_separate_steps_for_concurrent_executors(
    executor: str, threads: int, dependencies: tuple[tuple[int, ...], ...]
) -> None:
    compiled = program(diamond(), [ToyBackend("builtin")], executor=executor, num_threads=threads)
    assert compiled.main.dependencies == dependencies


def test_a_backend_in_another_memory_space_is_reached_by_permutes() -> None:
    compiled = program(diamond(), [ToyBackend("device", [ToyScale], ELSEWHERE), ToyBackend("builtin")])
    permutes = [o.op for o in compiled.main.subgraph.operations if isinstance(o.op, Permute)]
    assert permutes == [Permute("host", "elsewhere"), Permute("elsewhere", "host"), Permute("elsewhere", "host")]
    (out,) = Run(compiled)(np.ones(4, np.float32))
    np.testing.assert_array_equal(out, np.full(4, 14, np.float32))


def test_backends_of_one_memory_space_meet_without_a_permute() -> None:
    compiled = program(diamond(), [ToyBackend("scales", [ToyScale]), ToyBackend("builtin")])
    assert not any(isinstance(o.op, Permute) for o in compiled.main.subgraph.operations)
    assert [step.backend for step in compiled.main.steps] == ["scales", "builtin"]


def test_a_constant_exists_once_in_each_memory_space_that_reads_it() -> None:
    d = Draft()
    x, c = d.input(4), d.constant(np.ones(4, np.float32))
    graph = d.graph(d.op(ToyAdd(), d.op(ToyScale(), d.op(ToyAdd(), x, c)), d.op(ToyWrite(), c)))
    compiled = program(graph, [ToyBackend("device", [ToyAdd], ELSEWHERE), ToyBackend("builtin")])
    spaces = [compiled.main.memories[i].name for i, o in enumerate(compiled.main.subgraph.operands) if o.is_constant]
    assert sorted(spaces) == ["elsewhere", "host"]


def test_effects_keep_their_order_whatever_else_is_ready() -> None:
    d = Draft()
    x, y = d.input(2), d.input(2)
    writes = [d.op(ToyWrite(), i) for i in (x, y, x, y)]
    graph = d.graph(d.op(ToyRead(), writes[3]), *writes)
    for executor in ("Linear", "Parallel"):
        compiled = program(
            graph, [ToyBackend("single", [ToyWrite], single=True), ToyBackend("builtin")], executor=executor
        )
        steps = range(len(compiled.main.steps))
        needed = compiled.main.dependencies
        orders = [o for o in permutations(steps) if all(o.index(d) < o.index(s) for s in steps for d in needed[s])]
        assert orders
        for order in orders:
            run = Run(compiled)
            out = run(np.zeros(2, np.float32), np.ones(2, np.float32), order=order)
            assert run.context.state["notes"] == [[0, 0], [1, 1], [0, 0], [1, 1]]
            assert out[0].tolist() == [5, 5]


def test_variables_keep_their_values_from_run_to_run() -> None:
    d = Draft()
    x, total = d.input(3), d.variable(3)
    new = d.op(ToyAdd(), x, total)
    graph = d.graph(d.op(ToyScale(10.0), new), state=[(total, new)])
    for executor in ("Linear", "Parallel"):
        run = Run(program(graph, everything(), executor=executor))
        results = [run(np.full(3, k, np.float32))[0].tolist() for k in (1, 2, 3)]
        assert results == [[10] * 3, [30] * 3, [60] * 3]


def test_a_dynamic_tensor_keeps_its_elements_when_the_memory_of_its_operand_is_reused() -> None:
    d = Draft()
    a = d.op(ToyScale(2.0), d.input(4))
    veiled = d.op(ToyVeil(), a)
    graph = d.graph(veiled, d.op(ToyScale(5.0), d.op(ToyScale(3.0), d.input(4))))
    compiled = program(graph, [ToyBackend("builtin")])
    assert compiled.memory_plan["host"].size == 64
    assert Run(compiled)(np.ones(4, np.float32), np.ones(4, np.float32))[0].tolist() == [2, 2, 2, 2]


def test_a_variable_may_take_the_old_value_of_another() -> None:
    d = Draft()
    x, a, b = d.input(1), d.variable(1), d.variable(1)
    new = d.op(ToyAdd(), x, b)
    graph = d.graph(d.op(ToyScale(1.0), a), state=[(a, new), (b, a)])
    run = Run(program(graph, [ToyBackend("builtin")]))
    assert [run(np.full(1, k, np.float32))[0].tolist() for k in (1, 2, 3, 4)] == [[0], [1], [2], [4]]


def test_programs_for_other_input_shapes_are_cached_up_to_a_limit() -> None:
    d = Draft()
    x = d.input(None, 2, name="x")
    compiled = program(d.graph(d.op(ToyScale(), d.op(ToyScale(), x))), [ToyBackend("builtin")])
    assert compiled.inputs[0].shape == (None, 2)
    assert compiled.outputs[0].shape == (None, 2)
    six = compiled.specialize({0: (6, 2)})
    assert six.outputs[0].shape == (6, 2)
    assert six.memory_plan["host"].size == 64
    assert compiled.specialize({0: (6, 2)}) is six
    assert six.specialize({}) is six
    np.testing.assert_array_equal(Run(six)(numbers(6, 2))[0], 4 * numbers(6, 2))
    for rows in range(1, 40):
        compiled.specialize({0: (rows, 2)})
    assert compiled.specialize({0: (6, 2)}) is not six


@pytest.mark.parametrize(
    ("shape", "sentence"),
    [
        ((-1, 2), "input 'x': shape [-1, 2] has a negative dimension"),
        ((3, 2), "operation 0 ToyHalves: first dimension is 3, expected an even one"),
        ((1 << 30, 1 << 30), "input 'x': shape [1073741824, 1073741824] has more than 1099511627776 elements"),
    ],
)
def test_an_invalid_input_shape_is_rejected_with_one_sentence(shape: tuple[int, ...], sentence: str) -> None:
    d = Draft()
    graph = d.graph(*d.op(ToyHalves(), d.input(None, None, name="x"), results=2))
    compiled = program(graph, [ToyBackend("builtin")])
    with pytest.raises(CompileError) as caught:
        compiled.specialize({0: shape})
    assert str(caught.value) == sentence


def test_an_unknown_input_is_rejected() -> None:
    with pytest.raises(CompileError, match="there is no input 'y', expected one of 'x'"):
        program(diamond(), [ToyBackend("builtin")], input_shapes={"y": (4,)})
    with pytest.raises(CompileError, match="there is no input 1, expected 0 to 0"):
        program(diamond(), [ToyBackend("builtin")]).specialize({1: (4,)})


def test_a_program_describes_itself() -> None:
    text = program(diamond(), [ToyBackend("builtin")]).describe()
    assert "step 0 builtin: operation 0 ToyScale" in text
    assert "arena host" in text


@pytest.mark.parametrize("enabled", [True, False])
def test_compiling_restores_the_state_of_the_garbage_collector(enabled: bool) -> None:
    (gc.enable if enabled else gc.disable)()
    try:
        program(diamond(), [ToyBackend("builtin")])
        assert gc.isenabled() == enabled
        with pytest.raises(CompileError):
            program(diamond(), [])
        assert gc.isenabled() == enabled
    finally:
        gc.enable()


def test_no_passes_run_for_a_program_that_no_run_can_use() -> None:
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (None, 3)), "x")
    turned = b.add(Transpose(), b.add(Transpose(), x, b.constant(np.int32([1, 0]))), b.constant(np.int32([1, 0])))
    first = program(b.model([b.add(Unary(UnaryKind.NEG), turned)]).primary, load_backends(("reference",)))
    known = first.specialize({0: (2, 3)})
    assert [len(each.main.subgraph.operations) for each in (first, known)] == [3, 1]
    assert first.outputs[0].shape == (None, 3)
    (y,) = Execution(known).run([np.ones((2, 3), np.float32)]).values()
    assert y.tolist() == [[-1] * 3] * 2
