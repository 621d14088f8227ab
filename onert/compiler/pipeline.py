"""The pipeline: which passes run, in which order, and how often."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from attrs import evolve

from onert.compiler.legalize.legalize import Supports, legalize
from onert.compiler.passes.copy_outputs import copy_outputs
from onert.compiler.passes.fold_constants import fold_constants
from onert.compiler.passes.fold_scales import fold_scales
from onert.compiler.passes.fold_shapes import fold_shapes
from onert.compiler.passes.fuse_activation import fuse_activation
from onert.compiler.passes.fuse_padding import fuse_padding
from onert.compiler.passes.fuse_update_row import fuse_update_row
from onert.compiler.passes.join_siblings import join_siblings
from onert.compiler.passes.layout.fuse_transposes import fuse_transposes
from onert.compiler.passes.layout.merge_blocks import merge_blocks
from onert.compiler.passes.layout.merge_reshapes import merge_reshapes
from onert.compiler.passes.layout.merge_transposes import merge_transposes
from onert.compiler.passes.layout.move_transposes import move_transposes
from onert.compiler.passes.layout.pool_planes import pool_planes
from onert.compiler.passes.merge_duplicates import merge_duplicates
from onert.compiler.passes.pick_rows import pick_rows
from onert.compiler.passes.quantized.compare_bytes import compare_bytes
from onert.compiler.passes.quantized.move_bytes import move_bytes
from onert.compiler.passes.quantized.multiply_bytes import multiply_bytes
from onert.compiler.passes.quantized.skip_bytes import skip_bytes
from onert.compiler.passes.remove_dead import remove_dead
from onert.compiler.passes.remove_identities import remove_identities
from onert.compiler.passes.update_in_place import update_in_place
from onert.compiler.passes.widen import widen
from onert.compiler.passes.windows.grouped_conv_to_depthwise import grouped_conv_to_depthwise
from onert.compiler.passes.windows.trim_windows import trim_windows
from onert.compiler.rewrite.contract import WELL_FORMED, Pass, hold
from onert.ir import CallTypes, Op, Subgraph, Subgraphs
from onert.ir.analysis.model_inference import infer_alone
from onert.ir.ops.data_movement.slicing import StridedSlice
from onert.ir.process import imports

from .extension import Extension, decompositions_with, passes_of
from .limits import native_work
from .options import Options

if TYPE_CHECKING:
    from onert.compiler.passes.inline_control_flow import Runs, Steps

OPTIONAL: tuple[Pass, ...] = (
    fold_shapes,
    fold_constants,
    grouped_conv_to_depthwise,
    move_transposes,
    merge_transposes,
    pool_planes,
    merge_blocks,
    merge_reshapes,
    remove_identities,
    merge_duplicates,
    join_siblings,
    fuse_padding,
    trim_windows,
    move_bytes,
    multiply_bytes,
    skip_bytes,
    compare_bytes,
    fuse_transposes,
    fold_scales,
    pick_rows,
    fuse_activation,
    fuse_update_row,
    remove_dead,
)
"""Run in this order, repeatedly until none changes anything. Each can be disabled by name."""

REQUIRED: tuple[Pass, ...] = (copy_outputs,)
"""Always run, once, at the end: the later phases need what they ensure."""

ENTRY_PASSES: tuple[Pass, ...] = (update_in_place,)
"""Run after `REQUIRED` on the entry subgraph only, because a failed run is undone as a whole."""

CUT = "cut"
"""The name of cutting an entry behind sizes that nothing bounds (`compiler/rest.py`)."""

Watch = Callable[[str, Subgraph], None]
"""Called with the name of each pass that changed a subgraph, and the changed subgraph."""

SHARE = 4
"""The part of a run's work that one selection of boxes may take if it keeps all: with more it is evaluated, and takes
as long as the boxes of a run need."""
MOST_ROUNDS = 8  # real models settle in two or three rounds; on hostile models passes might undo each other for ever


def optimize(
    subgraph: Subgraph,
    options: Options,
    model: Subgraphs | None = None,
    runs: Runs | None = None,
    work: int | None = None,
    supports: Supports | None = None,
    extensions: tuple[Extension, ...] = (),
    is_entry: bool = True,
    watch: Watch | None = None,
    runnable: bool = True,
) -> Subgraph:
    """An equivalent subgraph, ready for lowering: everything that the required passes ensure holds.

    `is_entry`: callers enter the subgraph directly, not only other subgraphs. Operations are decomposed if `supports`
    says that this makes them native. Loops and branches that call subgraphs of the `model` become operations that
    enclose these, if possible and if a backend `runs` the result; together such loops may use the `work` of one run.
    `watch` is called after each step, but not inside loops and branches. Unless the result is `runnable`, only required
    passes run: others would take their time in vain.
    """
    if not runnable:
        options, supports, runs = evolve(options, optimize=False), None, None

    def prepared(graph: Subgraph, watch: Watch | None = None) -> Subgraph:
        graph = simplified(graph, options, extensions, watch, supports)
        if supports is None:
            return graph
        find = decompositions_with(extensions)
        decomposed = partial(legalize, supports=supports, find=find)
        bounded = partial(bound_sizes, supports=supports, work=None if work is None else work // SHARE)
        steps = [(bound_sizes.__name__, bounded), (legalize.__name__, decomposed)]
        for name, step in steps:
            found = _prepared(name, step, graph, options, watch)
            if found is not graph:
                graph = simplify(found, options, extensions, watch)
                if step is decomposed:  # passes may have fused operations into one that no backend runs
                    graph = _prepared(name, step, graph, options, watch)
        return graph

    subgraph = prepared(subgraph, watch)
    if model is not None and runs is not None and options.optimize and enclose.__name__ not in options.disabled_passes:
        alone = partial(simplify, options=options, extensions=extensions)
        steps = (lambda g: alone(infer_alone(g)), lambda g: prepared(infer_alone(g)))
        found = enclose(model, subgraph, steps, runs, options.max_iterations, work)
        if found is not subgraph:
            hold(enclose.__name__, "ensures", (WELL_FORMED,), found)
            if watch is not None:
                watch(enclose.__name__, found)
        subgraph = found
    for each in (*REQUIRED, *(ENTRY_PASSES if is_entry else ())):
        subgraph = _watched(each, subgraph, watch)
    return subgraph


def enclose(
    model: Subgraphs, graph: Subgraph, steps: Steps, runs: Runs, most: int | None, work: int | None = None
) -> Subgraph:
    """The graph with its loops and branches enclosed (`passes.inline_control_flow`, imported only if there are any)."""
    if not any(operation.op.subgraphs for operation in graph.operations):
        return graph
    found: Subgraph = imports.module("onert.compiler.passes.inline_control_flow").enclose(
        model, graph, steps, runs, most, work
    )
    return found


def bound_sizes(graph: Subgraph, supports: Supports, work: int | None = None) -> Subgraph:
    """The graph with known (upper-bound) shapes for results whose size only a run determines (`legalize.bound_sizes`).
    An operation on all these entries may take so much `work`.

    The modules for this are imported only if a shape or a picked index is unknown, which is rare.
    """
    picks = any(isinstance(o.op, StridedSlice) and o.op.picks(graph.type(o.used[1])) for o in graph.operations)
    if not picks and all(operand.type.is_static for operand in graph.operands):
        return graph

    def affords(op: Op, types: CallTypes) -> bool:
        return work is None or native_work(op, types) <= work

    found: Subgraph = imports.module("onert.compiler.legalize.bound_sizes").bound_sizes(graph, supports, affords)
    return found


def _prepared(
    name: str, step: Callable[[Subgraph], Subgraph], graph: Subgraph, options: Options, watch: Watch | None
) -> Subgraph:
    """The graph after a legalisation step; unchanged if the step is disabled."""
    found = graph if name in options.disabled_passes else step(graph)
    if found is graph:
        return graph
    hold(name, "ensures", (WELL_FORMED,), found)
    found = infer_alone(found)
    if watch is not None:
        watch(name, found)
    return found


def _watched(each: Pass, subgraph: Subgraph, watch: Watch | None) -> Subgraph:
    found = each(subgraph)
    if watch is not None and found is not subgraph:
        watch(each.name, found)
    return found


def pass_names(extensions: Sequence[Extension] = ()) -> tuple[str, ...]:
    """The names allowed in `Options.disabled_passes`."""
    own = (widen, bound_sizes, legalize, enclose)
    return (*(p.name for p in (*OPTIONAL, *passes_of(extensions))), *(step.__name__ for step in own), CUT)


def simplified(
    subgraph: Subgraph,
    options: Options,
    extensions: tuple[Extension, ...],
    watch: Watch | None,
    supports: Supports | None,
) -> Subgraph:
    """The subgraph after the optional passes, widened, and if that changed it after them again; for all lengths."""
    subgraph = simplify(subgraph, options, extensions, watch)
    if supports is None:
        return subgraph
    found = _prepared(widen.__name__, partial(widen, supports=supports), subgraph, options, watch)
    return subgraph if found is subgraph else simplify(found, options, extensions, watch)


def simplify(
    subgraph: Subgraph, options: Options, extensions: tuple[Extension, ...] = (), watch: Watch | None = None
) -> Subgraph:
    """The subgraph after the optional passes.

    The subgraph is verified after every pass that changes it. Types are inferred again after every round, because a
    folded operand may determine a shape.
    """
    everyone = (*OPTIONAL, *passes_of(extensions))
    passes = [p for p in everyone if options.optimize and p.name not in options.disabled_passes]
    for _ in range(MOST_ROUNDS):
        before = subgraph
        for each in passes:
            subgraph = _watched(each, subgraph, watch)
        if subgraph is before:
            break
        subgraph = infer_alone(subgraph)
    return subgraph
