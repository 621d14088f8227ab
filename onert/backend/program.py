"""The frozen artefact that passes from the compiler to an executor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

from attrs import field, frozen

from onert.ir import DType, Quantization, Shape, Subgraph, TensorType
from onert.ir.errors import printable
from onert.ir.value import Told, Value

from .kernel import Kernel, Sequence, StretchedKernel
from .memory import HOST, ArenaPlan, Memory
from .residents import Residents

if TYPE_CHECKING:
    from onert.ir.symbolic.instructions import Instructions

WORK_OF_A_CALL = 1_500_000
"""Additions that take as long as an executor does to run a subgraph of no operations."""
WORK_OF_A_HANDED_BYTE = 50
"""The same for a byte of what the subgraph is given."""


@frozen
class TensorInfo(Value):
    """An input or output as callers see it; a dimension that is not known before the run is None.

    `signature_shape` is the shape of an input with None for the dimensions that the model leaves open although `shape`
    has them; None if it leaves none open. Callers may use each of `other_names` in the place of `name`: those that
    signatures give, and the tensor's own where the name is a signature's.
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
        """The shape, unknown in the dimensions that the model leaves open."""
        return self.shape if self.signature_shape is None else self.signature_shape

    @property
    def type(self) -> TensorType:
        return TensorType(self.dtype, self.shape, self.quantization)


@frozen
class Step(Value):
    """One kernel with the sequence it runs and the backend it came from."""

    backend: str
    sequence: Sequence
    kernel: Kernel


@frozen
class Routine(Value):
    """One compiled subgraph: kernels in an order that is right, and where every tensor lies.

    `dependencies[i]` are the steps that must have run before step i; where the executor keeps no order, of the steps
    that are ready the one with the highest of `ranks` goes first. `memories` gives each operand's memory space.
    `arenas` holds, by the space's name, where each operand lies that has a place before the run: what operations make
    with a static type. Inputs, outputs, constants, variables (which outlive a call of the subgraph) and dynamic tensors
    have none, nor have copies of the entry's inputs in other spaces; an `unstored` operand of a group has no tensor at
    all. `work` is what a run takes, in additions. Where it is `metered`, there are tensors of unknown size or calls of
    subgraphs: only a run tells what they take. `roots` names operands that lie in the memory of a variable, an input or
    an output, and which. `pairs` are inputs and outputs that a caller may let lie in one memory.
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

    @cached_property
    def followers(self) -> tuple[tuple[int, ...], ...]:
        """The steps that wait for each step."""
        found: list[list[int]] = [[] for _ in self.steps]
        for step, needed in enumerate(self.dependencies):
            for other in needed:
                found[other].append(step)
        return tuple(map(tuple, found))

    @cached_property
    def is_on_host(self) -> bool:
        """Whether all tensors lie in host memory."""
        return all(memory.name == HOST.name for memory in {id(m): m for m in self.memories.values()}.values())

    @cached_property
    def is_chain(self) -> bool:
        """Whether the steps can only run one after the other, in their order."""
        return all(step - 1 in needed for step, needed in enumerate(self.dependencies) if step)


@frozen(eq=False)
class Stretch(Told):
    """What programs have in common that differ by the lengths of some dimensions alone.

    - `lengths`: where each length is: the position of an input, and an axis
    - `numbers`: how all else is computed of the lengths, and for which ones it is
    - `kernels`: that of each step of the entry
    - `shapes`: of inputs, outputs and what lies in their memory, by operand: for each dimension a register and 0, or -1
      and the dimension that it always is
    - `capacities`: the bytes of the largest tensor that comes to lie there, for inputs and outputs
    - `used`: to be called when a frame goes on to other lengths, so that whoever made the stretch knows of its use
    """

    lengths: tuple[tuple[int, int], ...]
    numbers: Instructions
    kernels: tuple[StretchedKernel, ...]
    shapes: Mapping[int, tuple[tuple[int, int], ...]]
    capacities: Mapping[int, int]
    used: Callable[[], None]


@frozen
class Program(Value):
    """A compiled model. It holds no state: any number of executions may run it at once, and share its `residents`.

    `specialize` gives the program for other input shapes (by position), from a cache where it was made before.
    What is not known before the run is held to `max_memory` bytes at a time and `max_work` additions for each run.
    `recordings` are files that every execution writes: "trace", "table" or "minmax", and where. With a `stretch` an
    execution runs for other lengths too, without another program.
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
    residents: Residents = field(factory=Residents, eq=False, repr=False)
    stretch: Stretch | None = field(default=None, eq=False, repr=False)

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
        """The bytes of the constants, each operand's counted by itself."""
        operands = (operand for routine in self.routines for operand in routine.subgraph.operands)
        return sum(operand.type.nbytes for operand in operands if operand.is_constant)

    def _summary(self) -> tuple[tuple[str, str], ...]:
        """What people ask first, in words."""
        return (
            ("inputs", ", ".join(map(str, self.inputs)) or "none"),
            ("outputs", ", ".join(map(str, self.outputs)) or "none"),
            ("backends", ", ".join(f"{name} {count}" for name, count in self.backends.items()) or "none"),
            ("bytes", f"{self.constant_bytes} of constants, {self.arena_bytes} of memory"),
        )

    def __repr__(self) -> str:
        said = "; ".join(f"{what} {words}" for what, words in self._summary())
        return printable(f"<Program {self.name!r}: {said}>")

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        rows = "".join(f"<tr><th>{what}</th><td>{_html(words)}</td></tr>" for what, words in self._summary())
        return f"<table><caption>Program {_html(self.name)}</caption>{rows}</table>"

    def describe(self) -> str:
        """What runs where, and the memory it takes, in lines for people."""
        lines = [f"{self.name or 'model'}: executor {self.executor}, {self.num_threads} threads"]
        for at, routine in enumerate(self.routines):
            if not routine.subgraph.operands and at != self.entry:
                continue  # what no run comes to
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
        """Where the host arena of each routine starts in one buffer for them all, and how long that is."""
        sizes = [r.arenas[HOST.name].size if HOST.name in r.arenas else 0 for r in self.routines]
        return tuple(accumulate((size + -size % HOST.alignment for size in sizes), initial=0))

    @property
    def arena_bytes(self) -> int:
        """The bytes of host memory that an execution needs for its arenas, each subgraph's once."""
        return self.arena_offsets[-1]

    @property
    def memory_plan(self) -> Mapping[str, ArenaPlan]:
        """The arenas of the entry routine by memory space."""
        return self.main.arenas


def _html(text: str) -> str:
    """Text for a page: what would be markup is not."""
    return printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
