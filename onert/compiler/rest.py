"""Cutting a graph where sizes are computed without a bound, so that what follows is compiled for the actual sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from attrs import evolve, frozen

from onert.backend import Backend
from onert.compiler.rewrite.edit import compact
from onert.compiler.rewrite.effects import operation_effect, subgraph_effects
from onert.ir import DType, Effect, ModelError, Operand, Operation, Subgraph, Subgraphs, TensorType
from onert.ir.analysis.model_inference import infer_model
from onert.ir.ops.control_flow.rest import Rest
from onert.ir.ops.control_flow.search import Search
from onert.ir.ops.custom import Python, Unsupported
from onert.ir.ops.data_movement.copy import Copy
from onert.ir.ops.data_movement.fill import FirstEntries
from onert.ir.ops.data_movement.reshape import ShapeOf
from onert.ir.shape import MAX_RANK, num_elements, static
from onert.ir.value import Value

from .entry_signature import Entry, emptied, enter
from .options import Options
from .pipeline import CUT

Places = Mapping[int, Sequence[Operation]]

_STAYING = Python | Unsupported
"""Operations that stay in the entry like those with effects; unsupported ones, so that all are reported at once."""


_SIZE = 6
"""A size for dimensions of unknown size, to find out what depends on nothing else."""
MOST_DELAYS = 16
"""How often the operations on lists are placed anew before they stay in the entry."""


@frozen
class Cut(Value):
    """An entry in which `Rest` operations run `parts`, entries of their own. The first part's number is the number of
    the model's subgraphs."""

    entry: Entry
    parts: tuple[Entry, ...]


def is_wanted(options: Options, backends: Sequence[Backend]) -> bool:
    """Whether to cut entries: not if no backend runs anything natively, or if executions record all ranges."""
    native = any(not (backend.evaluates or backend.single) for backend in backends)
    return native and options.optimize and not (options.minmax_dump or CUT in options.disabled_passes)


def cut(entry: Entry, prepared: Subgraph) -> Cut | None:
    """The entry cut behind the operations whose results still have sizes known only to a run in the graph that the
    passes have `prepared` from it. None if no operation reads such a result, if the shape of an input is unknown, or if
    another graph calls the entry.

    What follows these operations becomes a part, whose inputs have known shapes once a run calls it. Operations with
    effects or on Python objects stay in the entry, and what follows them becomes another part; but lists that are made
    and used up between two cuts move with all operations on them.

    The models of searches, which run them for more tokens in each step, become parts instead.

        i = Where(m); y = Gather(x, i); z = Abs(y)   -->   i = Where(m); z = Rest[Gather, Abs](x, i)
    """
    found = _models_apart(entry)
    if found is not None:
        return found
    graph, model = entry.subgraph, entry.model
    called = {i for each in model.subgraphs for operation in each.operations for i in operation.op.subgraphs}
    given_later = [i for i in prepared.inputs if prepared.type(i).dtype is DType.STRING or _is_open(prepared, i)]
    if entry.index in called or not all(prepared.type(i).is_static for i in given_later):
        return None
    if not any(_follows(prepared, operation) for operation in prepared.operations):
        return None
    opened = {
        _mark(prepared, operation, at)
        for operation in prepared.operations
        for at, o in enumerate(operation.outputs)
        if _is_open(prepared, o)
    }
    opened |= {_kind(operation) for operation in prepared.operations if _follows(prepared, operation)}
    types = {at: prepared.type(i) for at, i in enumerate(prepared.inputs)}
    given = entry.reshaped({at: static(type_.shape) for at, type_ in types.items() if type_.is_static})
    stay, moved = _divided(infer_model(given.model, entry.index)[entry.index], model, opened)
    known = _without_sizes(entry)
    parts: list[Entry] = []
    operations: list[Operation] = []
    for place in sorted({*stay, *moved}):
        if place in moved:
            part = _part(known, moved[place])
            if _is_all_sizes(part, known):
                operations += moved[place]
                operations += stay.get(place, ())
                continue
            results = tuple(known.type(o) for o in part.outputs)
            at = len(model) + len(parts)
            what = f"part {len(parts)} of {len(part.operations)} operations"
            operations.append(Operation(Rest(at, results), part.inputs, part.outputs, what))
            alone = evolve(_with_graph(model, entry.index, compact(part)), signatures=())
            parts.append(enter(alone, None, entry.index))
        operations += stay.get(place, ())
    if not parts:
        return None
    made = {o: known.type(o) for operation in operations for o in operation.outputs if isinstance(operation.op, Rest)}
    begun = compact(evolve(graph.with_types(made), operations=tuple(operations)))
    return Cut(evolve(entry, model=_with_graph(model, entry.index, begun)), tuple(parts))


