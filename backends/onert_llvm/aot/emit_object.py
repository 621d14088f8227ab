"""Emits whole entry points as one object file: the commands of their sequences, and the kernels that these call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256

from attrs import evolve, frozen
from llvmlite import ir

from onert.backend import Blueprint, EntryPoint, Footprint, ObjectCode, Place, Region, Settings, Version
from onert.ir import Array
from onert_llvm.codegen.footprint import loaded_bytes, stack_bytes
from onert_llvm.codegen.kernel_abi import build
from onert_llvm.codegen.llvm_codegen import link
from onert_llvm.codegen.masked_calls import as_calls
from onert_llvm.codegen.native import cpuid_text, jump_text, pool_texts, run_text, support_texts, together_text
from onert_llvm.command.barriers import barriers
from onert_llvm.command.command import (
    JUMP,
    MERGED,
    REPORT_BYTES,
    Area,
    Command,
    Lowered,
    Pointer,
    Slot,
    all_steps,
    is_idle,
)
from onert_llvm.command.task_layout import slot_bits
from onert_llvm.compile import lowered
from onert_llvm.target.isa import Isa
from onert_llvm.target.versions import notes, versions

from .bound_commands import Body, BoundCommand, Initialization, Program, Report, Run, program_bytes, steps
from .constant_layout import CONTENT_BYTES, Constants, Key, lay_out
from .emit_data import content_text, define_configuration, define_weights
from .emit_entry import Entries
from .emit_public import Public, define_hook
from .layers import LayerKey, described, layered, merged, numbered

Versions = Mapping[Isa, Sequence[Sequence[Lowered]]]
"""For each target, the least capable first: what each sequence of each entry was lowered to, those that undo last."""


def emit_object(blueprint: Blueprint, settings: Settings) -> ObjectCode:
    """The object file of a blueprint: the code that `generate` would load, with entry points that call it."""
    wanted = blueprint.target
    commands = {
        isa: [
            [lowered(sequence, isa, settings, compact=True) for sequence in (*entry.sequences, *entry.undo)]
            for entry in blueprint.entries
        ]
        for isa in versions(wanted.triple, wanted.cpu, wanted.features)
    }
    return _emitted(blueprint, commands, settings.num_threads)


def _emitted(blueprint: Blueprint, versions: Versions, threads: int) -> ObjectCode:
    """The object of a blueprint, with a version of its code for each target."""
    isas, isa = tuple(versions), next(iter(versions))
    arena = _aligned(blueprint.activation_bytes, blueprint.alignment)
    parts = [
        _Part((version, number, at), entry, part, arena, sum(len(other.checks) for other in sequences[:at]))
        for version, lowered in enumerate(versions.values())
        for number, (entry, sequences) in enumerate(zip(blueprint.entries, lowered, strict=True))
        for at, part in enumerate(sequences)
    ]
    constants = lay_out(array for part in parts for array in part.arrays())
    errors, bodies, layers = _bodies(blueprint, len(isas), parts, constants)
    scratch = max((part.lowered.scratch for part in parts), default=0)
    end = arena + scratch if scratch else blueprint.activation_bytes
    reports, most = _aligned(end, blueprint.alignment), max(len(body.codes) for body in bodies)
    if blueprint.steps and most:
        end = reports + REPORT_BYTES * most
    shared = None
    if threads > 1:
        shared = _aligned(end, blueprint.alignment)
        end = shared + max(program_bytes(some, threads) for body in bodies for some in (body.commands, body.undo))
    module = ir.Module(blueprint.name)
    module.triple = isa.triple
    hook = define_hook(module, f"{blueprint.name}_hook") if blueprint.hook else None
    entries = Entries(module, shared, threads, hook)
    functions = {}
    for entry in blueprint.entries:
        own = [body for body in bodies if body.entry.symbol == entry.symbol]
        functions[entry.symbol] = [entries.define(body) for body in own]
        if blueprint.steps:
            place = Place(Region.ACTIVATIONS, reports)
            functions[f"{entry.symbol}_step"] = [entries.define_step(body, place) for body in own]
    symbols = (*blueprint.symbols, *constants.symbols)
    if blueprint.configuration:
        define_configuration(module, isa, blueprint, symbols, len(constants.data), end)
    texts = [*_kernels(parts, several=len(isas) > 1), *support_texts(isa)]
    jumps = any(step.symbol == JUMP.symbol for body in bodies for step in steps((*body.commands, *body.undo)))
    if threads > 1:
        texts += [run_text(), *pool_texts(isa), together_text(blueprint.name, threads)]
    elif jumps:
        texts.append(jump_text())
    if isa.architecture == "wasm32":
        texts = as_calls(texts)
    if len(isas) > 1 and isa.architecture == "x86_64":
        texts.append(cpuid_text())
    more = [f"{blueprint.name}_version"] if len(isas) > 1 else []
    if blueprint.hook:
        more.append(f"{blueprint.name}_hook")
    if threads > 1:
        more.append(f"{blueprint.name}_stop")
    digest = sha256(b"\0".join((str(module).encode(), *(text.encode() for text in texts), constants.data)))
    content, content_id = digest.digest()[:CONTENT_BYTES], f"{blueprint.name}_content_id"
    data = constants.data[:-CONTENT_BYTES] + content
    texts.append(content_text(content_id, content))
    public = Public(module, isas, content_id, len(data), f"{blueprint.name}_version")
    for symbol, some in functions.items():
        public.define(symbol, some)
    exported = {f"{blueprint.name}_config", content_id, *more, *functions}
    if blueprint.embedded:
        exported.add(define_weights(module, f"{blueprint.name}_weights", data, blueprint.alignment))
    wanted = blueprint.listings | ({"asm"} if blueprint.footprint else set())
    code, listings = link([str(module), *texts], isa, exported, blueprint.target.relocation, wanted)
    footprint = None
    if blueprint.footprint:
        footprint = Footprint(loaded_bytes(code), stack_bytes(listings["asm"], isa, set(functions), threads > 1))
    return ObjectCode(
        code,
        data,
        symbols,
        end,
        ",".join(version.name for version in isas),
        tuple(errors),
        tuple(more),
        {kind: text for kind, text in listings.items() if kind in blueprint.listings},
        content,
        tuple(described(bodies, layers, constants)),
        tuple(Version(version.name, constants.read.get(at, 0)) for at, version in enumerate(isas)),
        footprint,
        tuple(notes(isas)),
    )


def _bodies(
    blueprint: Blueprint, versions: int, parts: Sequence[_Part], constants: Constants
) -> tuple[list[str], list[Body], list[list[LayerKey]]]:
    """The error messages of all checks, each entry's bodies (one per version), and the layers of each entry."""
    errors: list[str] = []
    bodies, layers = [], []
    for number, entry in enumerate(blueprint.entries):
        own = [[part for part in parts if part.key[:2] == (version, number)] for version in range(versions)]
        codes = numbered([[c.sentence("N") for part in some for c in part.lowered.checks] for some in own], errors)
        runs = [layered((part.key[2], part.bound(constants)) for part in some if not part.undoes) for some in own]
        order = merged(runs)
        layers.append(order)
        for version, some in enumerate(own):
            begun = tuple(
                Initialization(
                    entry.places[beginning.started],
                    entry.places[beginning.variable],
                    some[0].constant(constants, beginning.initial),
                    entry.subgraph.type(beginning.variable).nbytes,
                )
                for beginning in entry.beginnings
            )
            own_layers = tuple(tuple(runs[version].get(layer, ())) for layer in order)
            undo = tuple(run for part in some if part.undoes for _, run in part.bound(constants))
            bodies.append(Body(f"{entry.symbol}.{version}", entry, own_layers, codes[version], undo, begun))
    return errors, bodies, layers


