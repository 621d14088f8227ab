"""Entry points: functions that fill the tasks of a run's commands and call their kernels.

A task starts as a template of the command's numbers. It is copied to the stack and the addresses are filled in, each a
region's base plus a constant. So an entry point keeps nothing between calls, and any number of calls may run at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from llvmlite import ir

from onert.backend import Code, EntryPoint, Place, Region
from onert_llvm.command.command import JUMP, REPORT_BYTES

from .bound_commands import ROW, SHARE, Body, BoundCommand, Report, Run, Slots, most_slots

I8, I32, I64, PTR, VOID = ir.IntType(8), ir.IntType(32), ir.IntType(64), ir.PointerType(), ir.VoidType()

Bases = Mapping[Region | type[Report], ir.Value]
"""The base address of each region, and of the reports."""

_WORDS = REPORT_BYTES // 8


class Entries:
    """The entry points of a module, and the templates that they share.

    If `shared` is given, threads share the commands; it is the offset in activations where each run builds their
    program. A `hook` is called before and after each layer, with the layer's number and 0 or 1.
    """

    def __init__(
        self, module: ir.Module, shared: int | None = None, threads: int = 1, hook: ir.Function | None = None
    ) -> None:
        self._module = module
        self._hook = hook
        self._threads = threads
        self._shared = shared
        self._templates: dict[Slots, ir.GlobalVariable] = {}
        self._copy = _define_copy(module)

    def define(self, body: Body) -> ir.Function:
        """Define `int symbol(const uint8_t *constants, uint8_t *mutables, uint8_t *activations)`.

        It returns the code of the first failed check, with the state unchanged and `undo` run, or 0 if none failed.
        Variables are initialised as `beginnings` say.
        """
        function, bases, b = self._new_function(body.symbol, 0)
        reports = _on_stack(b, _WORDS * len(body.codes)) if body.codes else None
        bases = {**bases, Report: reports}
        task = _on_stack(b, most_slots((*body.commands, *body.undo)))
        self._initialize_variables(b, body, bases)
        for number, layer in enumerate(body.layers):
            self._layer(b, task, number, layer, bases)
        b.ret(self._end(b, task, body, bases))
        return function

    def define_step(self, body: Body, reports: Place) -> ir.Function:
        """Define `int symbol(const uint8_t *constants, uint8_t *mutables, uint8_t *activations, uint32_t *layer)`.

        It runs layer `*layer`, increments the number and returns `Code.MORE`. The last layer resets it to 0 and returns
        as the entry does. Check results are stored at `reports` between calls. A number without a layer is reset to 0
        and `Code.NO_LAYER` is returned.
        """
        function, bases, b = self._new_function(f"{body.symbol}.step", 1)
        at = function.args[len(Region)]
        bases = {**bases, Report: _address(b, bases, reports)}
        task = _on_stack(b, most_slots((*body.commands, *body.undo)))
        beyond = function.append_basic_block("beyond")
        switch = b.switch(b.load(at, typ=I32, align=4), beyond)
        for number, layer in enumerate(body.layers or ((),)):
            block = function.append_basic_block("layer")
            switch.add_case(I32(number), block)
            b.position_at_end(block)
            if number == 0:
                self._initialize_variables(b, body, bases)
            self._layer(b, task, number, layer, bases)
            if number + 1 < len(body.layers):
                b.store(I32(number + 1), at, align=4)
                b.ret(I32(Code.MORE.value))
            else:
                b.store(I32(0), at, align=4)
                b.ret(self._end(b, task, body, bases))
        b.position_at_end(beyond)
        b.store(I32(0), at, align=4)
        b.ret(I32(Code.NO_LAYER.value))
        return function

    def _new_function(self, symbol: str, more: int) -> tuple[ir.Function, Bases, ir.IRBuilder]:
        """A function of the three regions and `more` further pointers."""
        function = ir.Function(self._module, ir.FunctionType(I32, [PTR] * (len(Region) + more)), symbol)
        function.attributes.add("nounwind")
        function.linkage = "internal"
        regions = dict(zip(Region, function.args, strict=False))
        for region, argument in regions.items():
            argument.name = region.value
        return function, regions, ir.IRBuilder(function.append_basic_block("entry"))

    def _initialize_variables(self, b: ir.IRBuilder, body: Body, bases: Bases) -> None:
        """Clear the reports, and initialise the variables that are not yet."""
        for word in range(_WORDS * len(body.codes)):
            b.store(I64(0), b.gep(bases[Report], [I32(word)], source_etype=I64), align=8)
        for each in body.beginnings:
            with b.if_then(b.not_(_is_set(b, bases, each.started)), likely=False):
                b.call(
                    self._copy, [_address(b, bases, each.variable), _address(b, bases, each.initial), I64(each.nbytes)]
                )
                b.store(I8(1), _address(b, bases, each.started), align=1)

    def _layer(self, b: ir.IRBuilder, task: ir.Value, number: int, layer: Sequence[Run], bases: Bases) -> None:
        """Run the commands of a layer, between two calls of the hook if there is one."""
        if self._hook is not None:
            b.call(self._hook, [I32(number), I32(0)])
        self._run(b, task, layer, bases)
        if self._hook is not None:
            b.call(self._hook, [I32(number), I32(1)])

    def _end(self, b: ir.IRBuilder, task: ir.Value, body: Body, bases: Bases) -> ir.Value:
        """Advance the state unless a check failed; returns the code of the first failed check, or 0."""
        code: ir.Value = I32(0)
        for check, broken_code in reversed(tuple(enumerate(body.codes))):
            broken = b.load(b.gep(bases[Report], [I32(_WORDS * check)], source_etype=I64), typ=I64, align=8)
            code = b.select(b.icmp_unsigned("!=", broken, I64(0)), I32(broken_code), code)
        if body.codes and (body.entry.subgraph.state or body.undo):
            with b.if_else(b.icmp_unsigned("==", code, I32(0)), likely=True) as (whole, failed):
                with whole:
                    self._advance(b, body.entry, bases)
                with failed:
                    self._run(b, task, body.undo, bases)
        else:
            self._advance(b, body.entry, bases)
        return code

    def _run(self, b: ir.IRBuilder, task: ir.Value, commands: Sequence[Run], bases: Bases) -> None:
        if self._shared is None:
            self._run_serial(b, task, commands, bases)
        else:
            self._run_parallel(b, task, commands, bases)

    def _advance(self, b: ir.IRBuilder, entry: EntryPoint, bases: Bases) -> None:
        """Copy to state the elements that the run computed elsewhere."""
        for update in entry.subgraph.state:
            if entry.places[update.variable] == entry.places[update.source]:
                continue
            sides = [_address(b, bases, entry.places[i]) for i in (update.variable, update.source)]
            b.call(self._copy, [*sides, I64(entry.subgraph.type(update.variable).nbytes)])

    def _run_serial(self, b: ir.IRBuilder, task: ir.Value, commands: Sequence[Run], bases: Bases) -> None:
        """Run one command after another, all with the same task memory."""
        for command in commands:
            if isinstance(command, BoundCommand):
                self._fill(b, task, command.slots, bases)
                b.call(self._kernel(command.symbol), [task, I64(0), I64(command.tiles), I64(0)])
            else:
                self._program(b, task, command.steps, bases)

    def _program(self, b: ir.IRBuilder, task: ir.Value, steps: Sequence[Run], bases: Bases) -> None:
        """The steps of a program, as basic blocks with jumps between them."""
        jumps = {
            at: step for at, step in enumerate(steps) if isinstance(step, BoundCommand) and step.symbol == JUMP.symbol
        }
        begin = {to for at, step in jumps.items() for to in (at + 1, at + _by(step))}
        blocks = {at: b.append_basic_block("step") for at in sorted(begin | {len(steps)})}
        for at, step in enumerate(steps):
            self._branch_to(b, blocks.get(at))
            if at not in jumps:
                self._run_serial(b, task, (step,), bases)
                continue
            there = blocks[at + _by(jumps[at])]
            slots = dict(zip(JUMP.layout.names, jumps[at].slots, strict=True))
            if slots["flag"] == 0:
                b.branch(there)
                continue
            types = {"flag": PTR, "reports": PTR, "checks": I64, "most": I64, "report": PTR, "stop": PTR}
            values = [
                (PTR(None) if t is PTR else t(slot)) if isinstance(slot, int) else _address(b, bases, slot)
                for slot, t in ((slots[name], t) for name, t in types.items())
            ]
            taken = b.call(self._declared(JUMP.symbol, list(types.values()), ir.IntType(1)), values)
            b.cbranch(taken, there, blocks[at + 1])
        self._branch_to(b, blocks[len(steps)])

    @staticmethod
    def _branch_to(b: ir.IRBuilder, block: ir.Block | None) -> None:
        """Continue in a block, if one begins here."""
        if block is not None:
            if not b.block.is_terminated:
                b.branch(block)
            b.position_at_end(block)

    def _run_parallel(self, b: ir.IRBuilder, task: ir.Value, commands: Sequence[Run], bases: Bases) -> None:
        """Rows and tasks for `onert.together`, for every stretch of commands between programs."""
        stretch: list[BoundCommand] = []
        for command in commands:
            if isinstance(command, BoundCommand):
                stretch.append(command)
                continue
            self._shared_run(b, stretch, bases)
            stretch = []
            self._run_serial(b, task, (command,), bases)
        self._shared_run(b, stretch, bases)

    def _shared_run(self, b: ir.IRBuilder, commands: Sequence[BoundCommand], bases: Bases) -> None:
        if not commands:
            return
        program = _address(b, bases, Place(Region.ACTIVATIONS, self._shared or 0))
        at = ROW * (len(commands) + 1)
        runs = b.gep(program, [I64(ROW * len(commands))], source_etype=I8)
        for number, command in enumerate(commands):
            shares = b.gep(program, [I64(at)], source_etype=I8)
            task = b.gep(shares, [I64(SHARE * self._threads)], source_etype=I8)
            at += command.shared_bytes(self._threads) - ROW
            self._fill(b, task, command.slots, bases)
            numbers = (I64(command.tiles), I64(command.pieces), I64(int(command.sync)))
            for word, value in enumerate((self._kernel(command.symbol), task, *numbers, shares, runs, I64(0))):
                b.store(value, b.gep(program, [I64(ROW // 8 * number + word)], source_etype=I64), align=8)
        together = self._declared("onert.together", [PTR, I64])
        b.call(together, [program, I64(len(commands))])

    def _fill(self, b: ir.IRBuilder, task: ir.Value, slots: Slots, regions: Bases) -> None:
        template = self._template(tuple(slot if isinstance(slot, int) else 0 for slot in slots))
        b.call(self._copy, [task, template, I64(8 * len(slots))])
        for at, slot in enumerate(slots):
            if not isinstance(slot, int):
                here = b.gep(task, [I32(at)], source_etype=I64)
                b.store(_address(b, regions, slot), here, align=8)

    def _template(self, numbers: Slots) -> ir.GlobalVariable:
        found = self._templates.get(numbers)
        if found is None:
            t = ir.ArrayType(I64, len(numbers))
            found = ir.GlobalVariable(self._module, t, f"task{len(self._templates)}")
            found.initializer = ir.Constant(t, list(numbers))
            found.global_constant, found.linkage, found.align = True, "private", 16
            found.type = PTR
            self._templates[numbers] = found
        return found

    def _kernel(self, symbol: str) -> ir.Function:
        return self._declared(symbol, [PTR, I64, I64, I64])

    def _declared(self, symbol: str, parameters: Sequence[ir.Type], result: ir.Type = VOID) -> ir.Function:
        """A function of another module, declared once."""
        found = self._module.globals.get(symbol)
        return found or ir.Function(self._module, ir.FunctionType(result, parameters), symbol)


def _on_stack(b: ir.IRBuilder, words: int) -> ir.Value:
    found = b.alloca(ir.ArrayType(I64, words))
    found.align = 16
    found.type = PTR
    return found


def _by(jump: BoundCommand) -> int:
    """The offset of a jump's target, in steps."""
    by = jump.slots[JUMP.layout.slot("by")]
    assert isinstance(by, int)
    return by - (1 << 64) if by >> 63 else by


