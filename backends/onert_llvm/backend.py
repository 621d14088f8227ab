"""The backend: what it runs natively, how operations are fused, and the kernels of sequences."""

from __future__ import annotations

import os
from collections.abc import Iterator

from onert.backend import Backend, Blueprint, Group, Kernel, ObjectCode, Sequence, Settings
from onert.ir import CallTypes, Op, Operation

from . import code
from .cache import Cache, default_directory
from .emit_object import emit
from .float_rules import ANY, ELEMENT_WISE, FLOATS
from .lower import byte_rules, fusion
from .lower.builder import Lowering
from .lower.command import Lowered
from .lower.rule import Rule
from .native_kernel import NativeKernel
from .target import Isa, target
from .target_choice import choose


def rule(op: Op, types: CallTypes) -> Rule:
    """The rule for an operation: the first that applies, else the first of its kind, which says why it does not."""
    possible = list(_rules(op, types))
    return next((r for r in possible if r.why_not(op, types) is None), possible[0])


def _rules(op: Op, types: CallTypes) -> Iterator[Rule]:
    kind = type(op)
    if kind in ANY:
        yield ANY[kind]
    yield from byte_rules.rules(op, types)
    yield FLOATS.get(kind, ELEMENT_WISE)


class Llvm(Backend):
    """Native code for sequences of operations, made with LLVM."""

    name = "llvm"

    def supports(self, operation: Operation, types: CallTypes) -> str | None:
        if not types.outputs or any(t is not None and not t.is_static for t in (*types.inputs, *types.outputs)):
            return "a shape is not known before the run"
        return rule(operation.op, types).why_not(operation.op, types)

    def fuse(self, sequence: Sequence, settings: Settings) -> tuple[Group, ...]:
        subgraph = sequence.subgraph
        rules = {
            at: rule(subgraph.operations[at].op, subgraph.types(subgraph.operations[at])) for at in sequence.operations
        }
        anchors = {at for at, found in rules.items() if found.anchor}
        chained = {at for at, found in rules.items() if found is ELEMENT_WISE}
        return fusion.groups(subgraph, sequence.operations, anchors, chained)

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
        return emit(blueprint, isa, lowered, settings.num_threads)


def _lowered(sequence: Sequence, isa: Isa, settings: Settings) -> Lowered:
    """The commands of a sequence for a target."""
    lowering = Lowering(sequence.subgraph, isa, settings)
    for group in sequence.groups:
        first = sequence.subgraph.operations[group.operations[0]]
        rule(first.op, sequence.subgraph.types(first)).lower(lowering, group.operations)
    return lowering.done()
