"""Kernels as stored on disk: commands, packed constants and the machine code that they call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from onert.ir import Array
from onert.ir.value import ByIdentity
from onert_llvm.command.command import Access, Area, Callee, Check, Command, Lowered, Pointer
from onert_llvm.command.task_layout import TaskLayout

from . import loaded_code
from .aligned_memory import Elements, NamedFunction
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


@frozen(eq=False)
class SerializedStretch(ByIdentity):
    """What a stretched kernel has besides its kernel: `widest` without commands, which are those of the `lists`.

    `changes` has the fields of each `Change`, and `computed` only functions that can be named. `numbers` is the object
    file of `codegen/native/numbers.ll`.
    """

    widest: Lowered
    lists: tuple[tuple[tuple[Command, bool], ...], ...]
    changes: tuple[tuple[tuple[tuple[int, ...], int, int | None, Pointer | None], ...], ...]
    computed: tuple[tuple[int, Callable[..., Array], tuple[tuple[bool, Any], ...]], ...]
    triple: str
    numbers: bytes


SERIALIZABLE = (
    *(SerializedKernel, SerializedStretch, Lowered, Command, Callee, TaskLayout),
    *(Pointer, Area, Access, Check, Elements, NamedFunction),
)
"""The classes of which serialized kernels consist."""


def serialized(
    kernel: NativeKernel, objects: Mapping[str, bytes], triple: str, drivers: tuple[bytes, ...]
) -> SerializedKernel:
    """A kernel to store: its commands refer to their code only by what a call needs."""
    own = kernel.lowered
    lowered = evolve(own, commands=called(own.commands), sequential=called(own.sequential), specs={})
    return SerializedKernel(lowered, objects, triple, drivers, kernel.threads)


def called(commands: Sequence[Command]) -> tuple[Command, ...]:
    """The commands without the descriptions of their code."""
    return tuple(
        evolve(
            command,
            spec=Callee(command.spec.name, command.spec.symbol, command.spec.layout),
            program=called(command.program),
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
