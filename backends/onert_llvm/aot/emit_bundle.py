"""Emits the object of a bundle; imported only when one is built."""

from __future__ import annotations

from onert.backend import Blueprint, ObjectCode, Settings
from onert_llvm.compile import lowered
from onert_llvm.target.versions import versions

from .emit_object import emit


def emit_object(blueprint: Blueprint, settings: Settings) -> ObjectCode:
    """The object file of a blueprint: the code that `generate` would load, with entry points that call it."""
    wanted = blueprint.target
    commands = {
        isa: [
            [lowered(sequence, isa, settings, compact=True) for sequence in (*entry.sequences, *entry.undo)]
            for entry in blueprint.entries
        ]
        for isa in versions(wanted.triple, wanted.cpu, wanted.features)
    }
    return emit(blueprint, commands, settings.num_threads)
