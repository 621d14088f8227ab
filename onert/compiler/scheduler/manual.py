"""The manual scheduler: the user may choose a backend for all operations, for a kind, or for one operation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import field, frozen

from onert.backend import HOST, Backend
from onert.compiler.legalize.legalize import Support
from onert.compiler.options import Options
from onert.ir import BackendError, CallTypes, CompileError, Operation, Subgraph
from onert.ir.errors import call_foreign
from onert.ir.ops.control_flow.rest import Rest
from onert.ir.ops.custom import Unsupported
from onert.ir.ops.data_movement.permute import Permute
from onert.ir.value import Value

from .operation_names import check_kinds, kinds

BUILTIN = "builtin"


@frozen
class Choice(Value):
    """A backend that the user chose for an operation, and the option that did so."""

    backend: str
    option: str


@frozen
class Choices(Value):
    """The user's choices. `by_location` is OP_BACKEND_MAP with operations' locations instead of indices."""

    all_operations: str | None = None
    by_kind: Mapping[str, str] = field(factory=dict)
    by_location: Mapping[str, str] = field(factory=dict)

    def of(self, operation: Operation) -> Choice | None:
        """The most specific choice for an operation: by location, then by kind, then for all."""
        if operation.location in self.by_location:
            return Choice(self.by_location[operation.location], "OP_BACKEND_MAP")
        for name in kinds(operation) if self.by_kind else ():
            if name in self.by_kind:
                return Choice(self.by_kind[name], f"OP_BACKEND_{name}")
        if self.all_operations is not None:
            return Choice(self.all_operations, "OP_BACKEND_ALLOPS")
        return None


def choices(subgraph: Subgraph, options: Options, others: Iterable[Subgraph] = ()) -> Choices:
    """The options' choices for the operations of the entry, before passes renumber these.

    `others` are the model's other subgraphs. Raises CompileError for an index that no operation has, and for an unknown
    kind of operation.
    """
    check_kinds(options.op_backend, (subgraph, *others), explicit=options.is_explicit("op_backend"))
    by_location = {}
    for index, backend in options.op_backend_map.items():
        if not 0 <= index < len(subgraph.operations):
            raise CompileError(
                f"OP_BACKEND_MAP names operation {index}, expected an index below {len(subgraph.operations)}"
            )
        by_location[subgraph.operations[index].location] = backend
    return Choices(options.op_backend_allops, options.op_backend, by_location)


@frozen
class Assignment(Value):
    """A backend for every operation of a subgraph; `notes` say which operations fell back to another, and why."""

    backends: tuple[Backend, ...]
    notes: tuple[str, ...] = ()


@frozen
class _Refusal(Value):
    operation: Operation
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        if isinstance(self.operation.op, Unsupported):
            return f"{self.operation}: nothing implements {self.operation.op.label} (onert.custom_op can)"
        return f"{self.operation}: {'; '.join(self.reasons)}"


def assign(subgraph: Subgraph, backends: Sequence[Backend], chosen: Choices) -> Assignment:
    """The chosen backend for each operation, otherwise the first that supports it.

    Permutes, and operations that run subgraphs or parts, go to `builtin` if it supports them, even if another backend
    is chosen for all operations. Raises CompileError naming every operation that no backend, or not the chosen one,
    supports.
    """
    found: list[Backend] = []
    missing: list[_Refusal] = []
    notes: list[str] = []
    by_name = {backend.name: backend for backend in backends}
    for operation in subgraph.operations:
        types = subgraph.types(operation)
        reasons: list[str] = []
        for backend in _candidates(operation, by_name, chosen):
            reason = why_not(backend, operation, types)
            if reason is None:
                found.append(backend)
                if reasons:
                    notes.append(f"{operation} runs on {backend.name}: {'; '.join(reasons)}")
                break
            reasons.append(f"{backend.name}: {reason}")
        else:
            missing.append(_Refusal(operation, tuple(reasons)))
    if missing:
        raise CompileError(_sentence(missing))
    return Assignment(tuple(found), tuple(notes))


def _candidates(operation: Operation, by_name: Mapping[str, Backend], chosen: Choices) -> Iterator[Backend]:
    choice = chosen.of(operation)
    internal = isinstance(operation.op, Permute | Rest) or bool(operation.op.subgraphs)
    if internal and BUILTIN in by_name and (choice is None or choice.option == "OP_BACKEND_ALLOPS"):
        yield by_name[BUILTIN]
        yield from (backend for name, backend in by_name.items() if name != BUILTIN)
    elif choice is None:
        yield from by_name.values()
    elif choice.backend in by_name:
        yield by_name[choice.backend]
    else:
        raise CompileError(
            f"{choice.option} names backend {choice.backend!r} for {operation}, expected one of {', '.join(by_name)}"
        )


def why_not(backend: Backend, operation: Operation, types: CallTypes) -> str | None:
    """Why the backend cannot run the operation, None if it can. Raises BackendError if the query fails.

    A tensor whose size is unknown before the run can only be in host memory.
    """
    if backend.memory.name != HOST.name:
        for type_ in (*types.inputs, *types.outputs):
            if type_ is not None and not (type_.is_static and not type_.dtype.is_handle):
                return f"a tensor of {type_} cannot be stored in {backend.memory.name} memory"

    def failed() -> str:
        return f"backend {backend.name} failed to say if it supports {operation}"

    reason: object = call_foreign(BackendError, failed, backend.supports, operation, types)
    if reason is None or isinstance(reason, str):
        return reason
    raise BackendError(
        f"backend {backend.name} returns {reason!r} as its support for {operation}, expected None or a reason"
    )


def support(operation: Operation, types: CallTypes, backends: Sequence[Backend], chosen: Choices) -> Support:
    """The support level of the best backend that may run an operation.

    A backend that the user chose for this operation or its kind counts as the best. A `single` backend counts as
    evaluating operations that call subgraphs, because each call goes through Python.
    """
    choice = chosen.of(operation)
    named = choice is not None and choice.option != "OP_BACKEND_ALLOPS"
    found = Support.NONE
    for backend in _candidates(operation, {each.name: each for each in backends}, chosen):
        if why_not(backend, operation, types) is None:
            if named:
                return Support.NAMED
            if not (backend.evaluates or (backend.single and operation.op.subgraphs)):
                return Support.NATIVE
            found = Support.EVALUATED
    return found


def _sentence(missing: Sequence[_Refusal]) -> str:
    count = f"{len(missing)} operations have" if len(missing) > 1 else "1 operation has"
    what = "them" if len(missing) > 1 else "it"
    # The parts of one operation in the file have its name, and often the same reason.
    each = (f"{said} ({n} times)" if n > 1 else said for said, n in Counter(map(str, missing)).items())
    return f"{count} no backend that runs {what}: " + "; ".join(each)
