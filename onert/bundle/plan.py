"""The content of a bundle: entry points of compiled programs, and the placement of their tensors."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

from attrs import evolve, frozen

from onert.backend import Backend, Beginning, EntryPoint, Place, Program, Region, TensorInfo
from onert.compiler.options import Options
from onert.compiler.rewrite.edit import Edit, definer
from onert.compiler.rewrite.effects import subgraph_effects
from onert.compiler.routine import plan_routine
from onert.compiler.scheduler.manual import Choices
from onert.compiler.state.resources import with_variables
from onert.ir import CompileError, Subgraph, Subgraphs
from onert.ir.ops.data_movement.copy import Copy
from onert.ir.ops.data_movement.fill import FirstEntries
from onert.ir.shape import normalize_axis
from onert.ir.value import Value

from .overlap import together
from .state import require_begun, undoing, with_beginnings
from .variables import ALIGNMENT, Role, Variable


@frozen
class Plan(Value):
    """Entry points with one layout of mutables: all inputs, then all outputs, then all state. With `overlap`, the
    memory shared by inputs, outputs and intermediate results comes first.

    `activation_bytes` is the size of the largest arena, `live_bytes` the most that is alive in it at the same time.
    """

    entries: tuple[EntryPoint, ...]
    variables: tuple[Variable, ...]
    mutable_bytes: int
    activation_bytes: int
    live_bytes: int
    overlap: bool = False


@frozen
class _Draft(Value):
    """An entry point whose variables are not placed yet; `roots` maps operands to the operand whose memory they share.

    `joint` is the number of bytes of mutables shared by inputs, outputs and intermediate results.
    """

    entry: EntryPoint
    operands: tuple[tuple[int, Role, TensorInfo], ...]
    roots: Mapping[int, int]
    arena: int
    live: int
    joint: int


def plan(
    programs: Mapping[str, Program], backend: Backend, options: Options, overlap: bool = False, *, share: bool = False
) -> Plan:
    """Plan programs, given by the symbols of their entry points, for a backend that runs all of each.

    With `overlap`, inputs, outputs and intermediate results share memory. With `share`, variables of several entry
    points with the same name and type become one. Raises CompileError if a shape is unknown, and for every operation
    that the backend does not support.
    """
    drafts = [_draft(symbol, program, backend, options, overlap) for symbol, program in programs.items()]
    require_begun({draft.entry.symbol: draft.entry.subgraph for draft in drafts})
    places: list[dict[int, Place]] = [dict(draft.entry.places) for draft in drafts]
    placed: list[_Placed] = []
    resources: dict[Hashable, tuple[Place, TensorInfo]] = {}
    end = max(draft.joint for draft in drafts)
    for role in Role:
        for draft, own in zip(drafts, places, strict=True):
            for operand, info in ((at, info) for at, kind, info in draft.operands if kind is role):
                resource = draft.entry.subgraph.operands[operand].resource
                known = None if resource is None else resources.get(resource.key)
                alike = _alike(draft, info, placed) if share and operand not in own else None
                if known is not None:
                    own[operand] = _shared(known, info)
                elif alike is not None:
                    own[operand] = alike
                elif operand not in own:
                    own[operand] = Place(Region.MUTABLES, end)
                    end += -(-info.type.nbytes // ALIGNMENT) * ALIGNMENT
                if resource is not None:
                    resources[resource.key] = own[operand], info
                placed.append((draft.entry.symbol, role, info, own[operand]))
    for draft, own in zip(drafts, places, strict=True):
        own |= {operand: own[root] for operand, root in draft.roots.items()}
    return Plan(
        tuple(evolve(draft.entry, places=own) for draft, own in zip(drafts, places, strict=True)),
        tuple(_variables(placed, share)),
        end,
        max(draft.arena for draft in drafts),
        max(draft.live for draft in drafts),
        overlap,
    )


def _shared(known: tuple[Place, TensorInfo], info: TensorInfo) -> Place:
    """The place of a resource variable that entry points share. Raises CompileError if its types differ."""
    place, other = known
    if (info.dtype, info.shape) != (other.dtype, other.shape):
        raise CompileError(f"variable {info.name!r} is {info.type} for one entry point, {other.type} for another")
    return place


_Placed = tuple[str, Role, TensorInfo, Place]
"""A variable: its entry point, its role, its description and its place."""


def _alike(draft: _Draft, info: TensorInfo, placed: Iterable[_Placed]) -> Place | None:
    """The place of another entry point's variable with the same name and type; None if there is none, or if this entry
    point uses that place already."""
    own = {place for symbol, _, _, place in placed if symbol == draft.entry.symbol}
    kind = (info.name, info.dtype, info.shape, info.quantization)
    return next(
        (
            place
            for _, _, other, place in placed
            if place not in own and (other.name, other.dtype, other.shape, other.quantization) == kind
        ),
        None,
    )


def _variables(placed: Sequence[_Placed], share: bool) -> Iterator[Variable]:
    """The variables with unique names: one used by several entry points is prefixed with the entry point's name, unless
    they share the variable."""
    owners: dict[str, set[Hashable]] = {}
    for symbol, _, info, place in placed:
        owners.setdefault(info.name, set()).add(place if share else symbol)
    for symbol, role, info, place in placed:
        name = f"{symbol}/{info.name}" if len(owners[info.name]) > 1 else info.name
        yield Variable(symbol, role, evolve(info, name=name), place.offset)


def _draft(symbol: str, program: Program, backend: Backend, options: Options, overlap: bool) -> _Draft:
    model = Subgraphs(tuple(routine.subgraph for routine in program.routines))
    try:
        graph = with_variables(program.main.subgraph, model)
    except CompileError as error:
        raise CompileError(f"{symbol} cannot be bundled: {error}") from error
    graph, outputs = _with_lengths(graph, program.outputs)
    graph, beginnings = with_beginnings(graph)
    operands = tuple(_operands(program.inputs, outputs, graph, beginnings))
    reasons = list(_why_not(graph, operands))
    try:
        planned = plan_routine(graph, subgraph_effects(model), (backend,), Choices(), options)
    except CompileError as error:
        raise CompileError(f"{symbol} cannot be bundled: {'; '.join([*reasons, str(error)])}") from error
    if reasons:
        raise CompileError(f"{symbol} cannot be bundled: {'; '.join(reasons)}")
    arena = next(iter(planned.arenas.values()), None)
    size = live = joint = 0
    places: dict[int, Place] = {}
    if overlap:
        shared = together(planned, options.planner)
        joint, live = shared.size, shared.live
        places = {operand: Place(Region.MUTABLES, offset) for operand, offset in shared.offsets.items()}
    elif arena is not None:
        size, live = arena.size, arena.lower_bound
        places = {operand: Place(Region.ACTIVATIONS, p.offset) for operand, p in arena.placements.items()}
    for operand in graph.lasting:
        size = -(-size // ALIGNMENT) * ALIGNMENT
        places[operand] = Place(Region.ACTIVATIONS, size)
        size += graph.type(operand).nbytes
    undone, undo, roots = undoing(planned, backend, options.settings)
    sequences = tuple(part.sequence for part in planned.parts)
    entry = EntryPoint(symbol, undone, sequences, places, undo, beginnings)
    return _Draft(entry, operands, roots, size, live, joint)


def _with_lengths(graph: Subgraph, outputs: Sequence[TensorInfo]) -> tuple[Subgraph, tuple[TensorInfo, ...]]:
    """The graph with outputs of variable length replaced by whole tensors, and their lengths as further outputs.

    y = FirstEntries(x, n); return y    -->    y = Copy(x); m = Copy(n); return y, m
    """
    edit, gone = Edit(graph), set[int]()
    operands, infos = list(graph.outputs), list(outputs)
    for number, output in enumerate(graph.outputs):
        cuts, whole, counts = _whole(graph, output)
        if not cuts or not graph.type(whole).is_static or output in graph.uses:
            continue
        given = (whole, *counts.values())
        made = edit.like(whole, graph.operands[output].name), *(edit.like(count) for count in counts.values())
        cut = graph.operations[cuts[0]]
        copies = (evolve(cut, op=Copy(), inputs=(i,), outputs=(o,)) for i, o in zip(given, made, strict=True))
        edit.replace(cuts[0], *copies)
        gone.add(cuts[0])
        for at in cuts[1:]:
            if gone.issuperset(graph.uses[graph.operations[at].outputs[0]]):
                edit.remove(at)
                gone.add(at)
        operands[number] = made[0]
        operands += made[1:]
        infos[number] = evolve(outputs[number], shape=graph.type(whole).shape)
        name = f"{outputs[number].name or f'output{number}'}_length"
        for axis, count in counts.items():
            of = graph.type(count)
            infos.append(TensorInfo(name if len(counts) == 1 else f"{name}{axis}", of.dtype, of.shape))
    if tuple(operands) == graph.outputs:
        return graph, tuple(infos)
    edit.end_with(operands, graph.state)
    return edit.done(), tuple(infos)


def _whole(graph: Subgraph, operand: int) -> tuple[list[int], int, dict[int, int]]:
    """The FirstEntries operations that produce an operand, last one first, the tensor that they cut, and the count
    along each axis."""
    cuts, counts = list[int](), dict[int, int]()
    while (made := definer(graph, operand)) is not None and isinstance(made.op, FirstEntries):
        cuts.append(graph.definitions[operand])
        operand, count = made.used
        counts[normalize_axis(made.op.axis, graph.type(operand).rank)] = count
    return cuts, operand, dict(sorted(counts.items()))


def _operands(
    inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo], graph: Subgraph, beginnings: Iterable[Beginning]
) -> Iterator[tuple[int, Role, TensorInfo]]:
    """The operands of a program's subgraph that callers see, with the names that callers use."""
    for role, operands, infos in (
        (Role.INPUT, graph.inputs, inputs),
        (Role.OUTPUT, graph.outputs, outputs),
    ):
        for number, (operand, info) in enumerate(zip(operands, infos, strict=True)):
            yield operand, role, info if info.name else evolve(info, name=f"{role.value}{number}")
    for operand in _state(graph, beginnings):
        t = graph.type(operand)
        name = graph.operands[operand].name or f"state {operand}"
        yield operand, Role.STATE, TensorInfo(name, t.dtype, t.shape, t.quantization)


def _state(graph: Subgraph, beginnings: Iterable[Beginning]) -> list[int]:
    """The variables that a subgraph reads or writes."""
    touched = {update.variable for update in graph.state} | {i for o in graph.operations for i in o.used}
    begins = {beginning.started for beginning in beginnings}
    return [i for i, operand in enumerate(graph.operands) if operand.variable and i in touched | begins]


def _why_not(graph: Subgraph, operands: Iterable[tuple[int, Role, TensorInfo]]) -> Iterator[str]:
    """A sentence for each operand that callers cannot place in memory, with the reason."""
    for operand, role, info in operands:
        t = graph.type(operand)
        if t.dtype.is_handle:
            yield f"{info.name!r} has elements of type {t.dtype.text}, for which C has no type"
        elif not t.is_static:
            more = ": give it one" if role is Role.INPUT else ", independent of the values of inputs"
            yield f"{info.name!r} has type {t}, expected a shape that is known before the run{more}"
