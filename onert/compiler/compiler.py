"""Compilation of a package to programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import astuple, define, evolve, field

from onert.backend import Backend, Program, Routine
from onert.backend.residents import DeviceConstants
from onert.compiler.report.graphviz import graphs, write_dots
from onert.compiler.rewrite.effects import subgraph_effects
from onert.compiler.scheduler.manual import Choices, choices, support, why_not
from onert.ir import (
    CallTypes,
    CompileError,
    ModelError,
    Operation,
    OptionError,
    Package,
    Shape,
    Subgraph,
    Subgraphs,
)
from onert.ir.analysis.model_inference import infer_model
from onert.ir.link import link
from onert.ir.process import imports
from onert.ir.process.budget import Budget
from onert.ir.shape import static
from onert.ir.symbolic.trace import hint

from .entry_signature import Entry, enter
from .extension import load_extensions
from .lengths import Lengths
from .limits import STEPS, Limits, io_bytes, limits, spend_operations, steps
from .options import Options, recordings
from .pipeline import optimize, pass_names
from .recipes.recipe import Recipes
from .recipes.stretching import stretch
from .routine import compile_routine, plan_routine, summary
from .state.as_operands import with_state

if TYPE_CHECKING:
    from onert.compiler.scheduler.exec_time import ExecTimes

COMPILED_BEFORE_RECIPES = 1
"""How many programs are compiled individually before a recipe where a length may be the last: they need less memory."""

Shapes = Mapping[int, tuple[int, ...]]
WatchModel = Callable[[int, str, Subgraph], None]
"""Called with the index of a subgraph, the name of a pass that changed it, and the changed subgraph."""

MOST_CUTS = 8
"""How deep parts are cut again: each of them runs inside the one before."""

CACHED_PROGRAMS, MOST_CACHED, CACHED_BYTES = 8, 32, 256 << 20
"""How many programs for different input shapes stay cached (the most recently used): at least the first number, and for
small models up to the second while their constants, if nothing is shared, fit in this many bytes."""


def compilation(
    package: Package,
    options: Options,
    backends: Sequence[Backend],
    residents: DeviceConstants | None = None,
    watch: WatchModel | None = None,
) -> Compilation:
    """The compilation of a package for `backends` (loaded, in order of preference). Its programs share `residents`.
    `watch` is called with the result of each pass on each subgraph.

    Raises ModelError if the package's models do not fit together, CompileError for a signature or an input shape that
    the model does not have, and OptionError for unknown passes or settings.
    """
    linking = Budget(STEPS + sum(_size(model) for model in package.models), CompileError)
    entry = enter(link(package, linking), options.signature)
    shapes = entry.by_position(options.input_shapes)
    _require_known(options, backends)
    chosen = choices(entry.subgraph, options, entry.model.subgraphs)
    return Compilation(
        package.name, entry, options, tuple(backends), shapes, residents or DeviceConstants(), watch, chosen
    )


@define(eq=False, repr=False, slots=False)
class Compilation:
    """A package being compiled. It is retained so that programs for other input shapes can be compiled later.

    `shapes` are the input shapes, by position, in which the first program differs from the model. If the entry was
    cut, it has the `parts`, and `whole` is the entry before.
    """

    name: str
    entry: Entry
    options: Options
    backends: tuple[Backend, ...]
    shapes: Shapes
    residents: DeviceConstants
    watch: WatchModel | None
    choices: Choices
    parts: tuple[Entry, ...] = ()
    whole: Entry = field()
    of_parts: dict[tuple[int, tuple[int, ...]], Compilation] = field(init=False, factory=dict)
    divided: Compilation | None = field(init=False, default=None)
    cut_shapes: Shapes | None = field(init=False, default=None)
    allowed: Limits = field(init=False, default=Limits(0, 0))
    depth: int = field(init=False, default=0)
    measured: ExecTimes | None = field(init=False)
    programs: dict[tuple[tuple[Shape, Shape], ...], Program] = field(init=False, factory=dict)
    lengths: Lengths = field(init=False)
    without_recipe: int = field(init=False, default=0)
    recipes: dict[tuple[tuple[int, int], ...], Recipes] = field(init=False, factory=dict)
    before_recipes: set[tuple[tuple[Shape, Shape], ...]] = field(init=False, factory=set)
    """Keys of programs older than any recipe."""
    capacity: int = field(init=False)

    @whole.default
    def _whole(self) -> Entry:
        return self.entry

    def __attrs_post_init__(self) -> None:
        self.measured = _measured(self.options) if self.options.use_scheduler else None
        supports = partial(support, backends=self.backends, chosen=self.choices)
        self.lengths = Lengths(self.entry, self.options, supports)
        constants = sum(o.type.nbytes for graph in self.entry.model.subgraphs for o in graph.operands if o.is_constant)
        self.capacity = min(MOST_CACHED, max(CACHED_PROGRAMS, CACHED_BYTES // max(1, constants)))

    def first(self) -> Program:
        """The program for the input shapes of the options. Raises CompileError or BackendError if that fails."""
        return self.program(self.shapes)

    def specialize(self, shapes: Mapping[int, tuple[int, ...]]) -> Program:
        """The program in which some inputs, by position, have other shapes."""
        if self.lengths.first is None:  # the first program may have been compiled by another process
            self.lengths.begin(self.entry.reshaped(self.shapes))
        changed = {self.entry.position(position): tuple(shape) for position, shape in shapes.items()}
        self.measure_no_more()
        return self.program({**self.shapes, **changed})

    def adopt(self, shapes: Mapping[int, tuple[int, ...]], program: Program) -> None:
        """Take over the program for some input shapes, all of them known, which another process compiled."""
        if self.divided is not None:
            self.divided.adopt(shapes, program)
            return
        changed = {self.entry.position(position): tuple(shape) for position, shape in shapes.items()}
        entry = self.entry.reshaped({**self.shapes, **changed})
        self.lengths.begin(entry)
        self.programs[entry.shapes] = evolve(program, specialize=self.specializer(entry, shapes))
        self.before_recipes.add(entry.shapes)
        self.without_recipe += program.stretch is not None  # other lengths were met

    def measure_no_more(self) -> None:
        """Stop tuning: programs for changed shapes use cached measurements instead of making the caller wait."""
        if self.options.tune is not None:
            self.options = evolve(self.options, tune=0.0)

    def program(self, shapes: Mapping[int, tuple[int, ...]]) -> Program:
        """The program for inputs of these shapes; all other inputs keep the model's shapes."""
        if self.divided is not None:
            return self.divided.program(shapes)
        entry = self.entry.reshaped(shapes)
        # There is no lock, so two threads may compile the same program at once: a lock could stay held for ever by an
        # interrupted thread, or in a forked child.
        program = self.programs.get(entry.shapes)
        if program is None or entry.shapes in self.before_recipes:
            derived = self.by_recipe(entry, shapes)
            if derived is None and not self.recipes:
                self.before_recipes.add(entry.shapes)
            else:
                self.before_recipes.discard(entry.shapes)
            program = derived or program or self.compiled(entry, shapes)
        self.programs.pop(entry.shapes, None)
        self.programs[entry.shapes] = program
        for oldest in tuple(self.programs)[: -self.capacity]:
            self.programs.pop(oldest, None)
            self.before_recipes.discard(oldest)
        return program

    def by_recipe(self, entry: Entry, shapes: Mapping[int, tuple[int, ...]]) -> Program | None:
        """The program for possibly new lengths, derived from a recipe; None if it has to be compiled individually."""
        uses_recipes = self.watch is None and self.measured is None and not self.options.graph_dot_dump
        opened = self.lengths.opened(entry) if uses_recipes else None
        if not opened or (self.without_recipe < COMPILED_BEFORE_RECIPES and self.lengths.may_be_last(opened)):
            self.without_recipe += bool(opened)
            return None
        declared = [entry.subgraph.type(i).shape for i in entry.subgraph.inputs]
        lengths = tuple(declared[at][axis] for at, axis in opened)

        def compiled(symbols: tuple[int, ...]) -> Program:
            named = dict(zip(opened, symbols, strict=True))
            symbolic = {
                at: tuple(named.get((at, axis), d) for axis, d in enumerate(static(shape)))
                for at, shape in enumerate(declared)
            }
            return self.compiled(self.entry.reshaped(symbolic), symbolic, symbolic=True)

        stretched = partial(stretch, backends={backend.name: backend for backend in self.backends}, lengths=opened)
        recipes = self.recipes.setdefault(opened, Recipes(opened))
        program = recipes.program(static(lengths), self.lengths.longest(opened), compiled, stretched)
        rest = self.rest if self.parts else None
        return None if program is None else evolve(program, specialize=self.specializer(entry, shapes), rest=rest)

    def specializer(
        self, entry: Entry, shapes: Mapping[int, tuple[int, ...]]
    ) -> Callable[[Mapping[int, tuple[int, ...]]], Program]:
        """A function that returns programs for other shapes than those of the given entry."""

        def specialize(other: Mapping[int, tuple[int, ...]]) -> Program:
            changed = {entry.position(position): tuple(shape) for position, shape in other.items()}
            self.measure_no_more()
            return self.program({**shapes, **changed})

        return specialize

    def compiled(self, entry: Entry, shapes: Mapping[int, tuple[int, ...]], symbolic: bool = False) -> Program:
        for backend in self.backends:
            backend.begin(self.options.settings)
        budget = steps(entry.model)
        allowed = limits(self.whole.model, entry.subgraph, self.whole.subgraph, self.options, self.backends)
        self.allowed = Limits(*(max(a, hint(b)) for a, b in zip(astuple(self.allowed), astuple(allowed), strict=True)))
        if not symbolic:  # checked before tables of that length are built
            io_budget = Budget(allowed.memory, CompileError, "bytes")
            io_budget.spend(io_bytes(entry.subgraph), f"{self.name}: allocating its inputs and outputs (max_memory)")
        inputs = entry.inputs
        entry = self.lengths.with_symbols(entry) if symbolic else self.lengths.simplified(entry)
        entry = evolve(entry, model=_prepared(entry, self, budget, allowed))
        found = None if symbolic else self.divide(entry.subgraph, shapes)
        if found is not None:
            return found.program(shapes)
        routines, notes = self.routines(entry.model, entry.index, budget, allowed)
        if self.options.graph_dot_dump:
            write_dots(Path(self.options.workspace_dir), graphs(entry.model, routines, self.options.graph_dot_dump))
        return Program(
            name=self.name,
            routines=routines,
            entry=entry.index,
            inputs=inputs,
            outputs=entry.outputs,
            executor=self.options.executor,
            num_threads=self.options.num_threads,
            max_iterations=self.options.max_iterations,
            max_memory=allowed.memory,
            max_work=allowed.work,
            specialize=_template if symbolic else self.specializer(entry, shapes),
            notes=notes,
            recordings=recordings(self.options),
            residents=self.residents,
            rest=self.rest if self.parts and not symbolic else None,
        )

    def divide(self, prepared: Subgraph, shapes: Shapes) -> Compilation | None:
        """The compilation of the entry cut where sizes are unknown in the graph `prepared` from it for inputs of these
        shapes; None if there are none, or if it is not to be cut. All later programs are compiled by it."""
        if self.parts or self.depth == MOST_CUTS or all(operand.type.is_static for operand in prepared.operands):
            return None
        rest = imports.module("onert.compiler.rest")  # imported only for such models
        wanted = self.measured is None and rest.is_wanted(self.options, self.backends)
        found = rest.cut(self.entry, prepared) if wanted else None
        if found is not None:
            self.divided = self.of(found.entry, self.options, self.shapes, found.parts, self.entry)
            self.cut_shapes = shapes
        return self.divided

    def of(self, entry: Entry, options: Options, shapes: Shapes, *cut: Any) -> Compilation:
        """The compilation of a graph made from this one."""
        made = Compilation(
            self.name, entry, options, self.backends, shapes, DeviceConstants(), self.watch, self.choices, *cut
        )
        made.allowed, made.depth = self.allowed, self.depth
        return made

    def rest(self, part: int, shapes: tuple[tuple[int, ...], ...]) -> Program:
        """The program of a part, by its number, for inputs of these shapes; they may change in a run."""
        return self.part(part, tuple(map(len, shapes))).opened(shapes)

    def part(self, part: int, ranks: tuple[int, ...]) -> Compilation:
        """The compilation of a part, by its number, for inputs of these ranks."""
        if self.divided is not None:
            return self.divided.part(part, ranks)
        self.measure_no_more()
        found = self.of_parts.get((part, ranks))
        if found is None:
            own = evolve(self.options, max_memory=self.allowed.memory, max_work=self.allowed.work)
            own = evolve(own, input_shapes={}, op_backend_map={}, graph_dot_dump=0)
            found = self.of_parts[part, ranks] = self.of(self.parts[part - len(self.entry.model)], own, {})
            found.depth += 1
        return found

    def opened(self, shapes: tuple[tuple[int, ...], ...]) -> Program:
        """The program of this part for inputs of these shapes."""
        program = self.program(dict(enumerate(shapes)))
        inputs = tuple(evolve(info, signature_shape=(None,) * len(info.shape)) for info in program.inputs)
        return evolve(program, inputs=inputs, recordings={})

    def cut(self, shapes: Shapes) -> None:
        """Cut the entry as for inputs of these shapes, for a program that another process compiled."""
        entry = self.entry.reshaped(shapes)
        self.allowed = limits(entry.model, entry.subgraph, self.entry.subgraph, self.options, self.backends)
        prepared = _prepared(entry, self, steps(entry.model), self.allowed)
        self.divide(prepared[entry.index], shapes)

    def routines(
        self, model: Subgraphs, entry: int, budget: Budget, allowed: Limits
    ) -> tuple[tuple[Routine, ...], tuple[str, ...]]:
        """A routine for every subgraph, and notes. One CompileError lists the failures of all subgraphs."""
        memory = Budget(allowed.memory, CompileError, "bytes")
        for subgraph in model.subgraphs:
            spend_operations(budget, subgraph)
        effects = subgraph_effects(model)
        routines: list[Routine] = []
        notes: list[str] = []
        missing: list[str] = []
        called = {i for graph in model.subgraphs for operation in graph.operations for i in operation.op.subgraphs}
        for index, subgraph in enumerate(model.subgraphs):
            resident = index == entry and entry not in called
            chosen = self.choices if index == entry else evolve(self.choices, by_location={})
            try:
                plan = plan_routine(subgraph, effects, self.backends, chosen, self.options, self.measured, resident)
                routine = compile_routine(plan, self.options, self.measured, memory)
            except CompileError as error:
                missing.append(str(error))
                continue
            if routine.work > allowed.work:
                raise CompileError(
                    f"a run takes as long as {routine.work} additions, more than the {allowed.work} allowed for a "
                    "model of this size (max_work)"
                )
            routines.append(routine)
            notes += (summary(index, routine), *plan.notes) if subgraph.operands or index == entry else ()
        if missing:
            raise CompileError("; ".join(missing))
        return tuple(routines), tuple(notes)


