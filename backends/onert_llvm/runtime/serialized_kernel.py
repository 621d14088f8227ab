"""Kernels as stored on disk: commands, packed constants and the machine code that they call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve, frozen

from onert.ir.value import ByIdentity
from onert_llvm.command.command import Access, Area, Callee, Check, Command, Lowered, Pointer
from onert_llvm.command.task_layout import TaskLayout

from . import loaded_code
from .native_kernel import NativeKernel


@frozen(eq=False)
class SerializedKernel(ByIdentity):
    """A native kernel without addresses: `objects` are object files by the symbol that they define.

    `drivers` are the object files of the code that runs the commands.
    """

    lowered: Lowered
    objects: Mapping[str, bytes]
    triple: str
    drivers: tuple[bytes, ...]
    threads: int


SERIALIZABLE = (*(SerializedKernel, Lowered, Command, Callee, TaskLayout, Pointer, Area, Access, Check),)
"""The classes of which a serialized kernel consists."""


def serialized(
    kernel: NativeKernel, objects: Mapping[str, bytes], triple: str, drivers: tuple[bytes, ...]
) -> SerializedKernel:
    """A kernel to store: its commands refer to their code only by what a call needs."""
    own = kernel.lowered
    lowered = evolve(own, commands=_called(own.commands), sequential=_called(own.sequential), specs={})
    return SerializedKernel(lowered, objects, triple, drivers, kernel.threads)


def _called(commands: Sequence[Command]) -> tuple[Command, ...]:
    return tuple(
        evolve(
            command,
            spec=Callee(command.spec.name, command.spec.symbol, command.spec.layout),
            program=_called(command.program),
        )
        for command in commands
    )


def deserialized(serialized: SerializedKernel) -> NativeKernel:
    """The kernel in this process: its code is loaded, its constants are used in place."""
    kernels = loaded_code.addresses(
        serialized.objects, lambda missing: [serialized.objects[symbol] for symbol in missing]
    )
    drivers = loaded_code.drivers(serialized.triple, len(serialized.drivers), serialized.drivers.__getitem__)
    return NativeKernel(serialized.lowered, kernels, drivers, serialized.threads)