def _is_set(b: ir.IRBuilder, bases: Bases, place: Place | Report) -> ir.Value:
    return b.icmp_unsigned("!=", b.load(_address(b, bases, place), typ=I8, align=1), I8(0))


def _address(b: ir.IRBuilder, bases: Bases, place: Place | Report) -> ir.Value:
    base = bases[Report if isinstance(place, Report) else place.region]
    return b.gep(base, [I64(place.offset)], source_etype=I8) if place.offset else base


def _define_copy(module: ir.Module) -> ir.Function:
    """Define `copy(target, source, bytes)`: whole words, then the rest byte by byte, without calling a library."""
    function = ir.Function(module, ir.FunctionType(VOID, [PTR, PTR, I64]), "onert.copy")
    function.linkage = "internal"
    function.attributes.add("nounwind")
    target, source, nbytes = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))
    words = b.and_(nbytes, I64(-8))
    for start, stop, t in ((I64(0), words, I64), (words, nbytes, I8)):
        before, loop, done = b.block, b.append_basic_block("loop"), b.append_basic_block("done")
        b.cbranch(b.icmp_unsigned("<", start, stop), loop, done)
        b.position_at_end(loop)
        at = b.phi(I64)
        at.add_incoming(start, before)
        value = b.load(b.gep(source, [at], source_etype=I8), typ=t, align=t.width // 8)
        b.store(value, b.gep(target, [at], source_etype=I8), align=t.width // 8)
        following = b.add(at, I64(t.width // 8))
        at.add_incoming(following, loop)
        b.cbranch(b.icmp_unsigned("<", following, stop), loop, done)
        b.position_at_end(done)
    b.ret_void()
    return function
