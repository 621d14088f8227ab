"""Loops and branches with inner graphs, as programs of their commands with jumps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from attrs import evolve, frozen

from onert.backend import Group
from onert.backend.planner.arrangement import arranged
from onert.backend.planner.liveness import lifetimes
from onert.ir import CallTypes, Op, Operation, Subgraph
from onert.ir.ops.control_flow.enclosed import Branch, Loop
from onert.ir.symbolic.cases import cases_of
from onert.ir.symbolic.trace import minimum
from onert.ir.value import Value
from onert_llvm.codegen.kernel_abi import KernelSpec
from onert_llvm.command.command import (
    REPORT_BYTES,
    Access,
    Area,
    Command,
    Lowered,
    Pointer,
    Slot,
    is_idle,
    jump,
    most_pieces,
)
from onert_llvm.kernels.data_movement.row_copy import CopyRows
from onert_llvm.lower.command_builder import Lowering
from onert_llvm.lower.rule import Rule

_ALIGNMENT = 64
_PIECE = 1 << 14
"""The number of bytes that one thread copies as a piece."""

Commands = tuple[Command, ...]
Why = Callable[[Operation, CallTypes], str | None]
Find = Callable[[Subgraph, Sequence[int]], Rule]
Fuse = Callable[[Subgraph, Sequence[int]], tuple[Group, ...]]


@frozen
class InnerGraphRules(Value):
    """The rules for operations with inner graphs. `why` is the reason why an inner operation does not run, `rule` finds
    that of a group."""

    why: Why
    rule: Find
    fuse: Fuse

    def rules(self) -> Mapping[type[Op], Rule]:
        sides = {Loop: self.loop, Branch: self.branch}
        return {kind: Rule(self.why_not, lower, encloses=True) for kind, lower in sides.items()}

    def why_not(self, op: Loop | Branch, types: CallTypes) -> str | None:
        """Why some operation of the inner graphs is not native; None if all are."""
        for graph in (op.condition, op.body) if isinstance(op, Loop) else (op.then, op.otherwise):
            for operation in graph.operations:
                reason = self.why(operation, graph.types(operation))
                if reason is not None:
                    return f"in it {operation}: {reason}"
        return None

    def loop(self, lowering: Lowering, operations: Sequence[int]) -> None:
        """A loop. Its state is stored where its results are; what never changes is read in place."""
        at, operation, op = lowering.single(operations, Loop)
        stays = [i == o for i, o in zip(op.body.inputs, op.body.outputs, strict=True)]
        states: list[Pointer] = []
        for given, result, same in zip(operation.used, operation.outputs, stays, strict=True):
            states.append(lowering.operand(given if same else result))
            if not same or result in lowering.subgraph.kept or lowering.subgraph.uses.get(result):
                ends = lowering.operand(given), lowering.operand(result)
                for command in copies(lowering, at, *ends, lowering.type(given).nbytes):
                    lowering.add(command)
        reports = lowering.reports
        condition = InnerGraph(self, lowering, op.condition, dict(zip(op.condition.inputs, states, strict=True)))
        body = InnerGraph(self, lowering, op.body, _in_place(self, op.body, states))
        tested, round_ = condition.commands(at), body.commands(at)
        round_ += tuple(self._advance(lowering, at, op.body, body.places, states))
        (room,) = lowering.scratch(max(condition.size, body.size))
        slots: dict[str, Slot] = {"flag": condition.places[op.condition.outputs[0]], "stop": Pointer(Area.STOP)}
        if op.most is not None:
            slots |= {"most": op.most, "report": lowering.check(at, "the loop runs more than {} times")}
        if lowering.reports != reports:
            slots |= {"reports": reports, "checks": (lowering.reports.offset - reports.offset) // REPORT_BYTES}
        steps = (jump(at, len(round_) + 1), *round_, *tested, jump(at, -len(tested) - len(round_), **slots))
        changed = [o for o, same in zip(operation.outputs, stays, strict=True) if not same]
        lowering.program(at, steps, operation.used, changed, room)

    @staticmethod
    def _advance(
        lowering: Lowering, at: int, body: Subgraph, places: Mapping[int, Pointer], states: Sequence[Pointer]
    ) -> list[Command]:
        """The commands that copy a round's results to where the next round reads them."""
        return [
            command
            for result, state in zip(body.outputs, states, strict=True)
            if places[result] != state
            for command in copies(lowering, at, places[result], state, body.type(result).nbytes)
        ]

    def branch(self, lowering: Lowering, operations: Sequence[int]) -> None:
        """A branch. Both sides read the operands and write the results in place."""
        at, operation, op = lowering.single(operations, Branch)
        condition, *given = operation.used
        programs: list[Commands] = []
        size = 0
        for graph in (op.then, op.otherwise):
            places = dict(zip(graph.inputs, map(lowering.operand, given), strict=True))
            places |= dict(zip(graph.outputs, map(lowering.operand, operation.outputs), strict=True))
            side = InnerGraph(self, lowering, graph, places)
            programs.append(side.commands(at))
            size = max(size, side.size)
        (room,) = lowering.scratch(size)
        then, otherwise = programs
        otherwise = (*otherwise, jump(at, len(then) + 1))
        steps = (jump(at, len(otherwise) + 1, flag=lowering.operand(condition)), *otherwise, *then)
        lowering.program(at, steps, operation.used, operation.outputs, room)


