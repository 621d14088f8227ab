"""The part of compilation that is done once for all lengths of a model's inputs."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from onert.compiler.legalize.legalize import Supports
from onert.ir import OnertError, Operand, Shape, Subgraph, TensorType
from onert.ir.analysis.model_inference import infer_model

from .entry_signature import Entry
from .extension import load_extensions
from .options import Options
from .pipeline import simplified

MOST_OPEN_SETS = 8
"""For how many sets of changing dimensions a model is simplified, as ever more dimensions turn out to change."""


class Lengths:
    """An entry that is compiled for one set of input shapes after the other.

    Once dimensions have changed, the passes run with these unknown, and their result is what is compiled for each new
    length: little is left for the passes to do then, and the constants they computed are shared. Passes assume nothing
    about unknown dimensions, so their result is equivalent to the model for every length.
    """

    def __init__(self, entry: Entry, options: Options, supports: Supports) -> None:
        self._entry = entry
        self._supports = supports
        self._options = options
        self.first: tuple[Shape, ...] | None = None
        """The input shapes that later ones are compared with; None if nothing was compiled yet."""
        self._open: frozenset[tuple[int, int]] = frozenset()
        self._simplified: Subgraph | None = None
        self._open_sets = 0
        self._longest: dict[tuple[int, int], int] = {}

    def opened(self, entry: Entry) -> tuple[tuple[int, int], ...] | None:
        """The dimensions that are known to change, as pairs of input position and axis. None if an input's shape is
        unknown, if the entry's ranks differ from the first entry's, if it is the first and nothing has changed yet, or
        if simplification failed."""
        shapes = tuple(entry.subgraph.type(i).shape for i in entry.subgraph.inputs)
        first = self.first
        if first is None or any(None in shape for shape in (*first, *shapes)):
            return None
        for at, (before, now) in enumerate(zip(first, shapes, strict=True)):
            for axis, (a, b) in enumerate(zip(before, now, strict=False)):
                self._longest[at, axis] = max(self._longest.get((at, axis), 0), a or 0, b or 0)
        if first != shapes:
            if not _changed(first, shapes):
                return None
            self.simplified(entry)
        return None if self._simplified is None else tuple(sorted(self._open))

    def may_be_last(self, opened: Sequence[tuple[int, int]]) -> bool:
        """Whether the model may stay as it is now: many have one dimension changed once that they do not leave open."""
        (at, axis), *others = opened
        declared = self._entry.subgraph.type(self._entry.subgraph.inputs[at])
        return not others and declared.ranked and declared.shape[axis] is not None

    def longest(self, opened: Sequence[tuple[int, int]]) -> tuple[int, ...]:
        """The greatest length so far of each of these dimensions, which have changed."""
        return tuple(self._longest[each] for each in opened)

    def with_symbols(self, entry: Entry) -> Entry:
        """The simplified entry, like `simplified`, for an entry with symbolic open dimensions."""
        assert self._simplified is not None
        return self._with_graph(self._simplified, entry)

    def begin(self, entry: Entry) -> None:
        """Record an entry's shapes as the first, unless fully known shapes are already recorded."""
        if self.first is None or any(None in shape for shape in self.first):
            self.first = tuple(entry.subgraph.type(i).shape for i in entry.subgraph.inputs)

    def simplified(self, entry: Entry) -> Entry:
        """An equivalent entry with less left to do, or the given one (this entry reshaped) if there is none."""
        self.begin(entry)
        assert self.first is not None
        shapes = tuple(entry.subgraph.type(i).shape for i in entry.subgraph.inputs)
        changed = _changed(self.first, shapes)
        if not changed:  # or a rank differs, so there is no dimension to leave open
            return entry
        if not changed <= self._open:
            self._open |= changed
            self._open_sets += 1
            self._simplified = self._simplify() if self._open_sets <= MOST_OPEN_SETS else None
        if self._simplified is None:
            return entry
        return self._with_graph(self._simplified, entry)

    def _with_graph(self, simplified: Subgraph, entry: Entry) -> Entry:
        graph = _with_inputs_of(simplified, entry.subgraph)
        graphs = tuple(graph if i == entry.index else g for i, g in enumerate(entry.model.subgraphs))
        return evolve(entry, model=evolve(entry.model, subgraphs=graphs))

    def _simplify(self) -> Subgraph | None:
        """The entry's graph after the passes, with changing dimensions unknown; None if that fails."""
        entry, first = self._entry, self.first
        assert first is not None
        types: dict[int, TensorType] = {}
        for position, (operand, shape) in enumerate(zip(entry.subgraph.inputs, first, strict=True)):
            opened = tuple(None if (position, axis) in self._open else d for axis, d in enumerate(shape))
            types[operand] = entry.subgraph.type(operand).with_shape(opened)
        graphs = list(entry.model.subgraphs)
        graphs[entry.index] = entry.subgraph.with_types(types)
        try:
            model = infer_model(evolve(entry.model, subgraphs=tuple(graphs)), entry.index)
            extensions = load_extensions(self._options.extensions)
            return simplified(model[entry.index], self._options, extensions, None, self._supports)
        except OnertError:
            return None  # some shapes are invalid: shapes are compiled individually, which reports the error


def _changed(first: tuple[Shape, ...], shapes: tuple[Shape, ...]) -> frozenset[tuple[int, int]]:
    """The (input position, axis) pairs whose lengths differ from the first; empty if a rank differs."""
    pairs = list(zip(first, shapes, strict=True))
    if any(len(a) != len(b) for a, b in pairs):
        return frozenset()
    return frozenset((at, axis) for at, (a, b) in enumerate(pairs) for axis in range(len(a)) if a[axis] != b[axis])


def _with_inputs_of(graph: Subgraph, like: Subgraph) -> Subgraph:
    """The graph with the input operands of `like`."""
    number = dict(zip(graph.inputs, like.inputs, strict=True))
    operands: list[Operand] = [
        like.operands[number[i]] if i in number else operand for i, operand in enumerate(graph.operands)
    ]
    return evolve(graph, operands=tuple(operands))