def _template(shapes: Mapping[int, tuple[int, ...]]) -> Program:
    """The `specialize` function of a program with symbolic dimensions, which always raises."""
    raise CompileError("a program with symbolic dimensions can be neither run nor specialised")


def _require_known(options: Options, backends: Sequence[Backend]) -> None:
    """Raise OptionError for unknown passes in `disabled_passes`, and for settings that no backend has."""
    passes = pass_names(load_extensions(options.extensions)) if options.disabled_passes else ()
    settings = sorted({name for backend in backends for name in backend.extra})
    for option, chosen, known in (
        ("disabled_passes", sorted(options.disabled_passes), passes),
        ("extra", list(options.extra), settings),
    ):
        unknown = [name for name in chosen if name not in known]
        if unknown:
            raise OptionError(option, f"has {', '.join(map(repr, unknown))}, allowed: {', '.join(known) or 'none'}")


def _measured(options: Options) -> ExecTimes:
    """The execution times measured earlier, from the workspace."""
    times = imports.module("onert.compiler.scheduler.exec_time")
    found: ExecTimes = times.load(Path(options.workspace_dir) / times.FILE)
    return found


def _size(model: Subgraphs) -> int:
    """The number of steps that copying a model once costs."""
    return 20 * sum(len(graph.operands) + len(graph.operations) for graph in model.subgraphs)


