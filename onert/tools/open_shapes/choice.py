"""Choose sizes for a model's dynamic dimensions."""

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
"""The most sets of sizes that are tried."""
ENOUGH = 24
"""The search ends with this many sets that pass inference but leave a branch impossible or a tensor empty."""
DEMANDED = 32
"""The most sizes of constants' dimensions that are tried."""
TRIES = 12
"""The most sets that are compiled before giving up."""
ROUNDS = 4
"""The most rounds of shape folding and inference."""
STEPS = 4_000_000
"""The budget of inference steps for all sets; linking the model has a budget of the same size."""
Shapes = Mapping[int, tuple[int, ...]]
InputShapes = Mapping[int | str, tuple[int, ...]]
T = TypeVar("T")


@frozen
class Choice(Value):
    """Shapes by position for the inputs with dynamic dimensions; empty if there are none.

    `said` is a message about them, empty if only batches (of one item) are dynamic. `refused` is the error if no sizes
    fit.
    """

    shapes: Shapes = field(factory=dict)
    said: str = ""
    refused: str = ""


@frozen
class _Asked(Value):
    """A model with dynamic inputs, and what is known about their dimensions."""

    entry: Entry
    given: Shapes
    dimensions: tuple[Dimension, ...]
    fixed: Mapping[str, int]
    option: str

    @property
    def positions(self) -> list[int]:
        """The inputs with dynamic dimensions."""
        return sorted({position for each in self.dimensions for position, _ in each.places})

    @property
    def is_started(self) -> bool:
        """Whether only batches are dynamic, and the file has initial sizes for them."""
        sizes = (self.entry.inputs[at].shape[axis] for each in self.dimensions for at, axis in each.places)
        return all(each.role is Role.BATCH for each in self.dimensions) and None not in sizes

    def choice(self, sizes: Mapping[str, int]) -> Choice:
        """The choice with these sizes of the dimensions, by key."""
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
    given: InputShapes | None = None,
    *,
    option: str = "--shape_prepare",
) -> Iterator[Choice]:
    """Choices of shapes for a package's dynamic inputs, likely ones first. `given` has the shapes of other inputs.

    Dimensions with the same name get the same size. Batches have one item. Pictures get the size in the metadata;
    without one, pictures and lengths get sizes that the operations accept. Compilation may still reject a choice.
    `option` is the option that messages recommend. There is always at least one choice. Raises CompileError if the
    signature or an input does not exist.
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
    """Choices whose shapes pass inference, followed by those that leave branches impossible or tensors empty (fewest
    first). Reasons for rejecting the others are added to `reasons`."""
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
        except CompileError:  # an invalid shape, or the budget is spent
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
    given: InputShapes,
    compiled: Callable[[InputShapes], T],
    *,
    option: str = "--shape_prepare",
) -> T:
    """The result of `compiled` with the given shapes and the first choice for dynamic inputs that it accepts.

    An OnertWarning names the chosen sizes. Raises CompileError if no sizes suit.
    """
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
            if str(error) == str(first):  # the error does not depend on the shapes
                break
            first = first or error
            continue
        if choice.said:
            warnings.warn(choice.said, OnertWarning, stacklevel=2)
        return made
    raise CompileError(f"{first}; the model has dynamic shapes, which {option} sets")


def _demanded(entry: Entry) -> tuple[int, ...]:
    """Sizes of the first constants' dimensions, because inputs may be multiplied with or added to these constants."""
    constants = (operand.type.shape for operand in entry.subgraph.operands if operand.is_constant)
    return tuple(islice(dict.fromkeys(size for shape in constants for size in shape if size), DEMANDED))


def _inferred(model: Subgraphs, entry: int, budget: Budget) -> Subgraphs:
    """The model with inferred types, after folding shape arithmetic. Raises ModelError if inference fails."""
    model = infer_model(model, entry, budget=budget)
    for _ in range(ROUNDS):
        folded = tuple(fold_shapes(graph) for graph in model.subgraphs)
        if all(new is old for new, old in zip(folded, model.subgraphs, strict=True)):
            break
        model = infer_model(evolve(model, subgraphs=folded), entry, budget=budget)
    return model


def _failing(model: Subgraphs) -> int:
    """The number of operations with an empty result plus the number of impossible branches."""
    return sum(
        isinstance(operation.op, Refuse) or any(0 in graph.type(at).shape for at in operation.outputs)
        for graph in model.subgraphs
        for operation in graph.operations
    )