def _models_apart(entry: Entry) -> Cut | None:
    """The entry with the models of its searches as parts; None if there are no searches."""
    graph, model, parts = entry.subgraph, entry.model, list[Entry]()
    operations: list[Operation] = []
    for operation in graph.operations:
        op = operation.op
        if isinstance(op, Search) and op.models:
            first = len(model) + len(parts)
            parts += (enter(evolve(model, signatures=()), None, i) for i in op.models)
            operation = evolve(operation, op=op.of_parts(tuple(range(first, first + len(op.models)))))
        operations.append(operation)
    if not parts:
        return None
    begun = _with_graph(model, entry.index, evolve(graph, operations=tuple(operations)))
    return Cut(evolve(entry, model=emptied(begun, entry.index)), tuple(parts))


def _with_graph(model: Subgraphs, index: int, graph: Subgraph) -> Subgraphs:
    return evolve(model, subgraphs=tuple(graph if i == index else g for i, g in enumerate(model.subgraphs)))


def _is_open(graph: Subgraph, operand: int) -> bool:
    type_ = graph.type(operand)
    return not type_.is_static and not type_.dtype.is_handle


def _follows(graph: Subgraph, operation: Operation) -> bool:
    """Whether an operation computes with a result of unknown size."""
    return not isinstance(operation.op, FirstEntries | Copy) and any(_is_open(graph, i) for i in operation.used)


def _mark(graph: Subgraph, operation: Operation, at: int) -> object:
    """What tells a result of an operation apart before and after the passes: they keep names and locations, but not
    numbers. Of results without a name, as of the operations that one node of a file becomes, some may be mistaken for
    one another."""
    return graph.operands[operation.outputs[at]].name or (operation.location, operation.op.label, at)


def _kind(operation: Operation) -> object:
    """What tells operations apart before and after the passes, which may have given their operands other names."""
    return operation.location, operation.op.label


def _divided(graph: Subgraph, model: Subgraphs, opened: Set[object]) -> tuple[Places, Places]:
    """The operations that stay, and those of each part, by place: those that stay at a place follow its part.

    Results with these marks have unknown sizes, and operations with these kinds read some.
    """
    effects = subgraph_effects(model)
    affecting = {
        at
        for at, operation in enumerate(graph.operations)
        if operation_effect(operation, effects) is not Effect.NONE or isinstance(operation.op, _STAYING)
    }
    lists = _own_lists(graph, affecting)
    beginnings = dict.fromkeys(lists.values(), 0)
    for _ in range(MOST_DELAYS):
        stay, moved, later = _places(graph, opened, affecting, lists, beginnings)
        if later == beginnings:
            return stay, moved
        beginnings = later
    return _places(graph, opened, affecting, {}, {})[:2]


def _places(
    graph: Subgraph, opened: Set[object], affecting: Set[int], lists: Mapping[int, int], beginnings: Mapping[int, int]
) -> tuple[Places, Places, dict[int, int]]:
    """As `_divided`, with the operations on a list together no earlier than at its place in `beginnings`, and the
    places that all of them can have."""
    staying: dict[int, int] = {}
    moving: dict[int, int] = {}
    after: dict[int, int] = {}  # for each operand, the place of the operations that read it
    last = 0  # the place of the last operation with effects; the next must follow it
    later = dict(beginnings)
    for at, operation in enumerate(graph.operations):
        place = max((after.get(i, 0) for i in operation.used), default=0)
        objects = any(graph.type(i).dtype.is_handle for i in (*operation.used, *operation.outputs))
        if at in affecting:
            place = last = max(place, last)
        elif not place and at not in lists and _kind(operation) in opened and _follows(graph, operation):
            place = 1
        if at in lists:
            place = later[lists[at]] = max(place, later[lists[at]])
        if place and at not in affecting and (at in lists or not objects):
            moving[at] = place
            after.update(dict.fromkeys(operation.outputs, place))
            continue
        staying[at] = place
        for i, out in enumerate(operation.outputs):
            unknown = bool(graph.operands[out].name) or _is_open(graph, out)
            opens = unknown and _mark(graph, operation, i) in opened and not graph.type(out).dtype.is_handle
            after[out] = place + 1 if place or opens else 0
    for at in reversed(_sizes(graph, affecting)):
        readers = [user for out in graph.operations[at].outputs for user in graph.uses.get(out, ())]
        if at in staying and readers and moving.keys() >= set(readers):
            moving[at] = min(moving[user] for user in readers)
            del staying[at]
    return _by_place(graph, staying), _by_place(graph, moving), later


