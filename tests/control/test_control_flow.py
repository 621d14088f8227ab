"""Models with branches, loops, calls and variables."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from counters import first_value, resource_sum

import onert
from onert.backend import Step
from onert.exec.frames.frame import Frame
from onert.ir import DType, ExecutionError, Op, Package, Quantization, Subgraph, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.control_flow.control import Call, If, While
from onert.ir.ops.control_flow.state import ReadVariable, VarHandle
from onert.ir.ops.data_movement.joining import Concat
from onert.ir.ops.data_movement.reshape import Reshape
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.comparison import Comparison, ComparisonKind

_ONE = TensorType(DType.INT32, ())
_BOOL = TensorType(DType.BOOL, ())
_ROW = TensorType(DType.FLOAT32, (None,))
_ADD, _SUB, _MUL = Binary(BinaryKind.ADD), Binary(BinaryKind.SUB), Binary(BinaryKind.MUL)


def _run(*graphs: Subgraph, inputs: list[object], **options: object) -> list[list[object]]:
    outputs = _execution(*graphs, **options).run([np.asarray(x) for x in inputs])
    return [array.tolist() for array in outputs.values()]


def _execution(*graphs: Subgraph, **options: object) -> onert.Execution:
    return onert.Execution(onert.compile(Package((Subgraphs(graphs),), "made"), **options))


def _with_constant(name: str, op: Op, type_: TensorType, value: object) -> Subgraph:
    """x op value."""
    b = Builder(name)
    x = b.input(type_, "x")
    return b.subgraph([b.add(op, x, b.constant(np.array(value, type_.dtype.numpy)))])


def _branches() -> tuple[Subgraph, Subgraph, Subgraph]:
    b = Builder()
    condition, x = b.input(_BOOL, "condition"), b.input(_ONE, "x")
    y = b.add(If(1, 2, (_ONE,)), condition, x)
    return b.subgraph([y]), _with_constant("then", _ADD, _ONE, 10), _with_constant("else", _MUL, _ONE, 3)


@pytest.mark.parametrize(("condition", "expected"), [(True, 17), (False, 21)])
def test_the_condition_selects_the_branch(condition: bool, expected: int) -> None:
    assert _run(*_branches(), inputs=[np.bool_(condition), np.int32(7)]) == [expected]


def _counting(step: int, limit: int) -> tuple[Subgraph, Subgraph, Subgraph]:
    """while x < limit: x = x + step."""
    b = Builder()
    y = b.add(While(1, 2, (_ONE,)), b.input(_ONE, "x"))
    condition = _with_constant("condition", Comparison(ComparisonKind.LESS), _ONE, limit)
    return b.subgraph([y]), condition, _with_constant("body", _ADD, _ONE, step)


@pytest.mark.parametrize(("start", "expected"), [(0, 12), (10, 13), (99, 99)])
def test_a_loop_runs_until_its_condition_fails(start: int, expected: int) -> None:
    assert _run(*_counting(3, 11), inputs=[np.int32(start)]) == [expected]


def test_an_endless_loop_that_changes_nothing_raises_an_error() -> None:
    with pytest.raises(ExecutionError, match=r"While.*the loop never ends: iteration 1 changed nothing"):
        _run(*_counting(0, 11), inputs=[np.int32(0)])


def test_max_iterations_bounds_a_loop() -> None:
    assert _run(*_counting(1, 9), inputs=[np.int32(0)], max_iterations=9) == [9]
    with pytest.raises(ExecutionError, match="the loop runs more than 8 times"):
        _run(*_counting(1, 9), inputs=[np.int32(0)], max_iterations=8)


def _growing() -> tuple[Subgraph, Subgraph, Subgraph]:
    """while n < 3: rows = rows + rows, n = n + 1. The shape depends on the data."""
    b = Builder()
    n, rows = b.add_many(While(1, 2, (_ONE, _ROW)), b.input(_ONE, "n"), b.input(_ROW, "rows"))
    condition = Builder("condition")
    first = condition.input(_ONE, "n")
    condition.input(_ROW, "rows")
    less = condition.add(Comparison(ComparisonKind.LESS), first, condition.constant(np.int32(3)))
    body = Builder("body")
    first, second = body.input(_ONE, "n"), body.input(_ROW, "rows")
    following = body.add(_ADD, first, body.constant(np.int32(1)))
    doubled = body.add(Concat(0), second, second)
    return b.subgraph([n, rows]), condition.subgraph([less]), body.subgraph([following, doubled])


def test_a_tensor_may_grow_in_a_loop() -> None:
    execution = _execution(*_growing())
    for start, length in ((0, 8), (2, 2), (3, 1), (0, 8)):
        found = list(execution.run([np.int32(start), np.array([5], np.float32)]).values())
        assert found[1].tolist() == [5.0] * length


def test_a_loop_over_tensors_of_unknown_size_binds_its_kernels_once(monkeypatch: pytest.MonkeyPatch) -> None:
    bound, bind = list[Step](), Frame._bind

    def counting(frame: Frame, step: Step) -> Callable[[], None]:
        bound.append(step)
        return bind(frame, step)

    monkeypatch.setattr(Frame, "_bind", counting)
    execution = _execution(*_growing())
    for start in (0, 1, 2):
        execution.run([np.int32(start), np.array([5], np.float32)])
    assert sum(step.sequence.subgraph.name == "body" for step in bound) == len(execution.program.routines[2].steps)


def test_branches_may_be_nested_and_contain_calls() -> None:
    """if c: (call: x + 1) else: (if x < 5: x * 2 else: x - 1)."""
    top = Builder()
    condition, x = top.input(_BOOL, "c"), top.input(_ONE, "x")
    main = top.subgraph([top.add(If(1, 2, (_ONE,)), condition, x)])
    caller = Builder("caller")
    calling = caller.subgraph([caller.add(Call(3, (_ONE,)), caller.input(_ONE, "x"))])
    inner = Builder("inner")
    x = inner.input(_ONE, "x")
    small = inner.add(Comparison(ComparisonKind.LESS), x, inner.constant(np.int32(5)))
    nested = inner.subgraph([inner.add(If(4, 5, (_ONE,)), small, x)])
    leaves = [_with_constant(name, op, _ONE, v) for name, op, v in (("a", _ADD, 1), ("b", _MUL, 2), ("c", _SUB, 1))]
    graphs = (main, calling, nested, *leaves)
    for chosen, value, expected in ((True, 7, 8), (False, 4, 8), (False, 9, 8), (False, 5, 4)):
        assert _run(*graphs, inputs=[np.bool_(chosen), np.int32(value)]) == [expected]


def _counter() -> tuple[Subgraph, Subgraph]:
    """A variable that is set to 100 once and grows by x at every run."""
    b = Builder()
    return b.subgraph([resource_sum(b, b.input(_ONE, "x"))]), first_value(np.int32(100))


def test_state_belongs_to_an_execution_and_can_be_reset() -> None:
    program = onert.compile(Package((Subgraphs(_counter()),), "counter"))
    first, second = onert.Execution(program), onert.Execution(program)

    def step(execution: onert.Execution, x: int) -> int:
        return int(next(iter(execution.run([np.int32(x)]).values())))

    assert [step(first, 1), step(first, 1), step(second, 5), step(first, 1)] == [101, 102, 105, 103]
    first.reset_variables()
    assert [step(first, 7), step(second, 5)] == [107, 110]


def test_reading_an_unassigned_variable_is_an_error_that_names_it() -> None:
    b = Builder()
    y = b.add(ReadVariable((_ONE,)), b.add(VarHandle("", "nothing")))
    with pytest.raises(ExecutionError, match="variable 'nothing' is read before"):
        _run(b.subgraph([y]), inputs=[])


def test_a_subgraph_that_calls_itself_is_refused() -> None:
    b = Builder()
    graph = b.subgraph([b.add(Call(0, (_ONE,)), b.input(_ONE, "x"))])
    with pytest.raises(onert.OnertError, match="cycle"):
        _run(graph, inputs=[np.int32(1)])


def test_a_variable_starts_at_the_zero_point_or_the_nearest_value_of_its_type() -> None:
    for zero, start in ((3, 3), (255, 127)):
        b = Builder()
        state = b.variable(TensorType(DType.INT8, (2,), Quantization((0.5,), (zero,))))
        b.update(state, b.constant(np.zeros(2, np.int8)))
        assert _run(b.subgraph([b.add(Reshape((2,)), state)]), inputs=[]) == [[start, start]]
