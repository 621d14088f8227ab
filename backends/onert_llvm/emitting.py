"""Objects of bundles: read when one is made."""

from __future__ import annotations

from onert.backend import Blueprint, ObjectCode, Settings

from .compiling import lowered
from .emit_object import emit
from .target_choice import choose


def emit_object(blueprint: Blueprint, settings: Settings) -> ObjectCode:
    """The object of a blueprint: the code that `generate` would load, with entry points that call it."""
    wanted = blueprint.target
    isa = choose(wanted.triple, wanted.cpu, wanted.features)
    commands = [[lowered(sequence, isa, settings) for sequence in entry.sequences] for entry in blueprint.entries]
    return emit(blueprint, isa, commands, settings.num_threads)
