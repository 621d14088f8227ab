"""Resource variables, including initial values assigned by a CallOnce subgraph, are state of a bundle."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import onert
from onert.compiler.state.resources import with_variables
from onert.ir import (
    Array,
    Constant,
    DType,
    Package,
    Resource,
    Signature,
    SignatureTensor,
    Subgraph,
    Subgraphs,
    TensorType,
)
from onert.ir.analysis.verify import verify
from onert.ir.builder import Builder
from onert.ir.ops.control_flow.control import Call, CallOnce
from onert.ir.ops.control_flow.state import AssignVariable, ReadVariable, VarHandle
from onert.ir.ops.elementwise.binary import Binary, BinaryKind

from .machines import needs_compiler

TYPE = TensorType(DType.FLOAT32, (2,))
ADD = Binary(BinaryKind.ADD)


def _handle(b: Builder, name: str = "n") -> int:
    return b.add(VarHandle("", name))


def _read(b: Builder, handle: int) -> int:
    return b.add(ReadVariable((TYPE,)), handle)


def _once(first: Array, steps: int = 0) -> Subgraph:
    """A subgraph that assigns a constant to n, computed in `steps` additions."""
    b = Builder("once")
    handle, value = _handle(b), b.constant(first)
    for _ in range(steps):
        value = b.add(ADD, value, b.constant(np.ones(2, np.float32)))
    b.add_many(AssignVariable(), handle, value)
    return b.subgraph([])


def _model(body: Callable[[Builder, int], list[int]], *others: Subgraph, once: bool = True) -> Subgraphs:
    """A graph with input x that calls subgraph 1 once and then continues with `body`."""
    b = Builder()
    x = b.input(TYPE, "x")
    if once:
        b.add_many(CallOnce(1))
    return Subgraphs((b.subgraph(body(b, x)), *others))


def _totals(b: Builder, x: int) -> list[int]:
    """The previous value, and the sum of all inputs so far."""
    handle = _handle(b)
    before = _read(b, handle)
    b.add_many(AssignVariable(), handle, b.add(ADD, before, x))
    return [before, b.add(ADD, _read(b, handle), b.constant(np.zeros(2, np.float32)))]


def _swap(b: Builder, x: int) -> list[int]:
    """Swap two variables, the second of which was just assigned the input."""
    handles = [_handle(b), _handle(b, "m")]
    b.add_many(AssignVariable(), handles[1], x)
    one, other = (_read(b, handle) for handle in handles)
    b.add_many(AssignVariable(), handles[0], other)
    b.add_many(AssignVariable(), handles[1], one)
    return [_read(b, handle) for handle in handles]


@needs_compiler
@pytest.mark.parametrize("body", [_totals, _swap])
@pytest.mark.parametrize(("first", "steps"), [((0, 0), 0), ((5, -1), 0), ((5, -1), 3), ((0, 7), 0)])
def test_bundles_hold_the_same_state_as_executions(
    tmp_path: Path, body: Callable[[Builder, int], list[int]], first: tuple[float, float], steps: int
) -> None:
    package = Package((_model(body, _once(np.array(first, np.float32), steps)),), "kept")
    onert.bundle(package, tmp_path)
    loaded = onert.load_bundle(tmp_path)
    for _ in range(2):
        execution = onert.Execution(onert.compile(package, backends=("reference",)))
        for number in range(3):
            x = np.array([number + 1, 10 * number], np.float32)
            found, wanted = loaded.run([x]).values(), execution.run([x]).values()
            assert [a.tolist() for a in found] == [a.tolist() for a in wanted]
        loaded.reset()


def test_variables_initialised_to_zero_need_no_assignment() -> None:
    model = _model(_totals, _once(np.zeros(2, np.float32)))
    found = with_variables(model.primary, model)
    verify(Subgraphs((found, model[1])))
    assert [o.op.label for o in found.operations] == ["Copy", "Binary.ADD", "Binary.ADD"]
    assert [operand.resource for operand in found.operands if operand.variable] == [
        Resource("", "n", Constant(np.zeros(2, np.float32)))
    ]


def test_a_graph_without_resource_variables_is_unchanged() -> None:
    model = _model(lambda b, x: [b.add(ADD, x, x)], once=False)
    assert with_variables(model.primary, model) is model.primary


def _late(b: Builder, x: int) -> list[int]:
    found = _totals(b, x)
    b.add_many(CallOnce(1))
    return found


def _called(b: Builder, x: int) -> list[int]:
    b.add_many(Call(1))
    return _totals(b, x)


def _given(b: Builder, x: int) -> list[int]:
    return [_read(b, b.input(TensorType(DType.RESOURCE, ())))]


def _of_another_type(b: Builder, x: int) -> list[int]:
    handle = _handle(b)
    b.add_many(AssignVariable(), handle, b.constant(np.zeros(3, np.float32)))
    return [_read(b, handle)]


WRONG = [
    (_late, True, "comes after variables are read or assigned"),
    (_called, True, "runs a subgraph with resource variables"),
    (_given, True, "has a handle that is known only at run time"),
    (_of_another_type, True, "variable 'n' has f32[3], expected f32[2]"),
]


@pytest.mark.parametrize(("body", "once", "message"), WRONG, ids=lambda v: getattr(v, "__name__", None))
def test_state_not_known_before_the_run_is_rejected(
    body: Callable[[Builder, int], list[int]], once: bool, message: str
) -> None:
    model = _model(body, _once(np.zeros(2, np.float32)), once=once)
    with pytest.raises(onert.CompileError) as caught:
        with_variables(model.primary, model)
    assert message in str(caught.value)


def test_a_call_once_subgraph_that_reads_variables_is_rejected() -> None:
    b = Builder("once")
    handle = _handle(b)
    b.add_many(AssignVariable(), handle, b.add(ADD, _read(b, handle), b.constant(np.zeros(2, np.float32))))
    model = _model(_totals, b.subgraph([]))
    with pytest.raises(onert.CompileError, match="does more than assign known values"):
        with_variables(model.primary, model)


def test_reading_a_variable_that_was_never_assigned_is_rejected(tmp_path: Path) -> None:
    package = Package((_model(_totals, once=False),), "kept")
    with pytest.raises(onert.CompileError, match="variable 'n' is read before anything was assigned to it"):
        onert.bundle(package, tmp_path)


@needs_compiler
@pytest.mark.parametrize("first", [0, 5])
def test_entry_points_share_variables(tmp_path: Path, first: float) -> None:
    model = _model(_totals, _once(np.full(2, first, np.float32)))
    ends = [(SignatureTensor("x", model.primary.inputs[0]),), (SignatureTensor("y", model.primary.outputs[1]),)]
    both = Subgraphs(model.subgraphs, tuple(Signature(key, 0, *ends) for key in ("one", "two")))
    onert.bundle(Package((both,), "kept"), tmp_path, signatures=("one", "two"))
    loaded = onert.load_bundle(tmp_path)
    ones = np.ones(2, np.float32)
    for _ in range(2):
        for done, entry in enumerate(("kept_two", "kept_one", "kept_two"), 1):
            assert list(loaded.run([ones], entry=entry).values())[-1].tolist() == [first + done] * 2
        loaded.reset()
