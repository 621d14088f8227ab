"""State carried from one run to the next, and from one call of a subgraph to another."""

from __future__ import annotations

from concurrent.futures import Future
from threading import Event
from typing import ClassVar

import numpy as np
import pytest
from attrs import frozen
from compiler.test_program import program
from compiler.toy import Draft, ToyAdd, ToyBackend, ToyOfOne, ToyScale, ToyVeil
from patience import PATIENCE

import onert
from onert.backend import Sequence
from onert.compiler import Options, compile
from onert.exec import Execution, RunCancelledError
from onert.ir import (
    Array,
    CallTypes,
    CompileError,
    Context,
    DType,
    ExecutionError,
    Op,
    Package,
    Quantization,
    Subgraphs,
    TensorType,
)
from onert.ir.builder import Builder
from onert.ir.ops.control_flow.control import Call
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.convert import Cast
from onert.ir.ops.lookup.murmur import MurmurHash3
from onert.ir.process.budget import MAX_CALL_DEPTH

from .slow import chain, compiled

ONES = np.ones(4, np.float32)
LARGE = 1 << 15
"""Elements of an input that is not copied."""


@pytest.mark.parametrize("background", [False, True])
def test_a_cancelled_run_does_not_cancel_the_next_one_even_with_a_timeout(background: bool) -> None:
    cancelling = [True]

    def cancel(sequence: Sequence) -> None:
        if cancelling.pop() if cancelling else False:
            execution.cancel()

    execution = Execution(compiled(chain(2.0, 3.0), cancel))
    execution.set_input(0, ONES)
    with pytest.raises(RunCancelledError):
        execution.execute()
    if background:
        execution.execute_async(timeout=PATIENCE).result(PATIENCE)
    else:
        execution.execute(timeout=PATIENCE)
    assert execution.get_output(0).tolist() == [6.0] * 4


def test_state_with_a_next_value_of_unknown_shape_is_updated_in_every_run() -> None:
    d = Draft()
    x, total = d.input(3, name="x"), d.variable(3)
    new = d.op(ToyVeil(), d.op(ToyAdd(), x, total))
    graph = d.graph(d.op(ToyScale(10.0), total), state=[(total, new)])
    execution = Execution(program(graph, [ToyBackend("all")], optimize=False))
    found = [execution.run([np.full(3, k, np.float32)]).popitem()[1].tolist() for k in (1, 2, 3, 4)]
    assert found == [[0.0] * 3, [10.0] * 3, [30.0] * 3, [60.0] * 3]


@pytest.mark.parametrize("backends", [("llvm",), ("reference",)])
def test_kernels_are_rebound_when_inputs_and_outputs_move(backends: tuple[str, ...]) -> None:
    b = Builder()
    x, y = (b.input(TensorType(DType.FLOAT32, (LARGE,)), name) for name in "xy")
    package = Package((b.model([b.add(Binary(BinaryKind.SUB), x, y)]),))
    execution = onert.Execution(onert.compile(package, backends=backends, num_threads=1))
    arrays = [np.full(LARGE, value, np.float32) for value in (1, 2, 4, 8)]
    outputs = [np.zeros(LARGE, np.float32) for _ in range(2)]
    execution.set_input(0, arrays[0])
    execution.set_input(1, arrays[1])
    execution.set_output(0, outputs[0])
    execution.execute()
    execution.set_input(1, arrays[2])
    execution.execute()
    assert set(outputs[0].tolist()) == {-3.0}
    execution.set_input(0, arrays[3])
    execution.set_output(0, outputs[1])
    execution.execute()
    assert set(outputs[0].tolist()) == {-3.0}
    assert set(outputs[1].tolist()) == {4.0}


def test_quantised_variables_are_reset_to_their_zero_point() -> None:
    b = Builder()
    type_ = TensorType(DType.INT8, (2,), Quantization((0.5,), (3,)))
    state = b.variable(type_)
    b.update(state, b.constant(np.int8([7, 8])))
    package = Package((Subgraphs((b.subgraph([b.add(Reshape((2,)), state)]),)),))
    execution = onert.Execution(onert.compile(package, num_threads=1))
    first, second = (execution.run([]).popitem()[1].tolist() for _ in range(2))
    assert (first, second) == ([3, 3], [7, 8])
    execution.reset_variables()
    assert execution.run([]).popitem()[1].tolist() == [3, 3]


