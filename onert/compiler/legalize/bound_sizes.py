"""Allocate upper bounds for results whose number of entries is only known at run time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from onert.compiler.rewrite.counts.counting import is_open
from onert.ir import CallTypes, Op, Operation, Subgraph
from onert.ir.ops.data_movement.fill import FirstEntries, Where
from onert.ir.ops.vision_audio.boxes import BoxesPerClass
from onert.ir.process import imports

from .legalize import Supports, becomes_native

Affords = Callable[[Op, CallTypes], bool]
"""Whether one operation may do its largest possible work in a run."""


def bound_sizes(graph: Subgraph, supports: Supports, affords: Affords) -> Subgraph:
    """The graph in which operations that find positions or boxes have results of known shapes and a count of valid
    entries, and operations on single entries run on all of them; the valid first entries are taken at the end.

    Applies only if the finding operation is native, and if a run `affords` its largest possible work. Returns the same
    object if nothing changes.

        i = Where(m); y = Gather(x, i)    -->    p, n = CountedWhere(m); y = FirstEntries(Gather(x, p), n)
    """
    if not any(_counts(graph, operation) for operation in graph.operations):
        return graph

    rules = imports.module("onert.compiler.rewrite.counts.bounding")  # imports many kinds, which few models need
    found: Subgraph = rules.Bounding(graph, partial(becomes_native, supports=supports), affords).run()
    return found


def _counts(graph: Subgraph, operation: Operation) -> bool:
    """Whether an operation's result size, or its number of valid entries, may be known only at run time."""
    return isinstance(operation.op, Where | BoxesPerClass | FirstEntries) or is_open(graph, operation)
