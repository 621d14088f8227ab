"""Lowering: scratch memory, error reports, which results are stored, and which work threads share."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import onert
from onert.backend import Settings
from onert.ir import BackendError, DType, ExecutionError, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.elementwise.binary import Binary, BinaryKind, PRelu
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert_llvm.codegen import kernel_compiler
from onert_llvm.command.command import Area, Pointer
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.strided_copy import move, side
from onert_llvm.runtime import native_kernel
from onert_llvm.target.isa import Isa, runnable

from .harness import Array
from .natively import check, single

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
BEST = runnable()[-1]


def _draw(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng((seed, *shape)).normal(size=shape).astype(np.float32)


def _lowering() -> Lowering:
    subgraph, _ = single(Unary(UnaryKind.TANH), _draw(4))
    return Lowering(subgraph, BEST, Settings())


# ---- scratch memory


def test_all_threads_that_may_help_the_assigned_ones_get_scratch_memory() -> None:
    subgraph, _ = single(Unary(UnaryKind.TANH), _draw(4))
    lowering = Lowering(subgraph, BEST, Settings(num_threads=4))
    lowering.assign_threads((1, 2))
    assert (lowering.threads, lowering.callers) == (2, 4)


def test_pieces_of_scratch_memory_start_on_separate_cache_lines() -> None:
    lowering = _lowering()
    pieces = lowering.scratch(1, 65, 64, 3)
    assert [p.pointer.offset for p in pieces] == [0, 64, 192, 256]
    assert [p.nbytes for p in pieces] == [1, 65, 64, 3]
    assert lowering.finish().scratch == 320


@pytest.mark.parametrize("sizes", [(1000, 10), (10, 1000)])
def test_scratch_memory_is_as_large_as_the_largest_operation_needs(sizes: tuple[int, ...]) -> None:
    lowering = _lowering()
    for size in sizes:
        (piece,) = lowering.scratch(size)
        assert piece.pointer.offset == 0
    assert lowering.finish().scratch == 1024


@ISAS
@pytest.mark.parametrize("n", [1, 5, 16, 17, 33, 48])
def test_packed_computed_weights_have_room_for_the_last_register(isa: Isa, n: int) -> None:
    for k in (16, 32, 64):
        check(*single(FullyConnected(), _draw(3, k), _draw(n, k, seed=1), _draw(n, seed=2), constant=(2,)), isa)


def test_a_copy_beyond_the_bounds_of_its_tensor_is_rejected() -> None:
    place = Pointer(Area.SCRATCH, 0, 0)
    whole, target = side(place, (4, 4), 4), side(place, (4, 5), 4)
    beyond = evolve(whole.view, shape=(4, 5))
    with pytest.raises(BackendError, match="a copy would touch bytes 0 to 68 of 64"):
        move(_lowering(), 0, whole.at(beyond), target)
    before = whole.view[::-1]
    with pytest.raises(BackendError, match="a copy would touch bytes"):
        move(_lowering(), 0, whole.at(evolve(before, shape=(5, 4))), side(place, (5, 4), 4))


# ---- error reports


def _picking() -> Any:
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (5,)), "x")
    first, second = (b.input(TensorType(DType.INT32, (2,)), name) for name in ("first", "second"))
    outputs = [b.add(Gather(), x, first), b.add(Gather(), x, second)]
    return onert.Execution(onert.compile(onert.ir.Package((b.model(outputs),)), backends=("llvm",), num_threads=1))


@pytest.mark.parametrize(("bad", "index"), [(0, 5), (0, -1), (1, 5), (1, 7)])
def test_an_error_names_its_operation_and_does_not_affect_the_next_run(bad: int, index: int) -> None:
    execution = _picking()
    assert {step.backend for step in execution.program.main.steps} == {"llvm"}
    x, good = np.arange(5, dtype=np.float32), np.int32([4, 0])
    given = [x, good, good]
    given[1 + bad] = np.int32([1, index])
    label = str(execution.program.main.subgraph.operations[bad])
    with pytest.raises(ExecutionError) as caught:
        execution.run(given)
    assert label in str(caught.value)
    assert f"index {index} " in str(caught.value)
    assert [o.tolist() for o in execution.run([x, good, good]).values()] == [[4, 0], [4, 0]]


# ---- which results are stored


def _two(kind: str) -> tuple[Any, list[Array]]:
    """Graphs in which a result has two readers, is also an output, or provides the slopes of a PRelu."""
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (1, 6, 5, 4)))
    arrays = [_draw(1, 6, 5, 4)]
    first = b.add(Unary(UnaryKind.TANH), x)
    if kind == "two readers":
        return b.subgraph([b.add(Unary(UnaryKind.EXP), first), b.add(Unary(UnaryKind.NEG), first)]), arrays
    if kind == "an output":
        return b.subgraph([first, b.add(Unary(UnaryKind.EXP), first)]), arrays
    if kind == "slopes":
        return b.subgraph([b.add(PRelu(), x, first)]), arrays
    if kind == "read twice":
        return b.subgraph([b.add(Binary(BinaryKind.MUL), first, first)]), arrays
    if kind == "slopes of a layer":
        weights = b.constant(_draw(4, 1, 1, 4)), b.constant(_draw(4))
        return b.subgraph([b.add(PRelu(), first, b.add(Conv2D(), x, *weights))]), arrays
    layer = b.add(Conv2D(activation=Activation.RELU), x, b.constant(_draw(3, 1, 1, 4)), b.constant(_draw(3)))
    if kind == "a layer that is an output":
        return b.subgraph([layer, b.add(Unary(UnaryKind.NEG), layer)]), arrays
    return b.subgraph([b.add(Unary(UnaryKind.NEG), layer), b.add(Unary(UnaryKind.SQUARE), layer)]), arrays


@ISAS
@pytest.mark.parametrize(
    "kind",
    [
        "two readers",
        "an output",
        "slopes",
        "slopes of a layer",
        "read twice",
        "a layer that is an output",
        "a layer with two readers",
    ],
)
def test_results_with_several_readers_are_stored(isa: Isa, kind: str) -> None:
    subgraph, arrays = _two(kind)
    check(subgraph, arrays, isa)


# ---- threads, and cached code


def _command(flops: int, nbytes: int, pieces: int) -> Any:
    return SimpleNamespace(slots={}, flops=flops, accesses=[SimpleNamespace(nbytes=nbytes)], pieces=pieces)


def test_small_commands_do_not_count_as_work_shared_by_threads() -> None:
    least = native_kernel._SHARED_PIECE
    commands = [_command(least - 1, 0, 4)] * 100 + [_command(least, 5, 4), _command(3, least + 7, 4)]
    commands.append(_command(1 << 30, 0, 1))  # a single piece cannot be shared
    assert native_kernel._shared_work(commands) == 2 * least + 7


class Store:
    """Records the stored objects by key."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    def load(self, key: str) -> bytes | None:
        return self.kept.get(key)

    def store(self, key: str, made: bytes, label: str = "") -> bool:
        self.kept[key] = made
        return True


def test_single_threaded_and_shared_walkers_are_cached_separately() -> None:
    store: Any = Store()
    alone, *together = kernel_compiler.driver_objects(BEST, 2, store)
    assert len(store.kept) == len({alone, *together}) == 3
    assert kernel_compiler.driver_objects(BEST, 2, store) == (alone, *together)
    assert kernel_compiler.driver_objects(BEST, 1, store) == (alone,)