@frozen
class ToyTwice(ToyOfOne):
    """The result of subgraph 1 for `x` plus 100 times that for `x + 1`; both calls precede the use of the results."""

    subgraph: int = 1
    callees: ClassVar[tuple[str, ...]] = ("subgraph",)

    def evaluate_in(self, context: Context, types: CallTypes, x: Array) -> Array:
        (first,) = context.call(1, [x])
        (second,) = context.call(1, [x + x.dtype.type(1)])
        return first + 100 * second


def test_results_of_a_call_are_not_overwritten_by_the_next_call() -> None:
    inner = Draft()
    body = inner.graph(inner.op(ToyScale(3.0), inner.input(4)))
    outer = Draft()
    top = outer.uninferred(outer.op(ToyTwice(), outer.input(4, name="x")))
    package = Package((Subgraphs((top, body)),))
    execution = Execution(compile(package, Options(num_threads=1, optimize=False), [ToyBackend("all")]))
    assert execution.run([ONES]).popitem()[1].tolist() == [3.0 + 600.0] * 4


def test_a_subgraph_may_be_called_several_times() -> None:
    inner = Draft()
    body = inner.graph(inner.op(ToyScale(3.0), inner.input(4)))
    outer = Draft()
    x = outer.input(4, name="x")
    calls = [outer.op(Call(1), outer.op(ToyScale(float(f)), x)) for f in (1, 2, 3)]
    top = outer.uninferred(*calls)
    package = Package((Subgraphs((top, body)),))
    execution = Execution(compile(package, Options(num_threads=1, optimize=False), [ToyBackend("all")]))
    assert [o.tolist() for o in execution.run([ONES]).values()] == [[3.0] * 4, [6.0] * 4, [9.0] * 4]


def test_calls_nested_too_deeply_are_rejected() -> None:
    def nested(depth: int) -> Execution:
        graphs = []
        for at in range(depth):
            d = Draft()
            x = d.input(4, name="x")
            graphs.append(d.uninferred(d.op(ToyScale(1.0) if at == depth - 1 else Call(at + 1), x)))
        package = Package((Subgraphs(tuple(graphs)),))
        return Execution(compile(package, Options(num_threads=1, optimize=False), [ToyBackend("all")]))

    assert nested(MAX_CALL_DEPTH).run([ONES]).popitem()[1].tolist() == [1.0] * 4
    with pytest.raises(CompileError, match=f"call one another more than {MAX_CALL_DEPTH} deep"):
        nested(MAX_CALL_DEPTH + 2)


@frozen
class ToyAgain(Op):
    """Calls the subgraph that contains it, without declaring so."""

    def infer(self, x: TensorType) -> TensorType:
        return x.result(x.shape)

    def evaluate_in(self, context: Context, types: CallTypes, x: Array) -> Array:
        (found,) = context.call(0, [x])
        return found


def test_an_undeclared_recursive_call_fails_at_the_same_depth() -> None:
    d = Draft()
    package = Package((Subgraphs((d.uninferred(d.op(ToyAgain(), d.input(4, name="x"))),)),))
    execution = Execution(compile(package, Options(num_threads=1, optimize=False), [ToyBackend("all")]))
    with pytest.raises(ExecutionError, match=f"call one another more than {MAX_CALL_DEPTH} deep"):
        execution.run([ONES])


def test_a_strided_input_is_read_again_in_every_run() -> None:
    execution = Execution(compiled(chain(2.0), lambda s: None))
    whole = np.ones(8, np.float32)
    execution.set_input(0, whole[::2])
    for value in (1.0, 5.0, 9.0):
        whole[:] = value
        execution.execute()
        assert execution.get_output(0).tolist() == [2 * value] * 4


@pytest.mark.parametrize("count", [4, LARGE], ids=["small", "large"])
def test_another_array_for_an_input_is_read_without_rebinding(count: int) -> None:
    b = Builder()
    x = b.input(TensorType(DType.FLOAT32, (count,)), "x")
    execution = onert.Execution(
        onert.compile(Package((b.model([b.add(Binary(BinaryKind.ADD), x, x)]),)), num_threads=1)
    )
    calls = []
    for value in range(1, 6):
        array = np.full(count, value, np.float32)
        execution.set_input(0, array)
        for factor in (1, 3):
            array[:] = factor * value
            execution.execute()
            assert (execution.get_output(0) == 2 * factor * value).all()
        calls.append(execution._frame.bound)
    assert calls[2] is calls[3] is calls[4]


