"""The frozen artefact that passes from the compiler to an executor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

from attrs import field, frozen

from onert.ir import DType, Quantization, Shape, Subgraph, TensorType
from onert.ir.errors import printable
from onert.ir.value import ByIdentity, Value

from .kernel import FollowingKernel, Kernel, Sequence, StretchedKernel
from .memory import HOST, ArenaPlan, Memory
from .residents import DeviceConstants

if TYPE_CHECKING:
    from onert.ir.symbolic.instructions import Instructions

WORK_PER_CALL = 1_500_000
"""The cost of an executor's call of an empty subgraph, in equivalent additions."""
WORK_PER_ARGUMENT_BYTE = 50
"""The cost per byte of the subgraph's arguments, in equivalent additions."""


CompilePart = Callable[[int, tuple[tuple[int, ...], ...]], "Program"]
"""Returns the program of a part of an entry, by its number, for inputs of these shapes, or one whose stretch serves
them."""

Reuse = Callable[[tuple[tuple[int, ...], ...]], "Program | None"]
"""Returns a program that serves inputs of these shapes; None if there is none."""


@frozen
class TensorInfo(Value):
    """An input or output as callers see it; a dimension that is unknown before the run is None.

    `signature_shape` is the shape of an input with None for the dimensions that the model leaves open although `shape`
    gives their sizes; None if it leaves none open. Callers may use any of `other_names` instead of `name`: names from
    signatures, and the tensor's own name if `name` is from a signature.
    """

    name: str
    dtype: DType
    shape: Shape
    quantization: Quantization | None = None
    signature_shape: Shape | None = None
    other_names: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name!r} {self.type}"

    @property
    def open_shape(self) -> Shape:
        """The shape, with None for the dimensions that the model leaves open."""
        return self.shape if self.signature_shape is None else self.signature_shape

    @property
    def is_open(self) -> bool:
        """Whether the model leaves a dimension open."""
        return None in self.open_shape

    @property
    def type(self) -> TensorType:
        return TensorType(self.dtype, self.shape, self.quantization)


@frozen
class Step(Value):
    """One kernel, the sequence it runs and the backend that generated it."""

    backend: str
    sequence: Sequence
    kernel: Kernel


@frozen
class Routine(Value):
    """One compiled subgraph: kernels in a valid order, and the memory of every tensor.

    `dependencies[i]` are the steps that must have run before step i. An executor that runs steps out of order takes the
    ready step with the highest value in `ranks` first. `memories` maps each operand to its memory space. `arenas` maps
    the name of a space to the placement of the operands allocated before the run: results with a static type. Inputs,
    outputs, constants, variables (which outlive a call of the subgraph), dynamic tensors and copies of the entry's
    inputs in other spaces are not in an arena; an `unstored` operand of a group has no tensor at all. `work` is a run's
    cost in additions. A `metered` routine has tensors of unknown size or calls subgraphs, so its cost is only known
    at run time. `roots` maps operands to the variable, input or output whose memory they share. `pairs` are inputs and
    outputs that a caller may place in the same memory. A run reads each element of the inputs `read_once` only once.
    """

    subgraph: Subgraph
    steps: tuple[Step, ...]
    dependencies: tuple[tuple[int, ...], ...]
    arenas: Mapping[str, ArenaPlan]
    memories: Mapping[int, Memory]
    ranks: tuple[float, ...] = ()
    work: int = 0
    metered: bool = False
    roots: Mapping[int, int] = field(factory=dict)
    pairs: tuple[tuple[int, int], ...] = ()
    read_once: tuple[int, ...] = ()

    @cached_property
    def followers(self) -> tuple[tuple[int, ...], ...]:
        """For each step, the steps that depend on it."""
        found: list[list[int]] = [[] for _ in self.steps]
        for step, needed in enumerate(self.dependencies):
            for other in needed:
                found[other].append(step)
        return tuple(map(tuple, found))

    @cached_property
    def read(self) -> frozenset[int]:
        """The operands that steps read but do not compute themselves, variables and inputs among them."""
        return frozenset(operand for step in self.steps for operand in step.sequence.inputs)

    @cached_property
    def is_on_host(self) -> bool:
        """Whether all tensors are in host memory."""
        return all(memory.name == HOST.name for memory in {id(m): m for m in self.memories.values()}.values())

    @cached_property
    def is_chain(self) -> bool:
        """Whether the steps can only run one after the other, in their order."""
        return all(step - 1 in needed for step, needed in enumerate(self.dependencies) if step)


@frozen(eq=False)
class Stretch(ByIdentity):
    """What programs share that differ only in the lengths of some dimensions.

    - `lengths`: where each length is read: the position of an input, and an axis
    - `numbers`: how everything else is computed from the lengths, and for which lengths it is valid
    - `kernels`: that of each step of the entry
    - `following`: the one of these that executes the instructions
    - `shapes`: the shapes, by operand, of inputs, outputs, the operands in their memory, and those that kernels read
      shapes of: for each dimension a register and 0, or -1 and the constant dimension, None if only a run determines it
    - `capacities`: for inputs and outputs of known shape, and results that last to the end of a run whose shapes depend
      on the lengths, the bytes of the largest tensor that will be stored there
    - `used`: called when a frame changes to other lengths, so that the stretch's creator can track its use
    """

    lengths: tuple[tuple[int, int], ...]
    numbers: Instructions
    kernels: tuple[StretchedKernel, ...]
    following: FollowingKernel
    shapes: Mapping[int, tuple[tuple[int, int | None], ...]]
    capacities: Mapping[int, int]
    used: Callable[[], None]


