"""An execution changes from one length to another without a program for each, with bit-identical results."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import numpy as np
import pytest
from length_models import LENGTHS, MODELS, branches, opened, pooled, weights

import onert
from onert.compiler.recipes import recipe
from onert.exec import lengths
from onert.exec.frames import stretched
from onert.ir import Package, Subgraphs
from onert.ir.shape import compatible
from onert.ir.symbolic.trace import Trace
from onert_llvm.runtime import length_constants, loaded_code
from onert_llvm.runtime.aligned_memory import Aligned, Elements, NamedFunction
from onert_llvm.runtime.stretched_kernel import StretchedKernel


def _given(shapes: Sequence[tuple[int, ...]]) -> dict[str, Any]:
    return {name: weights(*shape) for name, shape in zip("xy", shapes, strict=False)}


FEW, MANY = (2, 7, 1, 0, 40, 9, 3, 30, 2, 31), (*LENGTHS, 3, 11, 8, 30, 2, 6, 31)


@pytest.mark.parametrize("tried", [FEW, pytest.param(MANY, marks=pytest.mark.long)], ids=["few", "many"])
@pytest.mark.parametrize(("model", "shapes"), [pytest.param(*row[1:], id=row[0]) for row in MODELS])
def test_one_execution_matches_a_fresh_program_bit_for_bit_at_any_length(
    model: Callable[[], Subgraphs], shapes: Callable[[int], list[tuple[int, ...]]], tried: tuple[int, ...]
) -> None:
    """With one thread and with two: the fresh program has one, because the number does not change the bits."""
    package = opened(model())
    executions = [onert.Execution(onert.compile(package, num_threads=threads)) for threads in (1, 2)]
    for n in tried:
        given = _given(shapes(n))
        sizes = {name: array.shape for name, array in given.items()}
        expected = onert.Execution(onert.compile(package, input_shapes=sizes, num_threads=1)).run(given)
        for execution in executions:
            found = execution.run(given)
            again = execution.run(given)
            for info in execution.program.outputs:
                assert compatible(found[info.name].shape, info.shape)
                np.testing.assert_array_equal(found[info.name], expected[info.name])
                np.testing.assert_array_equal(again[info.name], expected[info.name])


@pytest.mark.parametrize("executor", ["Dataflow", "Parallel"])
@pytest.mark.parametrize("threads", [1, 2])
def test_every_executor_changes_from_one_length_to_another(executor: str, threads: int) -> None:
    package = opened(branches())
    execution = onert.Execution(onert.compile(package, executor=executor, num_threads=threads))
    for n in (4, 5, 6, 9, 7, 12):
        given = _given([(n, 4)])
        sizes = {"x": (n, 4)}
        alone = onert.compile(package, input_shapes=sizes, executor=executor, num_threads=threads)
        for name, expected in onert.Execution(alone).run(given).items():
            np.testing.assert_array_equal(execution.run(given)[name], expected)
    assert execution.program.stretch is not None


def _stretched() -> tuple[onert.Execution, Callable[[int], Any], Callable[[Any], Any]]:
    """An execution for many lengths, a maker of inputs, and a function that computes results for one length alone."""
    package = opened(pooled())
    execution = onert.Execution(onert.compile(package))
    for n in (5, 6, 7, 8):
        execution.run([weights(1, 6, n, 3)])
    assert execution.program.stretch is not None

    def expected(x: Any) -> Any:
        (found,) = onert.Execution(onert.compile(package, input_shapes={0: x.shape})).run([x]).values()
        return found

    return execution, lambda n: weights(1, 6, n, 3), expected


class _Narrow(Trace):
    """A trace that does not serve lengths of less than an eighth of the first ones."""

    def __init__(self, lengths: Sequence[int], most: Sequence[int], equal: Sequence[int] = ()) -> None:
        super().__init__(lengths, most, equal)
        for symbol, length in zip(self.lengths, lengths, strict=True):
            self.hold(8 * symbol >= length)


def _settled(name: str) -> tuple[onert.Execution, Callable[[int], list[tuple[int, ...]]], list[StretchedKernel]]:
    """An execution of a model that has run for a few lengths, the shapes of its inputs by length, and its kernels."""
    model, shapes = next(row[1:] for row in MODELS if row[0] == name)
    execution = onert.Execution(onert.compile(opened(model())))
    for n in (5, 6, 7, 8, 20, 21):
        execution.run(_given(shapes(n)))
    stretch = execution.program.stretch
    assert stretch is not None
    assert not stretch.numbers.python_checks
    kernels = [kernel for kernel in stretch.kernels if isinstance(kernel, StretchedKernel)]
    assert len(kernels) == len(stretch.kernels)
    return execution, shapes, kernels


@pytest.mark.parametrize(
    "name",
    [
        "attention",
        "heads",
        "rows of heads",
        "steps",
        "bordered",
        "merged",
        "triangle",
        "bytes",
        "rounds",
        "listed",
        "positions",
        "assigned",
        "descending",
        "rooted",
        "last",
        "volumes",
        "ranked",
    ],
)
def test_a_new_length_runs_no_python_code_for_its_sizes(name: str) -> None:
    _, _, kernels = _settled(name)
    assert all(isinstance(function, Elements) for kernel in kernels for _, function, _ in kernel.computed)


@pytest.mark.parametrize(
    "name",
    [
        "enlarged centres",
        "between pixels",
        "between four",
        "two scales",
        "averaged bytes",
        "averaged words",
        "resized bytes",
        "resized words",
        "resampled",
    ],
)
def test_constants_of_the_last_lengths_are_not_computed_again(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(length_constants, "_MOST_KEPT", 16)
    execution, shapes, kernels = _settled(name)
    assert any(isinstance(function, Aligned) for kernel in kernels for _, function, _ in kernel.computed)
    codes = {Aligned.__call__.__code__, NamedFunction.__call__.__code__}  # the second is of programs from the cache
    computed = list[int]()

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code in codes:
            computed.append(n)

    sys.setprofile(profile)
    try:
        for n in (*range(8, 24), *range(8, 24), 24, 8):
            execution.run(_given(shapes(n)))
    finally:
        sys.setprofile(None)
    once = computed.count(24)
    assert once > 0
    assert all(computed.count(n) == once for n in range(9, 24) if n not in (20, 21))
    assert computed[-1] == 8


def test_arrays_are_used_in_place_at_any_length() -> None:
    execution, made, expected = _stretched()
    (name,) = (info.name for info in execution.program.outputs)
    for n in (9, 10, 10, 7):
        x = made(n)
        execution.set_input(0, x)
        out = np.zeros(execution.program.outputs[0].shape, np.float32)
        execution.set_output(0, out)
        execution.execute()
        np.testing.assert_array_equal(out, expected(x))
        x[:] = 2 * x
        execution.execute()
        np.testing.assert_array_equal(out, expected(x))
        other = made(n + 1)
        kept = out.copy()
        np.testing.assert_array_equal(execution.run([other])[name], expected(other))
        np.testing.assert_array_equal(out, kept)
        scattered = np.repeat(made(n), 2, axis=2)[:, :, ::2]
        execution.set_input(0, scattered)
        execution.execute()
        np.testing.assert_array_equal(execution.get_output(0), expected(scattered))


def test_without_memory_for_longer_lengths_a_frame_for_one_length_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    execution, made, expected = _stretched()
    x = made(400)

    def refused(*_: Any) -> Any:
        raise onert.ir.ExecutionError("no room")

    monkeypatch.setattr(stretched.StretchedFrame, "__init__", refused)
    (found,) = execution.run([x]).values()
    np.testing.assert_array_equal(found, expected(x))


def test_an_interrupted_change_of_length_keeps_the_previous_length(monkeypatch: pytest.MonkeyPatch) -> None:
    execution, made, expected = _stretched()
    x = made(9)
    execution.run([x])
    resize = stretched.Resizable.resize

    def interrupted(*given: Any) -> Any:
        monkeypatch.setattr(stretched.Resizable, "resize", resize)
        raise KeyboardInterrupt

    monkeypatch.setattr(stretched.Resizable, "resize", interrupted)
    with pytest.raises(KeyboardInterrupt):
        execution.run([made(11)])
    execution.execute()
    np.testing.assert_array_equal(execution.get_output(0), expected(x))
    y = made(12)
    (found,) = execution.run([y]).values()
    np.testing.assert_array_equal(found, expected(y))


@pytest.mark.parametrize("shape", [(1, 6, 9, 4), (2, 5, 9, 3), (6, 9, 3)])
def test_shapes_that_the_model_refuses_are_refused_at_any_length(shape: tuple[int, ...]) -> None:
    execution, made, expected = _stretched()
    if shape[0] == 2:
        (found,) = execution.run([x := weights(*shape)]).values()
        np.testing.assert_array_equal(found, expected(x))
    else:
        with pytest.raises((onert.ir.CompileError, onert.ir.ExecutionError)):
            execution.run([weights(*shape)])
    x = made(10)
    (found,) = execution.run([x]).values()
    np.testing.assert_array_equal(found, expected(x))


def _planned(execution: onert.Execution) -> list[Any]:
    """The planned arrays of each frame that an execution keeps."""
    assert execution._lengths is not None
    frames = [kept.frame for kept in execution._lengths._kept]
    return [[f.tensors[at].array for at in f.routine.arenas["host"].placements] for f in frames]


@pytest.mark.parametrize("apart", [0, 64 << 20])
def test_large_frames_of_an_execution_share_one_arena(apart: int, monkeypatch: pytest.MonkeyPatch) -> None:
    execution, made, expected = _stretched()
    monkeypatch.setattr(lengths, "APART_BYTES", apart)
    for n in (40, 400, 9, 2, 41, 8):
        x = made(n)
        (found,) = execution.run([x]).values()
        np.testing.assert_array_equal(found, expected(x))
    assert execution._lengths is not None
    arena = execution._lengths._arena
    within = [all(np.shares_memory(arena, array) for array in arrays if array.size) for arrays in _planned(execution)]
    assert len(within) > 1
    assert all(within) == (not apart)


def test_an_oversized_arena_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recipe, "Trace", _Narrow)
    execution, made, expected = _stretched()
    monkeypatch.setattr(lengths, "KEPT_BYTES", 1 << 20)
    sizes = []
    for n in (4000, 3, 4000, 9):
        x = made(n)
        (found,) = execution.run([x]).values()
        np.testing.assert_array_equal(found, expected(x))
        assert execution._lengths is not None
        sizes.append(execution._lengths._arena.nbytes)
    assert sizes[1] < 1 << 20 < sizes[0]
    assert sizes[3] < 1 << 20 < sizes[2]


@pytest.mark.parametrize("is_open", [True, False])
def test_returning_to_a_length_rebinds_nothing(is_open: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    package = opened(branches()) if is_open else Package((branches(),), "made")
    execution = onert.Execution(onert.compile(package))

    def run(n: int) -> None:
        x = weights(n, 4)
        expected = onert.Execution(onert.compile(package, input_shapes={"x": x.shape})).run([x])
        bound.clear()
        execution.set_input_shape(0, x.shape)
        for name, found in execution.run([x]).items():
            np.testing.assert_array_equal(found, expected[name])

    bound, made = [], onert.Execution._made
    monkeypatch.setattr(onert.Execution, "_made", lambda *given: bound.append(given) or made(*given))
    order = (4, 5, 6, 7, 30, 4, 5, 2, 1)
    for n in order:
        run(n)
    for n in (*order, *order[::-1]):
        run(n)
        assert not bound


@pytest.mark.parametrize("most", [lengths._MOST_SEEN, 1])
def test_returning_to_a_length_tries_only_its_own_frame(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recipe, "Trace", _Narrow)
    execution, made, expected = _stretched()
    monkeypatch.setattr(lengths, "_MOST_SEEN", most)
    asked, become = [], stretched.StretchedFrame.become
    monkeypatch.setattr(stretched.StretchedFrame, "become", lambda *given: bool(asked.append(given)) or become(*given))
    counts = []
    for n in 4 * (400, 9, 40, 2):
        x = made(n)
        asked.clear()
        np.testing.assert_array_equal(execution.run([x])["output_0"], expected(x))
        counts.append(len(asked))
    assert execution._lengths is not None
    assert len(execution._lengths._kept) > 1
    assert len(execution._lengths._seen) <= most
    assert most == 1 or max(counts[-4:]) == 1


@pytest.mark.parametrize("pair", [(9, 11), (9, 400)])
def test_alternating_between_two_lengths_sets_up_nothing(
    pair: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    execution, made, expected = _stretched()
    for n in 3 * pair:
        execution.run([made(n)])

    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError("something is made for a length that was there")

    arrays = [made(n) for n in 2 * pair]
    results = [expected(x) for x in arrays]
    monkeypatch.setattr(onert.Execution, "_give", refused)
    monkeypatch.setattr(lengths._Kept, "setup", refused)
    for x, result in zip(2 * arrays, 2 * results, strict=True):
        for _ in range(2):
            np.testing.assert_array_equal(execution.run([x])["output_0"], result)


def test_a_thousand_lengths_generate_no_code_and_hold_no_memory() -> None:
    execution, made, _ = _stretched()
    for n in (200, 800):
        execution.run([made(n)])
    order = np.random.default_rng(3).permutation(np.arange(60, 310)).tolist()

    def held() -> int:
        for n in order:
            execution.run([np.ones((1, 6, n, 3), np.float32)])
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        first, code = held(), len(loaded_code._loaded)
        assert max(held(), held(), held()) < first + 50_000
    finally:
        tracemalloc.stop()
    assert len(loaded_code._loaded) == code


def test_arrays_cannot_change_a_dimension_that_the_model_fixes() -> None:
    execution = onert.Execution(onert.compile(Package((pooled(),), "made")))
    for n in (5, 6, 7):
        execution.set_input_shape(0, (1, 6, n, 3))
        execution.run([weights(1, 6, n, 3)])
    assert execution.program.stretch is not None
    with pytest.raises(onert.ir.ExecutionError, match="set_input_shape changes it"):
        execution.run([weights(1, 6, 8, 3)])
    assert execution.run([weights(1, 6, 7, 3)])


def test_arrays_in_another_order_or_of_another_kind_are_checked_again() -> None:
    package = opened({row[0]: row[1] for row in MODELS}["broadcast"]())
    execution = onert.Execution(onert.compile(package))
    for n in (3, 4, 5, 6):
        execution.run({"x": weights(n, 4), "y": weights(n, 4)})
    for n in (7, 9, 8):
        x, y = weights(n, 4), weights(n, 4)
        alone = onert.Execution(onert.compile(package, input_shapes={"x": x.shape, "y": y.shape})).run([x, y])
        for given in ({"y": y, "x": x}, [x, y], (x, y.tolist()), {"x": x, 1: y}):
            found = execution.run(given)
            for name, array in alone.items():
                np.testing.assert_array_equal(found[name], array)
        for wrong in ([weights(n + 1, 4), weights(n + 1, 5)], [x, y.astype(np.float64)]):
            with pytest.raises((onert.ir.ExecutionError, onert.ir.CompileError)):
                execution.run(wrong)