def _by_place(graph: Subgraph, places: Mapping[int, int]) -> Places:
    found: dict[int, list[Operation]] = {}
    for at in sorted(places):
        found.setdefault(places[at], []).append(graph.operations[at])
    return found


def _sizes(graph: Subgraph, affecting: Set[int]) -> list[int]:
    """The operations that compute with nothing but the shapes of tensors of unknown size: a part that receives such a
    tensor knows its shape, but not the elements of what is computed from it elsewhere."""
    sizes: set[int] = set()
    found = []
    for at, operation in enumerate(graph.operations):
        varying = [i for i in operation.used if not graph.operands[i].is_constant]
        measures = isinstance(operation.op, ShapeOf) and _is_open(graph, operation.used[0])
        if at in affecting or graph.kept.intersection(operation.outputs) or not (measures or sizes.issuperset(varying)):
            continue
        if varying and all(t.dtype.is_integer and _is_small(t.shape) for t in map(graph.type, operation.outputs)):
            sizes.update(operation.outputs)
            found.append(at)
    return found


def _is_small(shape: tuple[int | None, ...]) -> bool:
    """Whether a tensor has the size of a shape."""
    count = num_elements(shape)
    return count is not None and count <= MAX_RANK


def _own_lists(graph: Subgraph, affecting: Set[int]) -> dict[int, int]:
    """The operations without effects on lists that only such operations read and write: each is mapped to the first
    operation on the same lists."""
    first: dict[int, int] = {}

    def root(at: int) -> int:
        while first.setdefault(at, at) != at:
            first[at] = first[first[at]]  # so that a long chain is followed once
            at = first[at]
        return at

    kept: set[int] = set()
    for at, operation in enumerate(graph.operations):
        for i in (*operation.used, *operation.outputs):
            type_ = graph.type(i).dtype
            if not type_.is_handle:
                continue
            maker = graph.definitions.get(i)
            a, b = sorted((root(at), root(at if maker is None else maker)))
            first[b] = a
            if type_ is not DType.VARIANT or maker is None or i in graph.kept or at in affecting:
                kept.add(at)
    found = {at: root(at) for at in first}
    staying = {found[at] for at in kept}
    return {at: own for at, own in found.items() if own not in staying}


def _part(graph: Subgraph, operations: Sequence[Operation]) -> Subgraph:
    """The operations as a graph of their own, with the operands' numbers. Its inputs have unknown sizes."""
    made = {o for operation in operations for o in operation.outputs}
    used = dict.fromkeys(i for operation in operations for i in operation.used)
    inputs = tuple(i for i in used if i not in made and not graph.operands[i].is_constant)
    own = set(map(id, operations))
    read = {i for operation in graph.operations if id(operation) not in own for i in operation.used} | graph.kept
    outputs = tuple(o for operation in operations for o in operation.outputs if o in read)
    operands = list(graph.operands)
    for i in inputs:
        operands[i] = Operand(_unsized(graph.type(i)), graph.operands[i].name)
    return Subgraph(tuple(operands), tuple(operations), inputs, outputs, graph.name)


def _is_all_sizes(part: Subgraph, known: Subgraph) -> bool:
    """Whether the sizes of all results are unknown even if those of the inputs are known, and the operations are quick
    to evaluate: then compiling the part for sizes gains nothing.

    Inference tries a size for all dimensions. If that breaks a rule, or is mistaken, the part is only slower.
    """
    if any(operation.op.sized is None for operation in part.operations):
        return False
    given = {i: known.type(i) for i in part.inputs}
    tried = {i: t.with_shape(tuple(_SIZE if d is None else d for d in t.shape)) for i, t in given.items() if t.ranked}
    try:
        found = infer_model(Subgraphs((part.with_types(tried),)))[0]
    except ModelError:
        return False
    return not any(found.type(o).is_static for operation in found.operations for o in operation.outputs)


def _unsized(type_: TensorType) -> TensorType:
    return type_.with_shape((None,) * type_.rank) if type_.ranked else type_


def _without_sizes(entry: Entry) -> Subgraph:
    """The entry's graph with the types that its results have for inputs of any size."""
    graph = entry.subgraph
    opened = graph.with_types({i: _unsized(graph.type(i)) for i in graph.inputs})
    try:
        return infer_model(_with_graph(entry.model, entry.index, opened), entry.index)[entry.index]
    except ModelError:  # an operation requires sizes
        return graph.with_types({o: _unsized(graph.type(o)) for each in graph.operations for o in each.outputs})
