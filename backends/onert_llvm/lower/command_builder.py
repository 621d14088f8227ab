"""The builder that rules write to while a sequence is lowered: it collects commands and packed constants."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from typing import Any, TypeVar

from attrs import evolve

from onert.backend import Settings
from onert.ir import Array, Op, Operation, Subgraph, TensorType
from onert.ir.process.derived_arrays import derived, identity
from onert.ir.shape import static
from onert.ir.symbolic.cases import Cases
from onert.ir.symbolic.trace import Computed, hint, is_symbolic, maximum, minimum
from onert_llvm.codegen.kernel_abi import Algorithm, KernelSpec
from onert_llvm.command.arranged import idle_unless, looking_ahead, may_be_idle
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
from onert_llvm.command.merge import merge
from onert_llvm.kernels.contraction.register_tile import Columns, Tile
from onert_llvm.runtime.aligned_memory import Aligned, Elements, aligned
from onert_llvm.schedule.choices import Choices
from onert_llvm.schedule.cost_model import Shape, Work, near_splits, near_tiles, packed_tile, row_work
from onert_llvm.target.isa import Isa

from .retained import Retained

_Op = TypeVar("_Op", bound=Op)
_Found = TypeVar("_Found")
_TILES = 4
"""The number of tiles among which tuning chooses."""
Pack = Callable[[Array, Columns, Isa], Array]
Each = Callable[[Sequence[Callable[[], Array]]], Iterable[Array]]
"""A function that calls functions, not necessarily one after another, and returns their results in order."""


def call_in_order(functions: Sequence[Callable[[], Array]]) -> Iterator[Array]:
    """The results of functions, called one after another."""
    return (function() for function in functions)


class Lowering:
    """Collects the commands of one sequence; if `compact`, memory matters more than time."""

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
        self._side_by_side: list[Command] = []
        self._announced = 0
        self._team: tuple[int, int] | None = None
        self._teams: dict[tuple[int, int] | None, int] = {None: 0}
        self._constants: list[Callable[[], Array]] = []
        self._computed: dict[Hashable, Pointer] = {}
        self._scratch = 0
        self._retained: dict[Hashable, Retained] = {}
        self._checks: list[Check] = []
        self._all_threads = settings.num_threads
        self._tiles: dict[Hashable, list[Tile]] = {}
        self._specs: dict[tuple[Algorithm, Isa], KernelSpec] = {}

    def assign_threads(self, threads: tuple[int, int] | None) -> None:
        """Assign the following commands to a range of threads (first, count), with scratch memory of their own."""
        self._team = threads
        self.threads = self._all_threads if threads is None else threads[1]
        self._teams.setdefault(threads, len(self._teams))

    def begin(self, operation: int) -> None:
        """Start on an operation: forget what was retained in scratch memory for operations before it."""
        for what, left in list(self._retained.items()):
            if 0 <= left.until < operation and not self.compact:
                del self._retained[what]

    def restart_for_all_threads(self) -> None:
        """Lower the same operations again, for all threads; the commands so far run side by side on some of them."""
        self._side_by_side, self._commands, self._announced = self._commands, [], 0
        self._retained.clear()
        self.assign_threads(None)

    @property
    def callers(self) -> int:
        """The number of threads that may run a command, as others help the assigned ones; each needs own scratch."""
        return self._all_threads

    @property
    def team(self) -> int:
        """The number of the assigned threads' scratch memory."""
        return self._teams[self._team]

    def operation(self, at: int) -> Operation:
        return self.subgraph.operations[at]

    def single(self, operations: Sequence[int], kind: type[_Op]) -> tuple[int, Operation, _Op]:
        """The only operation of a group: its index, the operation and its `op`, which must be of this kind."""
        (_,) = operations
        return self.first(operations, kind)

    def first(self, operations: Sequence[int], kind: type[_Op]) -> tuple[int, Operation, _Op]:
        """The same for the first operation of a group, which others follow."""
        operation = self.operation(operations[0])
        assert isinstance(operation.op, kind)
        return operations[0], operation, operation.op

    def layer(self, at: int) -> tuple[int, int, int | None]:
        """The input of a layer, its weights, and its bias if it has one."""
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
        """A pointer to an operand; a constant whose elements depend on lengths is computed for each length."""
        data = self.subgraph.operands[operand].data
        if data is None or not data.is_symbolic:
            return Pointer(Area.OPERAND, operand, offset)
        made = Elements(self.type(operand).dtype, self.shape(operand))
        return evolve(self.computed(made, *data.array.reshape(-1).tolist()), offset=offset)

    def constant(self, array: Array) -> Pointer:
        """A pointer to a constant array, which is stored 64-byte aligned."""
        return self.deferred_constant(lambda: array)

    def deferred_constant(self, array: Callable[[], Any]) -> Pointer:
        """The same for an array that takes long to make: it is made after the last kernel has been started."""
        self._constants.append(array)
        return Pointer(Area.CONSTANT, len(self._constants) - 1)

    def computed(self, function: Callable[..., Array], *numbers: int) -> Pointer:
        """A constant array computed by a function of numbers, which may be symbolic: equal ones are computed once."""
        if not any(map(is_symbolic, numbers)):
            return self.constant(function(*numbers))
        own: Hashable = function
        if isinstance(function, partial):
            own = (function.func, function.args, *function.keywords.items())
        made = function if isinstance(function, Elements) else Aligned(function)
        return self._once((own, numbers), lambda: Computed(made, numbers))

    def packed(self, weights: Array, columns: Columns, pack: Pack, isa: Isa | None = None) -> Pointer:
        """Constant weights packed for kernels, shared with other programs that use the same packing."""
        how = (pack, columns, isa or self.isa)
        make = partial(derived, weights, how, lambda: aligned(pack(weights, *how[1:])))
        return self._once((identity(weights), how), make)

    def _once(self, key: Hashable, array: Callable[[], Any]) -> Pointer:
        found = self._computed[key] = self._computed.get(key) or self.deferred_constant(array)
        return found

    def tile(self, code: Hashable, shape: Shape, isa: Isa | None = None) -> Tile:
        """The tile for a product with packed weights; products with equal `code` differ only in the tile.

        `isa` is given if the weights are packed for another target.
        """
        target = isa or self.isa
        found = packed_tile(shape, target, self.tiles(code))
        found = self.choose(("tile", code, shape), found, lambda: near_tiles(shape, target, _TILES))
        self.record_tile(code, found)
        return found

    def choose(self, place: Hashable, model: _Found, others: Callable[[], Iterable[_Found]]) -> _Found:
        """The measured choice for a place, among the model's and the `others`; the cost model's if there is none."""
        return model if self._choices is None else self._choices.choose((place, self.threads), model, others())

    def row_work(self, shape: Shape, tile: Tile, panels: int, row_bytes: int, batches: int = 1) -> Work:
        """The division into work tiles of the rows of a product (or of each of several), with `row_bytes` per row."""
        found = row_work(shape, tile, panels, row_bytes, self.isa, self.threads, batches)
        if batches > 1:
            return found
        return self.choose(("rows", shape, tile, panels), found, lambda: near_splits(shape, tile, panels, found))

    def parts(self, tiles: int, flops: int) -> int:
        """The number of pieces into which threads divide this many tiles of floats, with `flops` in total."""
        found: int = minimum(tiles, short_pieces(self.threads, hint(flops)))
        return found

    def tiles(self, code: Hashable) -> Sequence[Tile]:
        """The tiles for which such code exists already."""
        return self._tiles.get(code, ())

    def record_tile(self, code: Hashable, tile: Tile) -> None:
        """Remember that such code exists for a tile."""
        known = self._tiles.setdefault(code, [])
        if tile not in known:
            known.append(tile)

    def scratch(self, *sizes: int, beside: Sequence[Access] = ()) -> tuple[Access, ...]:
        """Memory between the commands of one operation, one piece for each size in bytes, as accesses that write it.

        The next operation, or another call, reuses it, except what was retained in it or is `beside` the new memory.
        """
        ends = [left.end for left in self._retained.values()]
        ends += (a.end for a in beside if a.pointer.area is Area.SCRATCH)
        return self._scratch_from(reduce(maximum, ends, 0), sizes)

    def _scratch_from(self, offset: int, sizes: Sequence[int]) -> tuple[Access, ...]:
        found: list[Access] = []
        for nbytes in sizes:
            found.append(Access(Pointer(Area.SCRATCH, self.team, offset), nbytes, True))
            offset += -(-nbytes // 64) * 64
        self._scratch = maximum(self._scratch, offset)
        return tuple(found)

    def unretained_scratch(self, nbytes: int) -> Access:
        """Memory beside what was retained for others, to be passed to `retain` itself before any other scratch memory
        is requested.
        """
        offset, lefts = 0, list(self._retained.values())
        if any(is_symbolic(left.end) for left in lefts):
            return self.scratch(nbytes)[0]
        for left in sorted(lefts, key=lambda left: left.begin):
            if offset + nbytes <= left.begin:
                break
            offset = max(offset, left.end)
        return self._scratch_from(offset, (nbytes,))[0]

    def retain(self, what: Hashable, found: _Found, accesses: Sequence[Access] = (), until: int = -1) -> _Found:
        """Retain what the operation computed in scratch memory, which none of its later commands overwrites.

        Operations up to `until` get their scratch memory after these `accesses`, unless `compact`. Otherwise it is
        valid only until scratch memory is written again.
        """
        kept = accesses if until >= 0 and not self.compact else ()
        begin = min((a.pointer.offset for a in kept), default=0)
        end = reduce(maximum, (a.end for a in kept), 0)
        self._retained[self._team, what] = Retained(found, begin, end, until)
        return found

    def retained(self, what: Hashable) -> Any:
        """What an earlier operation on the same threads retained in scratch memory; None if it is gone."""
        left = self._retained.get((self._team, what))
        return None if left is None else left.found

    def check(self, operation: int, rule: str) -> Pointer:
        """A report for elements that break a rule, which is a sentence with `{}` for the element."""
        self._checks.append(Check(str(self.operation(operation)), rule))
        return Pointer(Area.REPORT, 0, REPORT_BYTES * (len(self._checks) - 1))

    @property
    def reports(self) -> Pointer:
        """The pointer to the next check's report."""
        return Pointer(Area.REPORT, 0, REPORT_BYTES * len(self._checks))

    def include(self, operation: int, inner: Lowered) -> tuple[tuple[Pointer, ...], Pointer]:
        """Take over the constants and checks of an operation's inner graph; returns their new pointers."""
        reports = self.reports
        self._checks += (Check(f"{c.place} in {self.operation(operation)}", c.rule) for c in inner.checks)
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
        """Add a command; `reads` and `writes` are the operands it touches, `accesses` other memory.

        `parts` overrides the number of pieces for threads, and `isa` the kernel's target.
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
        """Add a command that reads and writes operands, given by the slots that point to them; `slots` has the rest."""
        ends = {name: self.operand(i) for name, i in (*reads.items(), *writes.items())}
        found = {**ends, **(slots or {})}
        self.emit(operation, algorithm, found, tiles, (*reads.values(),), (*writes.values(),), flops, accesses, isa=isa)

    def program(
        self, operation: int, steps: Sequence[Command], reads: Sequence[int], writes: Sequence[int], room: Access
    ) -> None:
        """Add a command that runs a program, which touches these operands and this scratch memory."""
        touched = (*self._whole(reads, writes), room)
        self.add(Command(PROGRAM, {}, len(steps), 1, touched, operation, program=tuple(steps)))

    def _whole(self, reads: Sequence[int], writes: Sequence[int]) -> Iterator[Access]:
        """The accesses to whole operands, except constants."""
        return (
            Access(self.operand(i), self.subgraph.type(i).nbytes, write)
            for operands, write in ((reads, False), (writes, True))
            for i in operands
            if not self.subgraph.operands[i].is_constant
        )

    def add(self, command: Command) -> None:
        """Add a finished command."""
        scratch = any(a.write and a.pointer.area is Area.SCRATCH for a in command.accesses)
        if command.program or command.spec == JUMP:
            self._retained.clear()
        for what, left in list(self._retained.items()):
            if scratch and (left.until < 0 or self.compact):
                del self._retained[what]
        self._commands.append(command if self._team is None else evolve(command, threads=self._team))

    def by_cases(self, cases: Cases, lower: Callable[[], None]) -> None:
        """Add what `lower` emits for each case of the lengths; commands of other cases are idle."""
        first, before, left = len(self._commands), self._retained, list[dict[Hashable, Retained]]()

        def attempt() -> list[Command]:
            self._retained = dict(before)
            left.append(self._retained)
            try:
                lower()
            finally:
                found, self._commands[first:] = self._commands[first:], []
            return found

        several = cases.run(attempt, may_be_idle)
        for commands, when in several:
            self._commands += commands if when is None else [idle_unless(when, each, self.threads) for each in commands]
        kept = {what: own for what, own in before.items() if all(each.get(what) is own for each in left)}
        self._retained = left[0] if len(several) == 1 else kept

    @contextmanager
    def merged(self) -> Iterator[None]:
        """Merge the commands that follow into one if their kernels allow it; none may touch what another writes."""
        first = len(self._commands)
        yield
        found = merge(looking_ahead(self._commands[first:]), self.threads)
        self._commands[first:] = self._commands[first:] if found is None else [found]

    def new_kernels(self) -> Iterator[Any]:
        """The kernels of the commands that were emitted since the last call."""
        fresh, self._announced = self._commands[self._announced :], len(self._commands)
        return (command.spec for command in kernel_calls(fresh))

    def finish(self, made: Each = call_in_order) -> Lowered:
        """Everything that was collected; `made` makes the constants that take long."""
        side_by_side, sequential = looking_ahead(self._side_by_side), looking_ahead(self._commands)
        specs = {command.spec.symbol: command.spec for command in kernel_calls((*side_by_side, *sequential))}
        return Lowered(
            side_by_side or sequential,
            tuple(made([partial(_constant, array) for array in self._constants])),
            self._scratch,
            tuple(self._checks),
            specs,
            len(self._teams),
            sequential if side_by_side else (),
        )


def _constant(array: Callable[[], Any]) -> Any:
    found = array()
    return found if isinstance(found, Computed) else aligned(found)