def _kernels(parts: Iterable[_Part], *, several: bool) -> Iterator[str]:
    """The modules of the distinct kernels that commands call."""
    called = {symbol: spec for part in parts for symbol, spec in part.lowered.specs.items()}
    for spec in called.values():
        yield str(build(spec, own_target=several))


def _aligned(nbytes: int, alignment: int) -> int:
    return -(-nbytes // alignment) * alignment


@frozen(eq=False)
class _Part:
    """One sequence of an entry.

    `key` is the numbers of the version, the entry and the sequence. `scratch` is the offset of scratch memory in
    activations, `check` the number of the sequence's first check in the entry.
    """

    key: tuple[int, int, int]
    entry: EntryPoint
    lowered: Lowered
    scratch: int
    check: int

    @property
    def undoes(self) -> bool:
        """Whether it runs only when the entry fails."""
        return self.key[2] >= len(self.entry.sequences)

    def constant(self, constants: Constants, operand: int) -> Place:
        """The place of a model's constant that `arrays` yielded."""
        return Place(Region.CONSTANTS, constants.offsets[self._key(Pointer(Area.OPERAND, operand))])

    def arrays(self) -> Iterator[tuple[Key, str, Array]]:
        """The arrays that commands read: the model's constants under their own names, packed ones named by their use.
        The initial values of variables come with the first part."""
        operands = self.entry.subgraph.operands
        for beginning in self.entry.beginnings if self.key[2] == 0 else ():
            data = operands[beginning.initial].data
            assert data is not None
            name = f"{operands[beginning.variable].name}/initial"
            yield self._key(Pointer(Area.OPERAND, beginning.initial)), name, data.array
        for command in all_steps(self.lowered.commands):
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

    def bound(self, constants: Constants) -> Iterator[tuple[int, Run]]:
        """The commands with a place for every pointer, each with its operation's number; copies of memory onto itself
        are left out."""

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
            """A place as a number; regions are so far apart that they never overlap."""
            found = place(pointer)
            kind = len(Region) if isinstance(found, Report) else list(Region).index(found.region)
            return (kind << 48) + found.offset

        def slot(value: Slot) -> int | Place | Report:
            if not isinstance(value, Pointer):
                return slot_bits(value)
            return 0 if value.area is Area.STOP else place(value)

        def run(command: Command, sync: bool = False) -> Run:
            if command.program:
                return Program(tuple(map(run, command.program)))
            names = command.spec.layout.names
            values = (command.slots[name] for name in names)
            slots = tuple(slot(value) for value in values)
            ahead = names.index("ahead") if "ahead" in names else None
            return BoundCommand(command.spec.symbol, slots, command.tiles, command.pieces, sync, ahead)

        commands = [command for command in self.lowered.commands if not is_idle(command, place)]
        first = self.key[2] > 0  # the first command of a later sequence waits for all earlier sequences
        for command, clash in zip(commands, barriers(commands, address), strict=True):
            sync, first = clash or first, False
            if command.spec != MERGED:
                yield command.operation, run(command, sync)
                continue
            for step in command.program:
                yield command.operation, run(evolve(step, pieces=min(step.tiles, command.pieces)), sync)
                sync = False

    def _key(self, pointer: Pointer) -> Key:
        return (*self.key, pointer.area.value, pointer.index)
