"""Work shared by threads: groups of a convolution as one command, scratch memory per thread, shared columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compilations import compilations

import onert
from onert.ir import DType, Package, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.op import Op
from onert.ir.ops.arithmetic.activation import Activation
from onert.ir.ops.arithmetic.window import Padding
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert_llvm.command.command import MERGED, Access, Area, Callee, Command, Pointer
from onert_llvm.command.merge import merge
from onert_llvm.command.task_layout import TaskLayout
from onert_llvm.kernels.contraction.winograd.form import Form
from onert_llvm.runtime.native_kernel import NativeKernel
from onert_llvm.schedule.winograd import Blocks, Layer, blocks
from onert_llvm.target.isa import Isa, runnable

Array = np.ndarray[Any, Any]
ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
KERNEL, OTHER = (Callee(name, name, TaskLayout(())) for name in ("kernel", "other"))


def command(first: int, last: int, **changed: Any) -> Command:
    """A command that reads operand 0, writes bytes of operand 1, and uses its thread's scratch memory."""
    read = Access(Pointer(Area.OPERAND, 0), 64)
    written = Access(Pointer(Area.OPERAND, 1, first), last - first, True)
    room = Access(Pointer(Area.SCRATCH, 0, 128), 640, True)
    given = {"spec": KERNEL, "slots": {"rooms": room.pointer}, "tiles": 3, "pieces": 2, "operation": 7, "flops": 10}
    return Command(**{**given, "accesses": (read, written, room), **changed})


def test_equal_commands_are_merged() -> None:
    several = [command(8 * i, 8 * i + 8) for i in range(5)]
    found = merge(several, 2)
    assert found is not None
    assert (found.spec, found.tiles, found.flops, found.operation) == (MERGED, 15, 50, 7)
    assert found.pieces == 15  # at most one for each tile
    assert {a for each in several for a in each.accesses} == {*found.accesses}
    assert [step.accesses for step in found.program] == [each.accesses for each in several]
    assert {step.pieces for step in found.program} == {5}  # the number of merged commands


@pytest.mark.parametrize(
    "other",
    [
        {"spec": OTHER},
        {"tiles": 4},
        {"spec": MERGED, "program": (command(0, 8),)},
    ],
    ids=["another kernel", "other tiles", "several already"],
)
def test_commands_that_differ_in_more_than_their_slots_are_not_merged(other: dict[str, Any]) -> None:
    assert merge([command(0, 8), command(8, 16, **other)], 2) is None


def test_commands_that_share_scratch_memory_are_not_merged() -> None:
    assert merge([command(8 * i, 8 * i + 8, slots={}) for i in range(2)], 2) is None
    assert merge([command(0, 8)], 2) is None


def draw(*shape: int | None) -> Array:
    sizes = [size or 1 for size in shape]
    return np.random.default_rng(sizes).normal(size=sizes).astype(np.float32)


def network(op: Op, x: tuple[int | None, ...], weights: tuple[int, ...]) -> Package:
    """A convolution with a bias and a residual."""
    b = Builder()
    picture = b.input(TensorType(DType.FLOAT32, x), "x")
    made = b.add(op, picture, b.constant(draw(*weights)), b.constant(draw(weights[0])))
    residual = b.input(b.type(made), "residual")
    return Package((Subgraphs((b.subgraph([b.add(Binary(BinaryKind.ADD), made, residual)]),)),), "groups")


def results(package: Package, threads: int) -> Array:
    program = onert.compile(package, num_threads=threads)
    execution = onert.Execution(program)
    inputs = [draw(*info.shape) for info in program.inputs]
    found = [np.asarray(next(iter(execution.run(inputs).values()))) for _ in range(3)]
    assert all(np.array_equal(found[0], each) for each in found)
    return found[0]


