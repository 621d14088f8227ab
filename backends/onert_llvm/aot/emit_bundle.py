"""Objects of bundles: read when one is made."""

from __future__ import annotations

from onert.backend import Blueprint, ObjectCode, Settings
from onert_llvm.compile import lowered
from onert_llvm.target.triple import choose

from .emit_object import emit


def emit_object(blueprint: Blueprint, settings: Settings) -> ObjectCode:
    """The object of a blueprint: the code that `generate` would load, with entry points that call it."""
    wanted = blueprint.target
    isa = choose(wanted.triple, wanted.cpu, wanted.features)
    commands = [
        [lowered(sequence, isa, settings) for sequence in (*entry.sequences, *entry.undo)]
        for entry in blueprint.entries
    ]
    return emit(blueprint, isa, commands, settings.num_threads)
