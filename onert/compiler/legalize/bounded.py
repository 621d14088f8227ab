"""Results of which only a run knows how many there are, in memory for the most there can be."""

from __future__ import annotations

from functools import partial

from onert.compiler.rewrite.counts.counting import is_open
from onert.ir import Operation, Subgraph
from onert.ir.ops.data_movement.fill import FirstEntries, Where
from onert.ir.ops.vision_audio.boxes import BoxesPerClass
from onert.ir.process import imports

from .legalize import Supports, becomes_native


def bounded(graph: Subgraph, supports: Supports) -> Subgraph:
    """The graph in which what finds places or boxes has results of known shapes and says how many of their entries
    count, and operations that treat entries alike run on all of them; the first entries are taken at the end.

    Only where what finds them is native. The same object comes back where nothing changes.

        i = Where(m); y = Gather(x, i)    -->    p, n = CountedWhere(m); y = FirstEntries(Gather(x, p), n)
    """
    if not any(_counts(graph, operation) for operation in graph.operations):
        return graph

    rules = imports.module("onert.compiler.rewrite.counts.bounding")  # of many kinds, which few models need
    found: Subgraph = rules.Bounding(graph, partial(becomes_native, supports=supports)).run()
    return found


def _counts(graph: Subgraph, operation: Operation) -> bool:
    """Whether only a run may know how much an operation gives, or how much counts of it."""
    return isinstance(operation.op, Where | BoxesPerClass | FirstEntries) or is_open(graph, operation)
