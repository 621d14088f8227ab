"""Whole entry points as one object file: the commands of their sequences, and the kernels that these call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen
from llvmlite import ir

from onert.backend import Blueprint, EntryPoint, ObjectCode, Place, Region
from onert.ir import Array
from onert_llvm.codegen.kernel_abi import build
from onert_llvm.codegen.llvm_codegen import link
from onert_llvm.codegen.native import pool_text, run_text, support_texts, together_text
from onert_llvm.command.command import REPORT_BYTES, Area, Command, Lowered, Pointer, all_commands
from onert_llvm.command.task_layout import slot_bits
from onert_llvm.command.waiting import barriers
from onert_llvm.kernels.control_flow.loop_branch import RUN_BRANCH, RUN_LOOP
from onert_llvm.runtime.native_kernel import is_idle
from onert_llvm.target.isa import Isa

from .constant_layout import Constants, Key, lay_out
from .emit_entry import Begun, Bound, BoundBranch, BoundLoop, Entries, Report, Run, program_bytes
from .emit_symbol_table import define_configuration


def emit(blueprint: Blueprint, isa: Isa, lowered: Sequence[Sequence[Lowered]], threads: int = 1) -> ObjectCode:
    """The object of a blueprint, given what each sequence of each of its entries was lowered to, those that undo
    behind the others."""
    arena = _aligned(blueprint.activation_bytes, blueprint.alignment)
    parts = [
        _Part((number, at), entry, part, arena, sum(len(other.checks) for other in sequences[:at]))
        for number, (entry, sequences) in enumerate(zip(blueprint.entries, lowered, strict=True))
        for at, part in enumerate(sequences)
    ]
    constants = lay_out(array for part in parts for array in part.arrays())
    own = [[part for part in parts if part.key[0] == number] for number in range(len(blueprint.entries))]
    commands = [[command for part in some if not part.undoes for command in part.bound(constants)] for some in own]
    undo = [[command for part in some if part.undoes for command in part.bound(constants)] for some in own]
    scratch = max((part.lowered.scratch for part in parts), default=0)
    activation_bytes = arena + scratch if scratch else blueprint.activation_bytes
    shared = None
    if threads > 1:
        shared = _aligned(activation_bytes, blueprint.alignment)
        activation_bytes = shared + max(program_bytes(some, threads) for some in (*commands, *undo))
    symbols = (*blueprint.symbols, *constants.symbols)
    module = ir.Module(blueprint.name)
    module.triple = isa.triple
    entries = Entries(module, shared, threads)
    errors: list[str] = []
    for entry, some, run, undone in zip(blueprint.entries, own, commands, undo, strict=True):
        checks = [check.sentence("N") for part in some for check in part.lowered.checks]
        begun = [
            Begun(
                entry.places[beginning.started],
                entry.places[beginning.variable],
                some[0].constant(constants, beginning.initial),
                entry.subgraph.type(beginning.variable).nbytes,
            )
            for beginning in entry.beginnings
        ]
        entries.define(entry, run, len(checks), len(errors) + 1, undone, begun)
        errors += checks
    if blueprint.configuration:
        define_configuration(module, isa, blueprint, symbols, len(constants.data), activation_bytes)
    called = (pair for part in parts for pair in part.lowered.specs.items())
    specs = {symbol: spec for symbol, spec in called if spec.algorithm.name not in (RUN_LOOP, RUN_BRANCH)}
    texts = [str(module), *(str(build(spec)) for spec in specs.values()), *support_texts(isa)]
    functions: tuple[str, ...] = ()
    if threads > 1:
        texts += [run_text(), pool_text(isa), together_text(blueprint.name, threads)]
        functions = (f"{blueprint.name}_stop",)
    exported = {f"{blueprint.name}_config", *functions, *(entry.symbol for entry in blueprint.entries)}
    code, listings = link(texts, isa, exported, blueprint.target.relocation, blueprint.listings)
    return ObjectCode(code, constants.data, symbols, activation_bytes, isa.name, tuple(errors), functions, listings)


def _aligned(nbytes: int, alignment: int) -> int:
    return -(-nbytes // alignment) * alignment


@frozen(eq=False)
class _Part:
    """One sequence of an entry.

    `scratch` is where its scratch memory begins in activations, `check` the number of its first check in the entry.
    """

    key: tuple[int, int]
    entry: EntryPoint
    lowered: Lowered
    scratch: int
    check: int

    @property
    def undoes(self) -> bool:
        """Whether it runs only when the entry fails."""
        return self.key[1] >= len(self.entry.sequences)

    def constant(self, constants: Constants, operand: int) -> Place:
        """Where a constant of the model lies that `arrays` gave."""
        return Place(Region.CONSTANTS, constants.offsets[self._key(Pointer(Area.OPERAND, operand))])

    def arrays(self) -> Iterator[tuple[Key, str, Array]]:
        """The arrays that commands read: constants of the model under their own names, packed ones under their use.
        Those that variables begin with come with the first part."""
        operands = self.entry.subgraph.operands
        for beginning in self.entry.beginnings if self.key[1] == 0 else ():
            data = operands[beginning.initial].data
            assert data is not None
            name = f"{operands[beginning.variable].name}/initial"
            yield self._key(Pointer(Area.OPERAND, beginning.initial)), name, data.array
        for command in all_commands(self.lowered.commands):
            made = self.entry.subgraph.operations[command.operation].outputs[0]
            for slot, value in command.slots.items():
                if not isinstance(value, Pointer):
                    continue
                if value.area is Area.CONSTANT:
                    name = f"{operands[made].name or f'tensor {made}'}/{slot}"
                    yield self._key(value), name, self.lowered.constants[value.index]
                elif value.area is Area.OPERAND:
                    data = operands[value.index].data
                    if data is not None:
                        yield self._key(value), operands[value.index].name or f"tensor {value.index}", data.array

    def bound(self, constants: Constants) -> Iterator[Run]:
        """The commands with a place for every pointer, without those that copy memory onto itself."""

        def place(pointer: Pointer) -> Place | Report:
            if pointer.area is Area.REPORT:
                return Report(REPORT_BYTES * self.check + pointer.offset)
            if self._key(pointer) in constants.offsets:
                return Place(Region.CONSTANTS, constants.offsets[self._key(pointer)] + pointer.offset)
            if pointer.area is Area.SCRATCH:
                return Place(Region.ACTIVATIONS, self.scratch + pointer.offset)
            start = self.entry.places[pointer.index]
            return Place(start.region, start.offset + pointer.offset)

        def address(pointer: Pointer) -> int:
            """Places as numbers: each kind so far from the others that no two overlap."""
            found = place(pointer)
            kind = len(Region) if isinstance(found, Report) else list(Region).index(found.region)
            return (kind << 48) + found.offset

        def run(command: Command, sync: bool = False) -> Run:
            names, programs = command.spec.layout.names, [tuple(map(run, program)) for program in command.programs]
            if programs:
                named = {
                    n: v for n, v in command.slots.items() if isinstance(v, Pointer) and v.area is not Area.PROGRAM
                }
                places = {name: place(pointer) for name, pointer in named.items()}
                if command.spec.name == RUN_LOOP:
                    most = command.slots.get("most")
                    bound = (most, places["report"]) if isinstance(most, int) else None
                    first, checks = places["reports"], command.slots["checks"]
                    assert isinstance(first, Report)
                    assert isinstance(checks, int)
                    reports = tuple(Report(first.offset + REPORT_BYTES * n) for n in range(checks))
                    return BoundLoop(places["goes_on"], programs[0], programs[1], reports, bound)
                return BoundBranch(places["condition"], programs[0], programs[1])
            values = (command.slots[name] for name in names)
            slots = tuple(place(v) if isinstance(v, Pointer) else slot_bits(v) for v in values)
            return Bound(command.spec.symbol, slots, command.tiles, command.pieces, sync)

        commands = [command for command in self.lowered.commands if not is_idle(command, place)]
        first = self.key[1] > 0  # of a later sequence: it waits for all of those before
        for command, clash in zip(commands, barriers(commands, address), strict=True):
            sync, first = clash or first, False
            yield run(command, sync)

    def _key(self, pointer: Pointer) -> Key:
        return (*self.key, pointer.area.value, pointer.index)
