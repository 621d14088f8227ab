"""Which backend is assigned which operation."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from attrs import evolve

from onert.backend import Backend
from onert.compiler import Options, compile
from onert.compiler.scheduler.manual import why_not
from onert.ir import BackendError, CallTypes, CompileError, DType, Operation, Package, Subgraph, Subgraphs, TensorType

from .toy import ELSEWHERE, Draft, ToyAdd, ToyBackend, ToyRead, ToyScale, ToyWrite


def chain() -> Subgraph:
    d = Draft()
    x = d.input(4, name="x")
    return d.graph(d.op(ToyAdd(), d.op(ToyScale(3.0), d.op(ToyScale(2.0), x)), x))


def assigned(options: Options, backends: Sequence[Backend], graph: Subgraph | None = None) -> dict[str, str]:
    program = compile(Package((Subgraphs((graph or chain(),)),)), options, backends)
    return {str(o): step.backend for step in program.main.steps for o in step.sequence.body}


BACKENDS = [ToyBackend("first", [ToyScale]), ToyBackend("second")]
ADD, ONE, TWO = "operation 2 ToyAdd", "operation 0 ToyScale", "operation 1 ToyScale"


def test_the_first_backend_that_supports_an_operation_runs_it() -> None:
    assert assigned(Options(), BACKENDS) == {ONE: "first", TWO: "first", ADD: "second"}


def test_all_operations_may_be_assigned_to_one_backend() -> None:
    assert set(assigned(Options(op_backend_allops="second"), BACKENDS).values()) == {"second"}


def test_an_index_wins_over_a_kind_and_a_kind_over_all_operations() -> None:
    options = Options(op_backend_allops="second", op_backend={"ToyScale": "first"}, op_backend_map={1: "second"})
    assert assigned(options, BACKENDS) == {ONE: "first", TWO: "second", ADD: "second"}


def test_a_choice_for_one_kind_does_not_affect_other_kinds() -> None:
    backends = [ToyBackend("first"), ToyBackend("second")]
    options = Options(op_backend_allops="second", op_backend={"ToyScale": "first"})
    assert assigned(options, backends) == {ONE: "first", TWO: "first", ADD: "second"}


@pytest.mark.parametrize(
    ("type_", "reason"),
    [
        (TensorType(DType.FLOAT32, (4,)), None),
        (TensorType(DType.FLOAT32, (None,)), "cannot be stored in elsewhere memory"),
        (TensorType(DType.STRING, (4,)), "cannot be stored in elsewhere memory"),
    ],
)
def test_only_plain_tensors_of_a_known_size_can_be_stored_on_a_device(type_: TensorType, reason: str | None) -> None:
    operation, device = Operation(ToyScale(), (0,), (1,)), ToyBackend("device", memory=ELSEWHERE)
    for types in (CallTypes((type_,), (type_,)), CallTypes((type_,), (TensorType(DType.FLOAT32, (4,)),))):
        found = why_not(device, operation, types)
        assert found is None if reason is None else found is not None and reason in found
        assert why_not(ToyBackend("host"), operation, types) is None


def test_an_index_refers_to_the_operation_in_the_file_before_passes() -> None:
    d = Draft()
    x = d.input(4)
    d.op(ToyAdd(), x, x)
    graph = d.graph(d.op(ToyScale(3.0), d.op(ToyScale(2.0), x)))
    options = Options(op_backend_map={1: "second"})
    assert assigned(options, BACKENDS, graph) == {"operation 1 ToyScale": "second", "operation 2 ToyScale": "first"}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            Options(op_backend_map={2: "first"}),
            "1 operation has no backend that runs it: operation 2 ToyAdd: first: no kernel for ToyAdd",
        ),
        (
            Options(op_backend={"ToyAdd": "third"}),
            "OP_BACKEND_ToyAdd names backend 'third' for operation 2 ToyAdd, expected one of first, second",
        ),
        (Options(op_backend_map={3: "first"}), "OP_BACKEND_MAP names operation 3, expected an index below 3"),
    ],
)
def test_a_choice_that_cannot_be_met_is_rejected(options: Options, sentence: str) -> None:
    with pytest.raises(CompileError) as caught:
        assigned(options, BACKENDS)
    assert str(caught.value) == sentence


def test_one_error_names_all_operations_without_a_backend() -> None:
    d = Draft()
    x = d.input(4)
    graph = d.graph(d.op(ToyWrite(), d.op(ToyScale(), d.op(ToyRead(), x))))
    with pytest.raises(CompileError) as caught:
        assigned(Options(), [ToyBackend("first", [ToyScale]), ToyBackend("second", [ToyAdd])], graph)
    assert str(caught.value) == (
        "2 operations have no backend that runs them: "
        "operation 0 ToyRead: first: no kernel for ToyRead; second: no kernel for ToyRead; "
        "operation 2 ToyWrite: first: no kernel for ToyWrite; second: no kernel for ToyWrite"
    )


def test_one_error_names_an_operation_once_however_many_parts_of_it_have_no_backend() -> None:
    d = Draft()
    x = d.input(4)
    total = d.op(ToyAdd(), d.op(ToyScale(2.0), x), d.op(ToyScale(3.0), x))
    graph = d.graph(total)
    parts = tuple(evolve(operation, location="operation 0 GRID") for operation in graph.operations)
    with pytest.raises(CompileError) as caught:
        assigned(Options(), [ToyBackend("first", [ToyAdd])], evolve(graph, operations=parts))
    assert str(caught.value) == (
        "2 operations have no backend that runs them: operation 0 GRID: first: no kernel for ToyScale (2 times)"
    )


def test_notes_say_which_operations_run_on_a_later_backend_and_why() -> None:
    program = compile(Package((Subgraphs((chain(),)),)), Options(), BACKENDS)
    assert program.notes == (
        "subgraph 0: first runs 2 operations in 1 steps, second runs 1 operations in 1 steps",
        "operation 2 ToyAdd runs on second: first: no kernel for ToyAdd",
    )


class Broken(ToyBackend):
    def supports(self, operation: Operation, types: CallTypes) -> str | None:
        raise ZeroDivisionError("by zero")


def test_a_backend_that_raises_is_named() -> None:
    with pytest.raises(
        BackendError, match="backend broken failed to say if it supports operation 0 ToyScale: ZeroDivision"
    ):
        assigned(Options(), [Broken("broken")])
