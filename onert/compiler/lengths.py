"""What of compiling is done once for all lengths that the inputs of a model may have."""

from __future__ import annotations

from attrs import evolve

from onert.compiler.legalize.legalize import Supports
from onert.ir import OnertError, Operand, Shape, Subgraph, TensorType
from onert.ir.analysis.model_inference import infer_model

from .entry_signature import Entry
from .extension import load_extensions
from .options import Options
from .pipeline import simplified

MOST_KINDS = 8
"""How many sets of dimensions a model is simplified for, as it is found out which of them change."""


class Lengths:
    """An entry whose programs are compiled for one set of input shapes after the other.

    Once dimensions have changed, the passes run with these unknown, and what they make is compiled for each new length:
    there is little left for them to do, and constants that they made are shared. Passes do not assume anything of
    unknown dimensions, so their result has the meaning of the model for every length.
    """

    def __init__(self, entry: Entry, options: Options, supports: Supports) -> None:
        self._entry = entry
        self._supports = supports
        self._options = options
        self.first: tuple[Shape, ...] | None = None
        """The shapes of inputs that others are compared with, None where nothing was compiled yet."""
        self._open: frozenset[tuple[int, int]] = frozenset()
        self._simplified: Subgraph | None = None
        self._kinds = 0

    def opened(self, entry: Entry) -> tuple[tuple[int, int], ...] | None:
        """The dimensions of which this knows that they change, as positions of inputs and axes, if the entry differs in
        no others from the first; None where it does, and where it is the first and nothing has changed yet."""
        given = tuple(entry.subgraph.type(i).shape for i in entry.subgraph.inputs)
        first = self.first
        if first is None or any(None in shape for shape in first):
            return None
        if first != given:
            if not _changed(first, given):
                return None
            self.simplified(entry)
        return None if self._simplified is None else tuple(sorted(self._open))

    def with_symbols(self, entry: Entry) -> Entry:
        """The entry, with symbolic numbers for the open dimensions, as `simplified` gives others."""
        assert self._simplified is not None
        return self._entered(self._simplified, entry)

    def begin(self, entry: Entry) -> None:
        """Take an entry's shapes for the first, unless some were taken that are known."""
        if self.first is None or any(None in shape for shape in self.first):
            self.first = tuple(entry.subgraph.type(i).shape for i in entry.subgraph.inputs)

    def simplified(self, entry: Entry) -> Entry:
        """The entry, reshaped from this one's, or one with the same results and less to be done."""
        self.begin(entry)
        assert self.first is not None
        given = tuple(entry.subgraph.type(i).shape for i in entry.subgraph.inputs)
        changed = _changed(self.first, given)
        if not changed:  # or the rank, so that there is no dimension to leave open
            return entry
        if not changed <= self._open:
            self._open |= changed
            self._kinds += 1
            self._simplified = self._made() if self._kinds <= MOST_KINDS else None
        if self._simplified is None:
            return entry
        return self._entered(self._simplified, entry)

    def _entered(self, simplified: Subgraph, entry: Entry) -> Entry:
        graph = _entered(simplified, entry.subgraph)
        graphs = tuple(graph if i == entry.index else g for i, g in enumerate(entry.model.subgraphs))
        return evolve(entry, model=evolve(entry.model, subgraphs=graphs))

    def _made(self) -> Subgraph | None:
        """The entry's graph after the passes, with unknown dimensions where they change; None where that fails."""
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
            return None  # some shapes are refused: each set of shapes is compiled by itself, and says which


def _changed(first: tuple[Shape, ...], given: tuple[Shape, ...]) -> frozenset[tuple[int, int]]:
    """Positions of inputs, and their axes, whose lengths are others than at first; none where a rank is another."""
    pairs = list(zip(first, given, strict=True))
    if any(len(a) != len(b) for a, b in pairs):
        return frozenset()
    return frozenset((at, axis) for at, (a, b) in enumerate(pairs) for axis in range(len(a)) if a[axis] != b[axis])


def _entered(graph: Subgraph, like: Subgraph) -> Subgraph:
    """The graph with inputs as another has them."""
    number = dict(zip(graph.inputs, like.inputs, strict=True))
    operands: list[Operand] = [
        like.operands[number[i]] if i in number else operand for i, operand in enumerate(graph.operands)
    ]
    return evolve(graph, operands=tuple(operands))