LAYERS = {
    "windows": (Conv2D(Padding.SAME), (1, 14, 14, 60), (60, 5, 5, 20)),
    "by twos": (Conv2D(Padding.SAME, 2, 2), (1, 28, 28, 60), (60, 3, 3, 20)),
    "side by side": (Conv2D(Padding.SAME), (1, 14, 14, 48), (48, 3, 3, 4)),
    "minimal filtering": (Conv2D(Padding.SAME), (1, 20, 20, 96), (96, 3, 3, 32)),
    "pixels": (Conv2D(Padding.SAME, activation=Activation.RELU), (1, 40, 40, 60), (80, 1, 1, 12)),
    "pictures": (Conv2D(Padding.SAME), (3, 12, 9, 32), (40, 3, 3, 16)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_grouped_convolution_is_one_command_and_bitwise_equal_for_any_thread_count(name: str) -> None:
    op, x, weights = LAYERS[name]
    package = network(op, x, weights)
    found = [results(package, threads) for threads in (1, 2, 3)]
    assert all(np.array_equal(found[0], each) for each in found)
    for threads in (1, 2):
        kernel = onert.compile(package, num_threads=threads).main.steps[0].kernel
        assert isinstance(kernel, NativeKernel)
        (only,) = (c.spec for c in kernel.lowered.commands if c.flops)
        assert (only == MERGED) == (name != "side by side")


def test_few_compilations_serve_all_batch_sizes_of_a_grouped_convolution(monkeypatch: pytest.MonkeyPatch) -> None:
    op, (_, *picture), weights = LAYERS["windows"]
    execution = onert.Execution(onert.compile(network(op, (None, *picture), weights), num_threads=2))
    made = compilations(monkeypatch)
    sizes = (5, 3, 1, 7, 2, 6, 4)
    found = [next(iter(execution.run([draw(n, *picture), draw(n, *picture[:2], weights[0])]).values())) for n in sizes]
    assert len(made) <= 4
    monkeypatch.undo()
    for n, each in zip(sizes, found, strict=True):
        assert np.array_equal(each, results(network(op, (n, *picture), weights), 1))


@pytest.mark.parametrize("threads", [1, 3])
def test_bundles_compute_grouped_convolutions(tmp_path: Path, threads: int) -> None:
    package = network(*LAYERS["pictures"])
    onert.bundle(package, tmp_path, threads=threads)
    bundle = onert.load_bundle(tmp_path)
    (found,) = bundle.run([draw(*info.shape) for info in bundle.inputs()]).values()
    np.testing.assert_allclose(found, results(package, 1), rtol=1e-5, atol=1e-5)


# ---- work shares of Winograd layers


@ISAS
def test_threads_share_columns_if_there_are_many_weights_for_a_small_image(isa: Isa) -> None:
    many, picture = Layer(Form(2), 512, 512, isa), Layer(Form(2), 64, 64, isa)
    alone, shared = (blocks(many, 16, threads) for threads in (1, 2))
    assert shared.columns
    assert (shared.tile, shared.block) == (alone.tile, alone.block)
    assert shared.group < alone.group
    assert not alone.columns
    assert not blocks(picture, 784, 2).columns


@pytest.mark.parametrize("columns", [False, True])
def test_every_block_is_combined_with_every_group_of_columns_once(columns: bool) -> None:
    tile = blocks(Layer(Form(2), 64, 64, runnable()[-1]), 784, 1).tile
    slots = Blocks(tile, 25, 3, columns).slots(49, 8)
    met = [
        (t // slots["next_block"] % slots["blocks"], t // slots["next_group"] % slots["groups"])
        for t in range(slots["blocks"] * slots["groups"])
    ]
    assert sorted(met) == [(block, group) for block in range(2) for group in range(3)]
    assert met[:2] == ([(0, 0), (1, 0)] if columns else [(0, 0), (0, 1)])


SHARED = {"a line of blocks": (7, 128), "several blocks": (14, 96), "a few columns": (9, 130)}


@pytest.mark.parametrize("name", SHARED)
def test_layers_with_shared_columns_are_bitwise_equal_for_any_thread_count(name: str) -> None:
    size, channels = SHARED[name]
    package = network(Conv2D(Padding.SAME), (1, size, size, channels), (channels, 3, 3, channels))
    found = [results(package, threads) for threads in (1, 2, 3)]
    assert all(np.array_equal(found[0], each) for each in found)