def test_other_strings_are_read_without_rebinding_native_steps() -> None:
    b = Builder()
    words, x = b.input(TensorType(DType.STRING, (2,)), "words"), b.input(TensorType(DType.FLOAT32, (2,)), "x")
    hashes = b.add(Cast(DType.FLOAT32), b.add(MurmurHash3(), words))
    execution = onert.Execution(onert.compile(Package((b.model([b.add(Binary(BinaryKind.ADD), hashes, x)]),))))
    calls, results = [], []
    for pair in ((b"a", b"b"), (b"b", b"a"), (b"c", b"a")):
        (found,) = execution.run([np.array(pair, object), np.zeros(2, np.float32)]).values()
        calls.append(execution._frame.bound)
        results.append(found.tolist())
    assert calls[1] is calls[2]
    assert results[0] == results[1][::-1]
    assert results[2][1] == results[0][0]


def test_an_output_returned_earlier_is_not_overwritten() -> None:
    execution = Execution(compiled(chain(2.0), lambda s: None))
    execution.set_input(0, ONES)
    execution.execute()
    first = execution.get_output(0)
    execution.set_input(0, 7 * ONES)
    execution.execute()
    assert first.tolist() == [2.0] * 4
    assert execution.get_output(0).tolist() == [14.0] * 4


def test_unaligned_arrays_are_copied_as_inputs_and_rejected_as_outputs() -> None:
    raw = np.zeros(17, np.uint8)
    crooked = raw[1:].view(np.float32)
    assert not crooked.flags.aligned
    crooked[:] = 3
    execution = Execution(compiled(chain(2.0), lambda s: None))
    execution.set_input(0, crooked)
    execution.execute()
    assert execution.get_output(0).tolist() == [6.0] * 4
    operand = execution.program.main.subgraph.inputs[0]
    assert not np.shares_memory(execution._frame.tensors[operand].array, raw)
    with pytest.raises(ExecutionError, match="not contiguous or not writeable"):
        execution.set_output(0, crooked)


def test_an_execution_can_run_again_in_the_callback_of_a_failed_run() -> None:
    failing, found = [True], []

    def fail(sequence: Sequence) -> None:
        if failing.pop() if failing else False:
            raise ExecutionError("once")

    execution = Execution(compiled(chain(2.0), fail))
    execution.set_input(0, ONES)

    done = Event()

    def again(future: Future[None]) -> None:
        try:
            execution.execute()
            found.append(execution.get_output(0).tolist())
        finally:
            done.set()

    future = execution.execute_async(again)
    with pytest.raises(ExecutionError, match="once"):
        future.result(PATIENCE)
    assert done.wait(PATIENCE)
    assert found == [[2.0] * 4]


@pytest.mark.parametrize(("start", "fits"), [(0, True), (1, False), (63, False)])
def test_memory_of_the_caller_counts_from_its_first_aligned_byte(start: int, fits: bool) -> None:
    program = compiled(chain(2.0, 3.0), lambda s: None)
    raw = np.zeros(program.arena_bytes + 128, np.uint8)
    begin = -raw.ctypes.data % 64 + start
    given = raw[begin : begin + program.arena_bytes]
    if fits:
        assert Execution(program, arena=given).run([ONES]).popitem()[1].tolist() == [6.0] * 4
    else:
        with pytest.raises(ExecutionError, match="of them before the first multiple of 64; the program needs"):
            Execution(program, arena=given)


def test_a_list_sets_the_first_inputs_whatever_was_set_before() -> None:
    b = Builder("n")
    x, y = (b.input(TensorType(DType.FLOAT32, (4,)), name) for name in "xy")
    made = b.model([b.add(Binary(BinaryKind.SUB), x, y)])
    execution = onert.Execution(onert.compile(Package((made,)), num_threads=1))

    def run(given: object) -> float:
        (found,) = execution.run(given).values()  # type: ignore[arg-type]
        return float(found[0])

    assert run([ONES * 5, ONES]) == 4
    assert run((ONES * 6, ONES)) == 5
    assert run({"y": ONES * 2, "x": ONES * 6}) == 4
    assert run([ONES * 7, ONES * 2]) == 5
    assert run({"y": ONES * 3}) == 4
    assert run([ONES * 8]) == 5
    assert run([ONES * 9]) == 6
    with pytest.raises(ExecutionError, match="expected 2"):
        run([ONES] * 3)