def _prepared(entry: Entry, compilation: Compilation, budget: Budget, allowed: Limits) -> Subgraphs:
    """The model after type inference and the passes. Raises CompileError if an operation rejects the input shapes.

    Subgraphs that are no longer called are emptied. No run can use the program if the shape of an input is unknown.
    """
    given = map(entry.subgraph.type, entry.subgraph.inputs)
    runnable = all(type_.is_static or type_.dtype.is_handle for type_ in given)
    chosen, options, backends, watch = compilation.choices, compilation.options, compilation.backends, compilation.watch
    preferred = next((backend for backend in backends if not backend.single), None)
    extensions = load_extensions(options.extensions)

    def runs(operation: Operation, types: CallTypes) -> bool:
        return preferred is not None and why_not(preferred, operation, types) is None

    try:
        model = with_state(infer_model(entry.model, entry.index, budget=budget), entry.index)
        found: dict[int, Subgraph] = {}
        pending = [entry.index]
        while pending:
            index = pending.pop()
            spend_operations(budget, model[index])
            choices_ = chosen if index == entry.index else evolve(chosen, by_location={})
            supports = partial(support, backends=backends, chosen=choices_)
            is_entry = index == entry.index
            on_change = None if watch is None else partial(watch, index)
            found[index] = optimize(
                model[index], options, model, runs, allowed.work, supports, extensions, is_entry, on_change, runnable
            )
            called = {i for operation in found[index].operations for i in operation.op.subgraphs}
            pending += sorted(called - found.keys())
        return evolve(model, subgraphs=tuple(found.get(i, Subgraph((), (), (), ())) for i in range(len(model))))
    except ModelError as error:
        raise CompileError(str(error)) from error
