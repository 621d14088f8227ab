"""Caches updated in place: how many bytes a step copies, correct results, and failed runs that change nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import decoding
import numpy as np
import pytest
from bundle.machines import needs_compiler

import onert
from onert.ir import Array, ExecutionError, Package

STEPS, POSITIONS = 4, 64
STATE = {"resource variables": (decoding.with_resources, 1.0), "variable tensors": (decoding.with_variables, 0.0)}
PUTS = {
    "a row": decoding.put,
    "by StableHLO": decoding.put_hlo,
    "twice, in another shape": decoding.put_twice,
    "scattered rows": decoding.put_slices,
    "scattered elements": decoding.put_elements,
    "scattered by StableHLO": decoding.put_by_hlo,
}
EXECUTORS = ("Linear", "Dataflow", "Parallel")


def _y(outputs: dict[str, Array]) -> Array:
    return next(iter(outputs.values()))


@pytest.mark.parametrize(
    ("put", "state"),
    [
        ("a row", "resource variables"),
        ("by StableHLO", "variable tensors"),
        ("twice, in another shape", "variable tensors"),
        ("scattered rows", "resource variables"),
        ("scattered elements", "resource variables"),
        ("scattered by StableHLO", "variable tensors"),
    ],
)
@pytest.mark.parametrize("backends", [(), ("reference",)], ids=["native", "reference"])
@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_failed_run_leaves_caches_unchanged(put: str, state: str, backends: tuple[str, ...], executor: str) -> None:
    make, first = STATE[state]
    program = onert.compile(make(POSITIONS, put=PUTS[put]), executor=executor, num_threads=2, backends=backends)
    execution = onert.Execution(program)
    for number, wanted in enumerate(decoding.expected(STEPS, POSITIONS, first)):
        with pytest.raises(ExecutionError, match="7"):  # would write a row that the next step reads but does not write
            execution.run(decoding.inputs(number + 2, index=7))
        np.testing.assert_allclose(_y(execution.run(decoding.inputs(number))), wanted, rtol=1e-4, atol=1e-6)
    execution.reset_variables()
    again = _y(execution.run(decoding.inputs(0)))
    np.testing.assert_allclose(again, decoding.expected(1, POSITIONS, first)[0], rtol=1e-4, atol=1e-6)


@needs_compiler
@pytest.mark.parametrize(
    ("make", "put", "threads"),
    [
        (decoding.with_resources, "twice, in another shape", 1),
        (decoding.with_variables, "twice, in another shape", 2),
        (decoding.with_ends, "twice, in another shape", 2),
        (decoding.with_resources, "scattered rows", 1),
        (decoding.with_ends, "scattered elements", 1),
        (decoding.with_variables, "scattered by StableHLO", 2),
    ],
)
def test_decoding_steps_of_a_bundle_give_the_expected_results(
    make: Callable[..., Package], put: str, threads: int, tmp_path: Path
) -> None:
    onert.bundle(make(POSITIONS, put=PUTS[put]), tmp_path, threads=threads)
    loaded = onert.load_bundle(tmp_path)
    first = 1.0 if make is decoding.with_resources else 0.0
    caches = _caches(POSITIONS) if make is decoding.with_ends else {}
    for number, wanted in enumerate(decoding.expected(STEPS, POSITIONS, first)):
        with pytest.raises(ExecutionError, match="error code"):
            loaded.run({**decoding.inputs(number + 2, index=7), **caches})
        found = list(loaded.run({**decoding.inputs(number), **caches}).values())
        np.testing.assert_allclose(found[0], wanted, rtol=1e-4, atol=1e-6)
        caches = dict(zip(caches, found[2:], strict=True))


# ---- bytes that a step copies


@pytest.mark.parametrize(
    ("make", "put"),
    [
        (decoding.with_resources, "a row"),
        (decoding.with_variables, "by StableHLO"),
        (decoding.with_resources, "twice, in another shape"),
        (decoding.with_resources, "scattered rows"),
        (decoding.with_variables, "scattered elements"),
        (decoding.with_variables, "scattered by StableHLO"),
    ],
)
def test_a_step_copies_the_same_bytes_whatever_the_size_of_the_caches(make: Callable[..., Package], put: str) -> None:
    found = []
    for positions in (256, 4096):
        execution = onert.Execution(onert.compile(make(positions, put=PUTS[put]), num_threads=1))
        execution.run(decoding.inputs(0))
        found.append(decoding.copied_bytes(execution.program, execution._frame.tensors))
    assert found[0] == found[1]
    assert sum(found[0].values()) < 256 * 8 * 4


@pytest.mark.parametrize("tokens", [1, 3])
@pytest.mark.parametrize("executor", EXECUTORS)
def test_attention_writes_keys_and_values_into_its_caches_in_place(tokens: int, executor: str) -> None:
    package = decoding.with_attention(32, tokens)
    program = onert.compile(package, executor=executor, num_threads=2)
    assert {program.main.roots.get(update.source) for update in program.main.subgraph.state} == {
        update.variable for update in program.main.subgraph.state
    }
    native, plain = onert.Execution(program), onert.Execution(onert.compile(package, backends=("reference",)))
    rng = np.random.default_rng(3)
    for position in (0, tokens, 32 - tokens):
        x = rng.standard_normal((1, tokens, 8), np.float32)
        for each in (native, plain):
            with pytest.raises(ExecutionError, match=rf"\b{33 - tokens}\b"):
                each.run([x, np.int32([33 - tokens])])
        found, wanted = (_y(each.run([x, np.int32([position])])) for each in (native, plain))
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("backends", [(), ("reference",)], ids=["native", "reference"])
def test_a_cache_and_its_next_value_share_memory(backends: tuple[str, ...]) -> None:
    program = onert.compile(decoding.with_variables(POSITIONS, put=decoding.put_twice), backends=backends)
    tensors = onert.Execution(program)._frame.tensors
    state = program.main.subgraph.state
    assert len(state) == 2
    for update in state:
        assert np.shares_memory(tensors[update.variable].array, tensors[update.source].array)
        assert program.main.roots[update.source] == update.variable


# ---- caches owned by the caller


def _caches(positions: int) -> dict[str, Array]:
    return {name: np.zeros((1, positions, 2, 4), np.float32) for name in ("keys_in", "values_in")}


def _bound(program: Any, caches: dict[str, Array], inputs_first: bool = True) -> onert.Execution:
    """An execution with caches that are both inputs and outputs."""
    execution = onert.Execution(program)
    for outputs in (not inputs_first, inputs_first):
        for number, (name, cache) in enumerate(caches.items()):
            if outputs:
                execution.set_output(2 + number, cache)
            else:
                execution.set_input(name, cache)
    return execution


def _step(execution: onert.Execution, number: int, index: int = 0) -> Array:
    for name, array in decoding.inputs(number, index=index).items():
        execution.set_input(name, array)
    execution.execute()
    return execution.get_output(0)


@pytest.mark.parametrize(("put", "inputs_first"), [("a row", True), ("twice, in another shape", False)])
@pytest.mark.parametrize("backends", [(), ("reference",)], ids=["native", "reference"])
@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_caller_may_provide_the_same_memory_for_a_cache_and_its_next_value(
    put: str, backends: tuple[str, ...], executor: str, inputs_first: bool
) -> None:
    program = onert.compile(
        decoding.with_ends(POSITIONS, put=PUTS[put]), executor=executor, num_threads=2, backends=backends
    )
    caches = _caches(POSITIONS)
    execution = _bound(program, caches, inputs_first)
    for number, wanted in enumerate(decoding.expected(STEPS, POSITIONS, 0)):
        before = [cache.copy() for cache in caches.values()]
        with pytest.raises(ExecutionError, match="7"):
            _step(execution, number + 2, index=7)
        assert all(map(np.array_equal, before, caches.values()))
        np.testing.assert_allclose(_step(execution, number), wanted, rtol=1e-4, atol=1e-6)
    if not backends:
        assert sum(decoding.copied_bytes(program, execution._frame.tensors).values()) < POSITIONS * 8 * 4


def test_a_cache_that_is_only_an_input_is_not_modified() -> None:
    program = onert.compile(decoding.with_ends(POSITIONS))
    given = {**decoding.inputs(5), **_caches(POSITIONS)}
    execution = onert.Execution(program)
    for name, array in given.items():
        execution.set_input(name, array)
    execution.execute()
    assert not given["keys_in"].any()
    assert execution.get_output(2).any()
    execution.set_input("index", np.int32([7]))
    with pytest.raises(ExecutionError, match="7"):
        execution.execute()
    assert not given["keys_in"].any()


def test_an_output_may_only_share_exactly_the_memory_of_its_own_cache() -> None:
    program = onert.compile(decoding.with_ends(POSITIONS))
    room = np.zeros((2, POSITIONS, 2, 4), np.float32)
    apart = "given memory that .* uses"
    execution = onert.Execution(program)
    execution.set_input("keys_in", room[:1])
    with pytest.raises(ExecutionError, match=apart):  # the memory of the other cache
        execution.set_output(3, room[:1])
    shifted = room.reshape(-1)[8 : 8 + POSITIONS * 8].reshape(1, POSITIONS, 2, 4)
    with pytest.raises(ExecutionError, match=apart):
        execution.set_output(2, shifted)
    execution.set_output(2, room[:1])
    with pytest.raises(ExecutionError, match=apart):  # it is already an output
        execution.set_input("values_in", room[:1])
    with pytest.raises(ExecutionError, match=apart):
        execution.set_output(3, room[:1])
    execution.set_input("values_in", room[1:])
    execution.set_output(3, room[1:])
    np.testing.assert_allclose(_step(execution, 0), decoding.expected(1, POSITIONS, 0)[0], rtol=1e-4, atol=1e-6)
