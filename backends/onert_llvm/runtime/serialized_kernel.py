"""Kernels as stored on disk: commands, packed constants and the machine code that they call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve, frozen

from onert.ir.value import Told
from onert_llvm.command.command import Access, Area, Callee, Check, Command, Lowered, Pointer
from onert_llvm.command.task_layout import TaskLayout

from . import loaded_code
from .native_kernel import NativeKernel


@frozen(eq=False)
class KeptKernel(Told):
    """A native kernel without addresses: `objects` are object files by the symbol that they define.

    `walkers` are the object files of the code that runs the commands.
    """

    lowered: Lowered
    objects: Mapping[str, bytes]
    triple: str
    walkers: tuple[bytes, ...]
    threads: int


SERIALIZABLE = (*(KeptKernel, Lowered, Command, Callee, TaskLayout, Pointer, Area, Access, Check),)
"""The classes of which a serialized kernel consists."""


def kept(kernel: NativeKernel, objects: Mapping[str, bytes], triple: str, walkers: tuple[bytes, ...]) -> KeptKernel:
    """A kernel to store: its commands refer to their code only by what a call needs."""
    own = kernel.lowered
    lowered = evolve(own, commands=_called(own.commands), in_turn=_called(own.in_turn), specs={})
    return KeptKernel(lowered, objects, triple, walkers, kernel.threads)


def _called(commands: Sequence[Command]) -> tuple[Command, ...]:
    return tuple(
        evolve(
            command,
            spec=Callee(command.spec.name, command.spec.symbol, command.spec.layout),
            program=_called(command.program),
        )
        for command in commands
    )


def revived(kept: KeptKernel) -> NativeKernel:
    """The kernel in this process: its code is loaded, its constants are used in place."""
    kernels = loaded_code.addresses(kept.objects, lambda missing: [kept.objects[symbol] for symbol in missing])
    walkers = loaded_code.walkers(kept.triple, len(kept.walkers), kept.walkers.__getitem__)
    return NativeKernel(kept.lowered, kernels, walkers, kept.threads)