def copies(lowering: Lowering, at: int, source: Pointer, target: Pointer, nbytes: int) -> Iterator[Command]:
    """The commands of a copy: pieces that threads may share, and the rest."""
    spec, done = KernelSpec(CopyRows(), lowering.isa), 0
    for width in (_PIECE, nbytes % _PIECE):
        rows = (nbytes - done) // width if width else 0
        if not rows:
            continue
        ends = [evolve(end, offset=end.offset + done) for end in (source, target)]
        slots: dict[str, Slot] = {"source": ends[0], "target": ends[1], "width": width}
        slots |= {"source_step": width, "target_step": width}
        accesses = (Access(ends[0], rows * width), Access(ends[1], rows * width, True))
        yield Command(spec, slots, rows, minimum(rows, most_pieces(lowering.threads)), accesses, at)
        done += rows * width


def _in_place(enclosed: InnerGraphRules, body: Subgraph, states: Sequence[Pointer]) -> dict[int, Pointer]:
    """The places of a loop body's inputs, and of those outputs that may overwrite them: when the output is computed, or
    later, nothing reads the input; or only a part of it changes.
    """
    groups = enclosed.fuse(body, range(len(body.operations)))
    when = {at: number for number, group in enumerate(groups) for at in group.operations}
    places = dict(zip(body.inputs, states, strict=True))
    for given, result, state in zip(body.inputs, body.outputs, states, strict=True):
        if given == result:
            continue
        maker = body.definitions[result]
        readers = body.uses.get(given, ())
        own = body.operations[maker]
        changes_part = own.op.overwrites and own.used[0] == given and own.used.count(given) == 1
        if all(when[r] < when[maker] or (r == maker and changes_part) for r in readers):
            places[result] = state
    return places


class InnerGraph:
    """The commands of an inner graph.

    `places` maps its operands to memory: the given ones, and the others in `size` bytes of the outer operation's
    scratch memory.
    """

    def __init__(
        self, enclosed: InnerGraphRules, lowering: Lowering, graph: Subgraph, places: Mapping[int, Pointer]
    ) -> None:
        self.enclosed = enclosed
        self.lowering = lowering
        self.graph = graph
        self.places = dict(places)
        self.size = 0
        (self._room,) = lowering.scratch(0)

    def commands(self, at: int) -> Commands:
        """The graph's commands, as part of operation `at` of the outer graph."""
        return self._moved(self._lowered(), at)

    def _scratch(self, offset: int) -> Pointer:
        """A place in the outer operation's scratch memory."""
        return evolve(self._room.pointer, offset=self._room.pointer.offset + offset)

    def _place(self, groups: Sequence[Group]) -> None:
        """Assign scratch memory to computed operands that are stored, by their lifetimes."""
        when = [0] * len(self.graph.operations)
        for number, group in enumerate(groups):
            for at in group.operations:
                when[at] = number
        skipped = {*self.places, *(i for group in groups for i in group.unstored)}
        made = [o for operation in self.graph.operations for o in operation.outputs if o not in skipped]
        alive = lifetimes(self.graph, [(operand,) for operand in made], when)
        found = arranged([max(self.graph.type(operand).nbytes, 1) for operand in made], alive, _ALIGNMENT, order=alive)
        self.places |= {o: self._scratch(at) for o, at in zip(made, found.offsets, strict=True)}
        self.size = found.size

    def _lowered(self) -> Lowered:
        """The commands in terms of the graph's own operands, which get their places."""
        graph = self.graph
        groups = self.enclosed.fuse(graph, range(len(graph.operations)))
        self._place(groups)
        outer = self.lowering
        inner = Lowering(graph, outer.isa, outer.settings, compact=outer.compact)
        inner.threads = outer.threads
        cases = cases_of(d for operation in graph.operations for i in operation.used for d in graph.type(i).shape)
        for group in groups:
            inner.begin(group.operations[0])
            self.enclosed.rule(graph, group.operations).lower_by_cases(inner, group.operations, cases)
        return inner.finish()

    def _moved(self, lowered: Lowered, at: int) -> Commands:
        """Translate commands from the graph's own operands to the outer graph's memory."""
        constants, reports = self.lowering.include(at, lowered)
        room, self.size = self.size, self.size + lowered.scratch
        known: dict[int, Pointer] = {}

        def moved(pointer: Pointer) -> Pointer:
            if pointer.area is Area.CONSTANT:
                base = constants[pointer.index]
            elif pointer.area is Area.SCRATCH:
                base = self._scratch(room)
            elif pointer.area is Area.REPORT:
                base = reports
            elif pointer.area is Area.STOP:
                return pointer
            else:
                base = self.places.get(pointer.index) or known.get(pointer.index) or constant(pointer.index)
            return evolve(base, offset=base.offset + pointer.offset)

        def constant(operand: int) -> Pointer:
            data = self.graph.operands[operand].data
            assert data is not None
            known[operand] = self.lowering.constant(data.array)
            return known[operand]

        def each(command: Command) -> Command:
            slots = {n: moved(v) if isinstance(v, Pointer) else v for n, v in command.slots.items()}
            accesses = tuple(evolve(a, pointer=moved(a.pointer)) for a in command.accesses)
            program = tuple(map(each, command.program))
            return evolve(command, slots=slots, accesses=accesses, operation=at, program=program)

        return tuple(command for command in map(each, lowered.commands) if not is_idle(command))
