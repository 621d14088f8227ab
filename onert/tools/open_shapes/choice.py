"""Which sizes a model's open dimensions are given."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import TypeVar

from attrs import evolve, field, frozen

from onert.compiler.entry_signature import Entry, enter
from onert.compiler.passes.fold_shapes import fold_shapes
from onert.frontend.metadata import metadata
from onert.ir import CompileError, ModelError, OnertWarning, OptionError, Package, Subgraphs
from onert.ir.analysis.model_inference import infer_model
from onert.ir.link import link
from onert.ir.ops.control_flow.refuse import Refuse
from onert.ir.process.budget import Budget
from onert.ir.value import Value

from .dimensions import Dimension, Role, open_dimensions, sizes_by_name
from .sizes import assignments
from .words import refusal, sentence

MOST = 400
"""Sets of sizes that are tried."""
ENOUGH = 24
"""Sets that suit, and leave a branch impossible or a tensor empty, before the best of them is taken."""
DEMANDED = 32
"""Sizes of constants' dimensions that are tried."""
TRIES = 12
"""Sets that are compiled before giving up."""
ROUNDS = 4
"""How often arithmetic on shapes is looked for."""
STEPS = 4_000_000
"""Of inference for all of them, beside what the first takes."""
Shapes = Mapping[int, tuple[int, ...]]
Given = Mapping[int | str, tuple[int, ...]]
T = TypeVar("T")


@frozen
class Choice(Value):
    """Shapes for the inputs that a model leaves open, by position; none where it leaves none open.

    `said` is a sentence on them, empty where nothing but batches is open, which are of one item. `refused` says why
    there are none where no sizes suit the model's operations.
    """

    shapes: Shapes = field(factory=dict)
    said: str = ""
    refused: str = ""


@frozen
class _Asked(Value):
    """A model whose inputs have open dimensions, and what is known of them."""

    entry: Entry
    given: Shapes
    dimensions: tuple[Dimension, ...]
    fixed: Mapping[str, int]
    option: str

    @property
    def positions(self) -> list[int]:
        """The inputs that have open dimensions."""
        return sorted({position for each in self.dimensions for position, _ in each.places})

    @property
    def is_started(self) -> bool:
        """Whether the file has shapes to start with, and leaves nothing open but batches."""
        sizes = (self.entry.inputs[at].shape[axis] for each in self.dimensions for at, axis in each.places)
        return all(each.role is Role.BATCH for each in self.dimensions) and None not in sizes

    def choice(self, sizes: Mapping[str, int]) -> Choice:
        """The shapes for sizes by key."""
        placed = {place: sizes[each.key] for each in self.dimensions for place in each.places}
        shapes = {
            at: tuple(placed.get((at, axis), size or 1) for axis, size in enumerate(self.entry.inputs[at].shape))
            for at in self.positions
        }
        told = [each for each in self.dimensions if each.key not in self.fixed]
        return Choice(shapes, sentence(told, sizes, self.option))

    def refusal(self, reason: str) -> str:
        return refusal([self.entry.inputs[at] for at in self.positions], reason, self.option)


def choices(
    package: Package,
    signature: str | None = None,
    given: Given | None = None,
    *,
    option: str = "--shape_prepare",
) -> Iterator[Choice]:
    """Sizes for what the inputs of a package leave open, the likely ones first; `given` has the shapes of the others.

    Dimensions of one name have one size; batches are of one item; pictures are as large as the model's metadata says,
    else as large as its operations allow, and so are lengths. What compiling finds out it alone may refuse. `option` is
    what the sentences say sets them. There is at least one choice. CompileError for a signature or an input that there
    is not.
    """
    entry = enter(link(package, Budget(STEPS, CompileError)), signature)
    known = entry.by_position(given or {})
    said = metadata(package)
    dimensions = open_dimensions(entry.inputs, said, known)
    asked = _Asked(entry, known, dimensions, sizes_by_name(said, known), option)
    if asked.is_started:
        yield Choice()
        return
    reasons: list[str] = []
    found = False
    for choice in _suitable(asked, assignments(dimensions, said.image_size, asked.fixed, _demanded(entry)), reasons):
        found = True
        yield choice
    if not found:
        yield Choice(refused=asked.refusal(next(iter(reasons), "")))


def _suitable(asked: _Asked, sets: Iterator[dict[str, int]], reasons: list[str]) -> Iterator[Choice]:
    """Choices whose shapes the operations accept: then those that leave a branch impossible or a tensor empty, fewest
    first. `reasons` gets why others are refused."""
    budget = Budget(STEPS, CompileError)
    lacking: list[tuple[int, Choice]] = []
    for sizes in islice(sets, MOST):
        choice = asked.choice(sizes)
        try:
            shaped = asked.entry.reshaped({**asked.given, **choice.shapes})
            failing = _failing(_inferred(shaped.model, shaped.index, budget))
        except ModelError as error:
            reasons.append(str(error))
            continue
        except CompileError:  # a shape that no tensor may have, or the budget is spent
            break
        if not failing:
            yield choice
            continue
        lacking.append((failing, choice))
        if len(lacking) == ENOUGH:
            break
    for _, choice in sorted(lacking, key=lambda each: each[0]):
        yield choice


def compiled_with(
    package: Package,
    signature: str | None,
    given: Given,
    compiled: Callable[[Given], T],
    *,
    option: str = "--shape_prepare",
) -> T:
    """What `compiled` gives for the shapes of some inputs, and for those that are left open the first that it accepts;
    an OnertWarning says which these are. CompileError where no sizes suit."""
    first: CompileError | None = None
    for choice in islice(choices(package, signature, given, option=option), TRIES):
        if choice.refused:
            raise CompileError(choice.refused)
        try:
            pairs: list[tuple[int | str, tuple[int, ...]]] = [*given.items(), *choice.shapes.items()]
            made = compiled(dict(pairs))
        except CompileError as error:
            if not choice.said or isinstance(error, OptionError):
                raise
            if str(error) == str(first):  # shapes do not matter to it
                break
            first = first or error
            continue
        if choice.said:
            warnings.warn(choice.said, OnertWarning, stacklevel=2)
        return made
    raise CompileError(f"{first}; the model leaves shapes open, which {option} gives")


def _demanded(entry: Entry) -> tuple[int, ...]:
    """Sizes of dimensions of the first constants: what inputs may be multiplied with or added to."""
    constants = (operand.type.shape for operand in entry.subgraph.operands if operand.is_constant)
    return tuple(islice(dict.fromkeys(size for shape in constants for size in shape if size), DEMANDED))


def _inferred(model: Subgraphs, entry: int, budget: Budget) -> Subgraphs:
    """The model with its types, of which some are known once arithmetic on shapes is. ModelError where it refuses."""
    model = infer_model(model, entry, budget=budget)
    for _ in range(ROUNDS):
        folded = tuple(fold_shapes(graph) for graph in model.subgraphs)
        if all(new is old for new, old in zip(folded, model.subgraphs, strict=True)):
            break
        model = infer_model(evolve(model, subgraphs=folded), entry, budget=budget)
    return model


def _failing(model: Subgraphs) -> int:
    """How many operations give an empty tensor, and how many branches are impossible."""
    return sum(
        isinstance(operation.op, Refuse) or any(0 in graph.type(at).shape for at in operation.outputs)
        for graph in model.subgraphs
        for operation in graph.operations
    )
