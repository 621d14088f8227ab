"""The pipeline: which passes run, in which order, how often."""

from __future__ import annotations

from onert.ir import Subgraph
from onert.ir.model_inference import infer_alone

from .check import check
from .options import Options
from .passes.channels_alone import channels_alone
from .passes.copy_outputs import copy_outputs
from .passes.fold_constants import fold_constants
from .passes.fold_shapes import fold_shapes
from .passes.fuse_activation import fuse_activation
from .passes.fuse_padding import fuse_padding
from .passes.merge_duplicates import merge_duplicates
from .passes.merge_reshapes import merge_reshapes
from .passes.merge_transposes import merge_transposes
from .passes.remove_dead import remove_dead
from .passes.remove_identities import remove_identities
from .rewrite import Pass

OPTIONAL: tuple[Pass, ...] = (
    fold_shapes,
    fold_constants,
    channels_alone,
    merge_transposes,
    merge_reshapes,
    remove_identities,
    merge_duplicates,
    fuse_padding,
    fuse_activation,
    remove_dead,
)
"""Run in this order, again and again until none finds anything to do; each may be turned off by its name."""

REQUIRED: tuple[Pass, ...] = (copy_outputs,)
"""Run once, at the end, always: the later phases need what they ensure."""

MOST_ROUNDS = 8  # real models settle in two or three; a bound for what passes do to each other on hostile ones


def optimize(subgraph: Subgraph, options: Options) -> Subgraph:
    """The subgraph as it is lowered: equivalent, and what the required passes ensure holds.

    After every pass that changes something the subgraph is checked, after every round its types are inferred anew:
    a folded operand may decide a shape.
    """
    passes = [p for p in OPTIONAL if options.optimize and p.__name__ not in options.disabled_passes]
    for _ in range(MOST_ROUNDS):
        before = subgraph
        for each in passes:
            subgraph = apply(each, subgraph)
        if subgraph is before:
            break
        subgraph = infer_alone(subgraph)
    for each in REQUIRED:
        subgraph = apply(each, subgraph)
    return subgraph


def apply(each: Pass, subgraph: Subgraph) -> Subgraph:
    """The subgraph after one pass, checked where it changed."""
    result = each(subgraph)
    if result is not subgraph:
        check(result, each.__name__)
    return result
