"""The backend: what it runs natively, how operations are fused, and the kernels of sequences."""

from __future__ import annotations

import os
from collections.abc import Iterator

from onert.backend import Backend, Blueprint, Group, Kernel, ObjectCode, Sequence, Settings
from onert.ir import CallTypes, Op, Operation
from onert.ir.ops.conv import Conv2D
from onert.ir.ops.convert import Bitcast
from onert.ir.ops.copy import Copy
from onert.ir.ops.depthwise import DepthwiseConv2D
from onert.ir.ops.fully_connected import FullyConnected
from onert.ir.ops.gather import EmbeddingLookup, Gather, GatherNd
from onert.ir.ops.joining import Concat, Pack, Split, SplitV, Unpack
from onert.ir.ops.layout import BatchToSpaceND, SpaceToBatchND
from onert.ir.ops.reshape import ExpandDims, Reshape, Squeeze
from onert.ir.ops.resize import ResizeNearestNeighbor
from onert.ir.ops.slicing import MirrorPad, Pad

from . import code
from .cache import Cache, default_directory
from .emit_object import emit
from .lower import byte_rules, elementwise, fusion, gathering, movement, products
from .lower.builder import Lowering
from .lower.command import Lowered
from .lower.rule import Rule
from .lower.views import VIEWS
from .native_kernel import NativeKernel
from .target import Isa, target
from .target_choice import choose

_ELEMENTWISE = Rule(elementwise.why_not, elementwise.lower_elementwise)
_MOVEMENT = Rule(movement.why_not, movement.lower)

FLOATS: dict[type[Op], Rule] = {
    Conv2D: Rule(products.why_not, products.lower_convolution, anchor=True),
    DepthwiseConv2D: Rule(products.why_not, products.lower_depthwise, anchor=True),
    FullyConnected: Rule(products.why_not, products.lower_fully_connected, anchor=True),
}
_GATHERING = Rule(gathering.why_not, gathering.lower)
_MOVED = (Reshape, Squeeze, ExpandDims, Copy, Bitcast, Concat, Split, SplitV, Pack, Unpack, Pad, MirrorPad)
ANY: dict[type[Op], Rule] = {
    **dict.fromkeys((*_MOVED, SpaceToBatchND, BatchToSpaceND, *VIEWS), _MOVEMENT),
    **dict.fromkeys((Gather, GatherNd, EmbeddingLookup), _GATHERING),
    ResizeNearestNeighbor: Rule(gathering.why_not, gathering.lower_nearest),
}
"""Rules by the kind of operation: for float32, and for elements of any type."""


def rule(op: Op, types: CallTypes) -> Rule:
    """The rule for an operation: the first that applies, else the first of its kind, which says why it does not."""
    possible = list(_rules(op, types))
    return next((r for r in possible if r.why_not(op, types) is None), possible[0])


def _rules(op: Op, types: CallTypes) -> Iterator[Rule]:
    kind = type(op)
    if kind in ANY:
        yield ANY[kind]
    yield from byte_rules.rules(op, types)
    yield FLOATS.get(kind, _ELEMENTWISE)


class Llvm(Backend):
    """Native code for sequences of operations, made with LLVM."""

    name = "llvm"

    def supports(self, operation: Operation, types: CallTypes) -> str | None:
        if not types.outputs or any(t is not None and not t.is_static for t in (*types.inputs, *types.outputs)):
            return "a shape is not known before the run"
        return rule(operation.op, types).why_not(operation.op, types)

    def fuse(self, sequence: Sequence, settings: Settings) -> tuple[Group, ...]:
        subgraph = sequence.subgraph
        return fusion.groups(subgraph, sequence.operations, lambda o: rule(o.op, subgraph.types(o)).anchor)

    def generate(self, sequence: Sequence, settings: Settings) -> Kernel:
        isa = target(settings.target)
        lowered = _lowered(sequence, isa, settings)
        cache = Cache(default_directory(os.environ))
        kernels = code.addresses((command.spec for command in lowered.commands), cache)
        return NativeKernel(lowered, kernels, code.pool(isa, cache), settings.num_threads)

    def emit_object(self, blueprint: Blueprint, settings: Settings) -> ObjectCode:
        """The object of a blueprint: the code that `generate` would load, with entry points that call it."""
        wanted = blueprint.target
        isa = choose(wanted.triple, wanted.cpu, wanted.features)
        lowered = [[_lowered(sequence, isa, settings) for sequence in entry.sequences] for entry in blueprint.entries]
        return emit(blueprint, isa, lowered)


def _lowered(sequence: Sequence, isa: Isa, settings: Settings) -> Lowered:
    """The commands of a sequence for a target."""
    lowering = Lowering(sequence.subgraph, isa, settings)
    for group in sequence.groups:
        first = sequence.subgraph.operations[group.operations[0]]
        rule(first.op, sequence.subgraph.types(first)).lower(lowering, group.operations)
    return lowering.done()
