"""What rules write to while a sequence is lowered: commands, packed constants."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from typing import Any, TypeVar

from attrs import evolve, frozen

from onert.backend import Settings
from onert.ir import Array, Op, Operation, Subgraph, TensorType
from onert.ir.shape import static
from onert.ir.symbolic.trace import Computed, hint, is_symbolic, maximum, minimum
from onert_llvm.codegen.kernel_abi import Algorithm, KernelSpec
from onert_llvm.command.command import (
    JUMP,
    PROGRAM,
    REPORT_BYTES,
    Access,
    Area,
    Check,
    Command,
    Lowered,
    Pointer,
    Slot,
    kernel_calls,
    most_pieces,
    short_pieces,
)
from onert_llvm.command.several import at_once
from onert_llvm.kernels.contraction.register_tile import Columns, Tile
from onert_llvm.runtime.aligned_memory import Elements, aligned
from onert_llvm.schedule.choices import Choices
from onert_llvm.schedule.cost_model import Shape, Work, near_tiles, packed_tile, recut, row_work
from onert_llvm.target.isa import Isa

from .shared_packing import shared

_Op = TypeVar("_Op", bound=Op)
_Found = TypeVar("_Found")
_TILES = 4
"""Tiles that measurements choose among."""
Pack = Callable[[Array, Columns, Isa], Array]
Each = Callable[[Sequence[Callable[[], Array]]], Iterable[Array]]
"""What calls functions, not necessarily one after the other, and gives their results in order."""


def in_turn(functions: Sequence[Callable[[], Array]]) -> Iterator[Array]:
    """The results of functions, one after the other."""
    return (function() for function in functions)


@frozen(eq=False)
class _Left:
    """What an operation has left in scratch memory for others: where it lies, if these have theirs behind it, and the
    last of them.
    """

    found: Any
    begin: int
    end: int
    until: int


class Lowering:
    """Collects the commands of one sequence; where they are `compact`, memory counts more than time."""

    def __init__(
        self, subgraph: Subgraph, isa: Isa, settings: Settings, choices: Choices | None = None, compact: bool = False
    ) -> None:
        self.subgraph = subgraph
        self.isa = isa
        self.settings = settings
        self.compact = compact
        self._choices = choices
        self.threads = settings.num_threads
        self._commands: list[Command] = []
        self._beside: list[Command] = []
        self._told = 0
        self._home: tuple[int, int] | None = None
        self._lanes: dict[tuple[int, int] | None, int] = {None: 0}
        self._constants: list[Callable[[], Array]] = []
        self._computed: dict[int, Pointer] = {}
        self._scratch = 0
        self._in_scratch: dict[Hashable, _Left] = {}
        self._checks: list[Check] = []
        self._all_threads = settings.num_threads
        self._tiles: dict[Hashable, list[Tile]] = {}
        self._specs: dict[tuple[Algorithm, Isa], KernelSpec] = {}

    def settle(self, threads: tuple[int, int] | None) -> None:
        """Let what follows be done by some of the threads, the first and how many, with scratch memory of their own."""
        self._home = threads
        self.threads = self._all_threads if threads is None else threads[1]
        self._lanes.setdefault(threads, len(self._lanes))

    def begin(self, operation: int) -> None:
        """Forget what was left in scratch memory for operations before this one, which comes next."""
        for what, left in list(self._in_scratch.items()):
            if 0 <= left.until < operation and not self.compact:
                del self._in_scratch[what]

    def again(self) -> None:
        """Lower the same operations once more, for all threads: what came so far is for some of them side by side."""
        self._beside, self._commands, self._told = self._commands, [], 0
        self._in_scratch.clear()
        self.settle(None)

    @property
    def callers(self) -> int:
        """How many threads may run a command, each with scratch memory of its own: others help those that it is for."""
        return self._all_threads

    @property
    def lane(self) -> int:
        """The number of the scratch memory of those threads."""
        return self._lanes[self._home]

    def operation(self, at: int) -> Operation:
        return self.subgraph.operations[at]

    def single(self, operations: Sequence[int], kind: type[_Op]) -> tuple[int, Operation, _Op]:
        """The only operation of a group, by its index, as a whole, and what it does, which is of this kind."""
        (_,) = operations
        return self.first(operations, kind)

    def first(self, operations: Sequence[int], kind: type[_Op]) -> tuple[int, Operation, _Op]:
        """The same of a group's first operation, which others follow."""
        operation = self.operation(operations[0])
        assert isinstance(operation.op, kind)
        return operations[0], operation, operation.op

    def layer(self, at: int) -> tuple[int, int, int | None]:
        """The input of a layer, its weights, and its bias where it has one."""
        x, weights, bias = (*self.operation(at).inputs, None)[:3]
        assert x is not None
        assert weights is not None
        return x, weights, bias

    def type(self, operand: int) -> TensorType:
        return self.subgraph.operands[operand].known

    def shape(self, operand: int) -> tuple[int, ...]:
        return static(self.subgraph.type(operand).shape)

    def elements(self, operand: int) -> Array:
        """The elements of a constant."""
        data = self.subgraph.operands[operand].data
        assert data is not None
        return data.array

    def operand(self, operand: int, offset: int = 0) -> Pointer:
        """Where an operand lies; a constant whose elements depend on lengths is made for each."""
        data = self.subgraph.operands[operand].data
        if data is None or not data.is_symbolic:
            return Pointer(Area.OPERAND, operand, offset)
        if operand not in self._computed:
            made = Elements(self.type(operand).dtype, self.shape(operand))
            self._computed[operand] = self.computed(made, *data.array.reshape(-1).tolist())
        return evolve(self._computed[operand], offset=offset)

    def constant(self, array: Array) -> Pointer:
        """An array that kernels read; kept 64-byte aligned."""
        return self.later(lambda: array)

    def later(self, array: Callable[[], Any]) -> Pointer:
        """The same for one that takes long to make: that waits until the last kernel is begun."""
        self._constants.append(array)
        return Pointer(Area.CONSTANT, len(self._constants) - 1)

    def computed(self, function: Callable[..., Array], *numbers: int) -> Pointer:
        """A constant array that a function gives for numbers, which may be symbolic."""
        if not any(map(is_symbolic, numbers)):
            return self.constant(function(*numbers))
        made = function if isinstance(function, Elements) else lambda *known: aligned(function(*known))
        return self.later(lambda: Computed(made, numbers))

    def packed(self, weights: Array, columns: Columns, pack: Pack, isa: Isa | None = None) -> Pointer:
        """Constant weights as kernels read them, shared with other programs that have them so."""
        target = isa or self.isa
        how = (pack, columns, target)
        return self.later(lambda: shared(weights, how, lambda: pack(weights, columns, target)))

    def tile(self, code: Hashable, shape: Shape, isa: Isa | None = None) -> Tile:
        """The tile for a product with packed weights; products whose `code` is equal differ in nothing but the tile.

        It is for `isa` where the weights are packed for another target than this.
        """
        target = isa or self.isa
        found = packed_tile(shape, target, self.tiles(code))
        found = self.choose(("tile", code, shape), found, lambda: near_tiles(shape, target, _TILES))
        self.has_code(code, found)
        return found

    def choose(self, place: Hashable, model: _Found, others: Callable[[], Iterable[_Found]]) -> _Found:
        """What was measured to be the fastest at a place, among what `others` gives; else the cost model's choice."""
        return model if self._choices is None else self._choices.of((place, self.threads), model, others())

    def cut(self, shape: Shape, tile: Tile, panels: int, row_bytes: int, batches: int = 1) -> Work:
        """The cut of the rows of a product, or of each of several, of `row_bytes` each into work tiles."""
        found = row_work(shape, tile, panels, row_bytes, self.isa, self.threads, batches)
        if batches > 1:
            return found
        return self.choose(("rows", shape, tile, panels), found, lambda: recut(shape, tile, panels, found))

    def parts(self, tiles: int, flops: int) -> int:
        """Into how many pieces threads cut so many tiles of floats, which take so many operations in all."""
        found: int = minimum(tiles, short_pieces(self.threads, hint(flops)))
        return found

    def tiles(self, code: Hashable) -> Sequence[Tile]:
        """The tiles that there is such code for already."""
        return self._tiles.get(code, ())

    def has_code(self, code: Hashable, tile: Tile) -> None:
        """Remember that there is such code for a tile."""
        known = self._tiles.setdefault(code, [])
        if tile not in known:
            known.append(tile)

    def scratch(self, *sizes: int) -> tuple[Access, ...]:
        """Memory between the commands of one operation, a piece of each size in bytes; the next operation has it again,
        but for what was left in it for others.

        Each comes as the access of a command that writes it.
        """
        return self._scratch_from(reduce(maximum, (left.end for left in self._in_scratch.values()), 0), sizes)

    def _scratch_from(self, offset: int, sizes: Sequence[int]) -> tuple[Access, ...]:
        found: list[Access] = []
        for nbytes in sizes:
            found.append(Access(Pointer(Area.SCRATCH, self.lane, offset), nbytes, True))
            offset += -(-nbytes // 64) * 64
        self._scratch = maximum(self._scratch, offset)
        return tuple(found)

    def spare(self, nbytes: int) -> Access:
        """So much memory beside what was left for others, to be left itself before any other scratch memory is asked
        for.
        """
        offset, lefts = 0, list(self._in_scratch.values())
        if any(is_symbolic(left.end) for left in lefts):
            return self.scratch(nbytes)[0]
        for left in sorted(lefts, key=lambda left: left.begin):
            if offset + nbytes <= left.begin:
                break
            offset = max(offset, left.end)
        return self._scratch_from(offset, (nbytes,))[0]

    def leave(self, what: Hashable, found: _Found, accesses: Sequence[Access] = (), until: int = -1) -> _Found:
        """Remember what the operation has made in scratch memory, which nothing else of it writes from here on.

        The operations up to `until` have theirs behind these `accesses`, unless memory is what counts. Otherwise it is
        there until anything is written.
        """
        kept = accesses if until >= 0 and not self.compact else ()
        begin = min((a.pointer.offset for a in kept), default=0)
        end = -(-reduce(maximum, (a.pointer.offset + a.nbytes for a in kept), 0) // 64) * 64
        self._in_scratch[self._home, what] = _Left(found, begin, end, until)
        return found

    def left(self, what: Hashable) -> Any:
        """What an operation before this one, done by the same threads, has left there; None where it is no more."""
        left = self._in_scratch.get((self._home, what))
        return None if left is None else left.found

    def check(self, operation: int, rule: str) -> Pointer:
        """Where a kernel reports an element that broke a rule: a sentence with `{}` for the element."""
        self._checks.append(Check(str(self.operation(operation)), rule))
        return Pointer(Area.REPORT, 0, REPORT_BYTES * (len(self._checks) - 1))

    @property
    def reports(self) -> Pointer:
        """Where the next check reports."""
        return Pointer(Area.REPORT, 0, REPORT_BYTES * len(self._checks))

    def include(self, operation: int, inner: Lowered) -> tuple[tuple[Pointer, ...], Pointer]:
        """Take over the constants and the checks of what an operation holds: where they are now."""
        reports = self.reports
        self._checks += (Check(f"{self.operation(operation)}, in it {c.place}", c.rule) for c in inner.checks)
        return tuple(self.constant(array) for array in inner.constants), reports

    def emit(
        self,
        operation: int,
        algorithm: Algorithm,
        slots: dict[str, Slot],
        tiles: int,
        reads: Sequence[int],
        writes: Sequence[int],
        flops: int = 0,
        accesses: Sequence[Access] = (),
        parts: int | None = None,
        isa: Isa | None = None,
    ) -> None:
        """A command; `reads` and `writes` are the operands it touches, `accesses` other memory that it does.

        It is cut into so many `parts` for threads, and its kernel is for `isa`, where these are given.
        """
        if tiles <= 0:
            return
        target = isa or self.isa
        spec = self._specs.get((algorithm, target))
        if spec is None:
            spec = self._specs[algorithm, target] = KernelSpec(algorithm, target)
        cut, touched = parts or minimum(tiles, most_pieces(self.threads)), (*self._whole(reads, writes), *accesses)
        self.add(Command(spec, slots, tiles, cut, touched, operation, flops))

    def run(
        self,
        operation: int,
        algorithm: Algorithm,
        tiles: int,
        reads: Mapping[str, int],
        writes: Mapping[str, int],
        slots: Mapping[str, Slot] | None = None,
        flops: int = 0,
        accesses: Sequence[Access] = (),
        isa: Isa | None = None,
    ) -> None:
        """A command that reads and writes operands, by the slots that point to them; `slots` are its others."""
        ends = {name: self.operand(i) for name, i in (*reads.items(), *writes.items())}
        found = {**ends, **(slots or {})}
        self.emit(operation, algorithm, found, tiles, (*reads.values(),), (*writes.values(),), flops, accesses, isa=isa)

    def program(
        self, operation: int, steps: Sequence[Command], reads: Sequence[int], writes: Sequence[int], room: Access
    ) -> None:
        """A command that runs a program, which touches these operands and this scratch memory."""
        touched = (*self._whole(reads, writes), room)
        self.add(Command(PROGRAM, {}, len(steps), 1, touched, operation, program=tuple(steps)))

    def _whole(self, reads: Sequence[int], writes: Sequence[int]) -> Iterator[Access]:
        """The accesses to whole operands, but for constants."""
        return (
            Access(self.operand(i), self.subgraph.type(i).nbytes, write)
            for operands, write in ((reads, False), (writes, True))
            for i in operands
            if not self.subgraph.operands[i].is_constant
        )

    def add(self, command: Command) -> None:
        """A command that is whole."""
        scratch = any(a.write and a.pointer.area is Area.SCRATCH for a in command.accesses)
        if command.program or command.spec == JUMP:
            self._in_scratch.clear()
        for what, left in list(self._in_scratch.items()):
            if scratch and (left.until < 0 or self.compact):
                del self._in_scratch[what]
        self._commands.append(command if self._home is None else evolve(command, threads=self._home))

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Let the commands that follow, of which none touches what another writes, be one where they are alike."""
        first = len(self._commands)
        yield
        found = at_once(_looking_ahead(self._commands[first:]), self.threads)
        self._commands[first:] = self._commands[first:] if found is None else [found]

    def news(self) -> Iterator[Any]:
        """The kernels of the commands that were emitted since this was asked last."""
        fresh, self._told = self._commands[self._told :], len(self._commands)
        return (command.spec for command in kernel_calls(fresh))

    def done(self, made: Each = in_turn) -> Lowered:
        """All that was collected; `made` makes the constants that take long."""
        beside, in_turn = _looking_ahead(self._beside), _looking_ahead(self._commands)
        specs = {command.spec.symbol: command.spec for command in kernel_calls((*beside, *in_turn))}
        return Lowered(
            beside or in_turn,
            tuple(made([partial(_constant, array) for array in self._constants])),
            self._scratch,
            tuple(self._checks),
            specs,
            len(self._lanes),
            in_turn if beside else (),
        )


def _constant(array: Callable[[], Any]) -> Any:
    found = array()
    return found if isinstance(found, Computed) else aligned(found)


def _looking_ahead(commands: Sequence[Command]) -> tuple[Command, ...]:
    """The commands, those that fetch ahead told where the constant matrix of the next product is."""
    found: list[Command] = []
    following: Slot | None = None
    for command in reversed(commands):
        own = command.slots.get("b")
        if "ahead" in command.spec.layout.names:
            assert own is not None
            command = evolve(command, slots={**command.slots, "ahead": following or own})
        if isinstance(own, Pointer) and own.area is Area.CONSTANT:
            following = own
        found.append(command)
    return tuple(reversed(found))