@frozen
class Program(Value):
    """A compiled model. It holds no state: any number of executions may run it at once, and share its `residents`.

    `specialize` returns the program for other input shapes (by position), cached if it was compiled before.
    Tensors of unknown size are limited to `max_memory` bytes at a time, and work of unknown amount to `max_work`
    additions per run. `recordings` maps the files that every execution writes ("trace", "table" or "minmax") to their
    paths. With a `stretch` an execution runs other lengths too, without another program. `reuse` returns a program
    whose stretch serves inputs of the given shapes, although it may have been compiled for others, if one was cached by
    another process. `rest` compiles the parts that `Rest` operations run; None if there are none.
    """

    name: str
    routines: tuple[Routine, ...]
    entry: int
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    executor: str
    num_threads: int
    max_iterations: int | None
    specialize: Callable[[Mapping[int, tuple[int, ...]]], Program]
    notes: tuple[str, ...] = ()
    recordings: Mapping[str, str] = field(factory=dict)
    max_memory: int | None = None
    max_work: int | None = None
    residents: DeviceConstants = field(factory=DeviceConstants, eq=False, repr=False)
    stretch: Stretch | None = field(default=None, eq=False, repr=False)
    rest: CompilePart | None = field(default=None, eq=False, repr=False)
    reuse: Reuse | None = field(default=None, eq=False, repr=False)

    @property
    def backends(self) -> Mapping[str, int]:
        """How many operations each backend runs, over all subgraphs."""
        found: dict[str, int] = {}
        for routine in self.routines:
            for step in routine.steps:
                found[step.backend] = found.get(step.backend, 0) + len(step.sequence.body)
        return found

    @property
    def constant_bytes(self) -> int:
        """The bytes of the constants, each operand's counted separately."""
        operands = (operand for routine in self.routines for operand in routine.subgraph.operands)
        return sum(operand.type.nbytes for operand in operands if operand.is_constant)

    def _summary(self) -> tuple[tuple[str, str], ...]:
        """The facts that people look for first, in words."""
        return (
            ("inputs", ", ".join(map(str, self.inputs)) or "none"),
            ("outputs", ", ".join(map(str, self.outputs)) or "none"),
            ("backends", ", ".join(f"{name} {count}" for name, count in self.backends.items()) or "none"),
            ("bytes", f"{self.constant_bytes} of constants, {self.arena_bytes} of memory"),
        )

    def __repr__(self) -> str:
        summary = "; ".join(f"{what} {words}" for what, words in self._summary())
        return printable(f"<Program {self.name!r}: {summary}>")

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        rows = "".join(f"<tr><th>{what}</th><td>{_html(words)}</td></tr>" for what, words in self._summary())
        return f"<table><caption>Program {_html(self.name)}</caption>{rows}</table>"

    def describe(self) -> str:
        """What runs where, and how much memory it needs, as lines for people."""
        lines = [f"{self.name or 'model'}: executor {self.executor}, {self.num_threads} threads"]
        for at, routine in enumerate(self.routines):
            if not routine.subgraph.operands and at != self.entry:
                continue  # never run
            title = f"subgraph {at}" + (f" '{routine.subgraph.name}'" if routine.subgraph.name else "")
            lines.append(f"{title}{' (entry)' if at == self.entry else ''}")
            for number, step in enumerate(routine.steps):
                body = [str(operation) for operation in step.sequence.body]
                lines.append(f"  step {number} {step.backend}: {', '.join(body)}")
            for name, arena in routine.arenas.items():
                lines.append(
                    f"  arena {name}: {arena.size} bytes by {arena.planner}, at least {arena.lower_bound} needed"
                )
        return "\n".join(map(printable, (*lines, *self.notes)))

    @property
    def main(self) -> Routine:
        return self.routines[self.entry]

    @cached_property
    def arena_offsets(self) -> tuple[int, ...]:
        """The offset of each routine's host arena in one buffer for all of them, followed by the buffer's size."""
        sizes = [r.arenas[HOST.name].size if HOST.name in r.arenas else 0 for r in self.routines]
        return tuple(accumulate((size + -size % HOST.alignment for size in sizes), initial=0))

    @property
    def arena_bytes(self) -> int:
        """The bytes of host memory that an execution needs for its arenas, with one for each subgraph."""
        return self.arena_offsets[-1]

    @property
    def memory_plan(self) -> Mapping[str, ArenaPlan]:
        """The arenas of the entry routine by memory space."""
        return self.main.arenas


def _html(text: str) -> str:
    """Escape text for HTML."""
    return printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
