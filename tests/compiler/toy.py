"""Small operations, backends and a runner for the compiler's tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from attrs import field, frozen

from onert.backend import HOST, Backend, Buffer, Group, HostMemory, Kernel, Memory, Program, Settings, Tensor, Tensors
from onert.backend import Sequence as OperationSequence
from onert.ir import (
    Array,
    CallTypes,
    Constant,
    Context,
    DType,
    Effect,
    Op,
    Operand,
    Operation,
    Quantization,
    StateUpdate,
    Subgraph,
    TensorType,
    evaluate,
    infer_subgraph,
    require,
)
from onert.ir.builder import Making
from onert.ir.shape import broadcast, num_elements, static


@frozen
class ToyAdd(Op):
    """`x + y`, broadcast."""

    def infer(self, x: TensorType, y: TensorType) -> TensorType:
        return x.result(broadcast((x.shape, y.shape)))

    def evaluate(self, x: Array, y: Array) -> Array:
        out: Array = x + y
        return out


@frozen
class ToyOfOne(Op):
    """Operations on `x` whose result has its type."""

    def infer(self, x: TensorType) -> TensorType:
        return x.result(x.shape)


@frozen
class ToyScale(ToyOfOne):
    """`factor * x`."""

    factor: float = 2.0

    def evaluate(self, x: Array) -> Array:
        out: Array = x * x.dtype.type(self.factor)
        return out


@frozen
class ToyFlat(Op):
    """The elements of `x` in one dimension."""

    shares: ClassVar[bool] = True
    stored: ClassVar[bool] = True

    def infer(self, x: TensorType) -> TensorType:
        return x.result((num_elements(x.shape),))

    def evaluate(self, x: Array) -> Array:
        return x.reshape(-1)


@frozen
class ToyHalves(Op):
    """The two halves of `x` along its first dimension, which is even."""

    def infer(self, x: TensorType) -> tuple[TensorType, TensorType]:
        first = x.shape[0]
        require(first is None or first % 2 == 0, f"first dimension is {first}, expected an even one")
        half = x.result((None if first is None else first // 2, *x.shape[1:]))
        return half, half

    def evaluate(self, x: Array) -> tuple[Array, Array]:
        middle = len(x) // 2
        return x[:middle], x[middle:]


@frozen
class ToyVeil(Op):
    """A view of `x` whose shape is unknown until the run."""

    def infer(self, x: TensorType) -> TensorType:
        return x.result((None,) * x.rank)

    def evaluate(self, x: Array) -> Array:
        return x[:]


@frozen
class ToyWrite(ToyOfOne):
    """`x`, which is also appended to the notes in the state."""

    effect: ClassVar[Effect] = Effect.WRITE

    def evaluate_in(self, context: Context, types: CallTypes, x: Array) -> Array:
        context.state.setdefault("notes", []).append(x.tolist())
        return x.copy()


@frozen
class ToyRead(ToyOfOne):
    """`x` plus the number of notes in the state."""

    effect: ClassVar[Effect] = Effect.READ

    def evaluate_in(self, context: Context, types: CallTypes, x: Array) -> Array:
        out: Array = x + x.dtype.type(len(context.state.get("notes", [])))
        return out


class Draft(Making):
    """A subgraph under construction; methods return operand numbers."""

    def __init__(self) -> None:
        super().__init__("")

    def input(  # type: ignore[override] # sizes instead of a type
        self, *shape: int | None, name: str = "", dtype: DType = DType.FLOAT32
    ) -> int:
        return super().input(TensorType(dtype, shape), name)

    def quantized_input(self, dtype: DType, quantization: Quantization | None, *shape: int | None) -> int:
        return super().input(TensorType(dtype, shape, quantization), "x")

    def constant(self, array: Array, quantization: Quantization | None = None) -> int:
        type_ = TensorType(DType.from_numpy(array.dtype), array.shape, quantization)
        return self._operand(Operand(type_, data=Constant(array)))

    def variable(self, *shape: int) -> int:
        return self._operand(Operand(TensorType(DType.FLOAT32, shape), variable=True))

    def op(self, op: Op, *inputs: int | None, results: int = 1, like: TensorType | None = None) -> Any:
        declared = like or TensorType(self._operands[next(i for i in inputs if i is not None)].type.dtype)
        made = tuple(self._operand(Operand(declared, f"t{len(self._operands)}")) for _ in range(results))
        self._operations.append(Operation(op, inputs, made, f"operation {len(self._operations)} {op.label}"))
        return made[0] if results == 1 else made

    def graph(self, *outputs: int, state: Sequence[tuple[int, int]] = ()) -> Subgraph:
        return infer_subgraph(self.uninferred(*outputs, state=state))

    def uninferred(self, *outputs: int, state: Sequence[tuple[int, int]] = ()) -> Subgraph:
        """The subgraph with the types as declared, even if they are wrong."""
        self._state = [StateUpdate(*update) for update in state]
        return self.subgraph(outputs)


def diamond(width: int, length: int = 1, scale: float = 2.0) -> Subgraph:
    """A scale, `width` chains of `length` scales by the next numbers, and additions of the ends of the chains."""
    d = Draft()
    return branched(d, d.op(ToyScale(scale), d.input(4, name="x")), width, length, scale + 1)


def branched(d: Draft, x: int, count: int, length: int, factor: float) -> Subgraph:
    """`count` independent chains of `length` scales of `x` by `factor` and the next numbers, added up."""
    ends = []
    for branch in range(count):
        end = x
        for _ in range(length):
            end = d.op(ToyScale(factor + branch), end)
        ends.append(end)
    total = ends[0]
    for end in ends[1:]:
        total = d.op(ToyAdd(), total, end)
    return d.graph(total)


class Elsewhere(HostMemory):
    """A separate memory space, in host memory but never accessible as an array."""

    name = "elsewhere"
    alignment = 16

    def view(self, arena: Array, offset: int, type_: TensorType) -> Buffer:
        return {"array": super().view(arena, offset, type_)}

    def copy_in(self, source: Array, target: Buffer, type_: TensorType) -> None:
        super().copy_in(source, target["array"], type_)

    def copy_out(self, source: Buffer, type_: TensorType) -> Array:
        copy: Array = source["array"].copy()
        return copy

    def copy(self, source: Buffer, target: Buffer, type_: TensorType) -> None:
        super().copy(source["array"], target["array"], type_)


ELSEWHERE = Elsewhere()


@frozen
class NumPyKernel:
    """Evaluates a sequence, operation by operation, in the order of its groups."""

    sequence: OperationSequence

    def bind(self, tensors: Tensors, context: Context) -> Callable[[], None]:
        def run() -> None:
            for group in self.sequence.groups:
                results: list[tuple[int, Array]] = []
                for at in group.operations:
                    operation = self.sequence.subgraph.operations[at]
                    made = dict(results)
                    arrays = [
                        None if i is None else made[i] if i in made else tensors[i].array for i in operation.inputs
                    ]
                    types = self.sequence.subgraph.types(operation)
                    results += zip(operation.outputs, evaluate(operation.op, arrays, types, context), strict=True)
                # A fused kernel may write its first result before it has read its last operand: write all at the end.
                for operand, array in results:
                    if operand not in group.unstored:
                        tensors[operand].assign(array)

        return run


class ToyBackend(Backend):
    """Runs the given kinds of operations with NumPy."""

    api_version = 2

    def __init__(
        self, name: str, kinds: Sequence[type[Op]] | None = None, memory: Memory = HOST, *, single: bool = False
    ) -> None:
        self.name = name  # type: ignore[misc] # the contract's class variables are instance attributes here
        self.kinds = kinds
        self.space = memory
        self.single = single  # type: ignore[misc] # as above
        self.generated: list[OperationSequence] = []

    @property
    def memory(self) -> Memory:
        return self.space

    def supports(self, operation: Operation, types: CallTypes) -> str | None:
        if self.kinds is None or isinstance(operation.op, tuple(self.kinds)):
            return None
        return f"no kernel for {operation.op.label}"

    def generate(self, sequence: OperationSequence, settings: Settings) -> Kernel:
        self.generated.append(sequence)
        return NumPyKernel(sequence)


class FusingBackend(ToyBackend):
    """Runs a whole sequence as one group, and stores only what other steps read."""

    def fuse(self, sequence: OperationSequence, settings: Settings) -> tuple[Group, ...]:
        made = [o for operation in sequence.body for o in operation.outputs]
        return (Group(sequence.operations, tuple(o for o in made if o not in sequence.outputs)),)


@frozen
class ToyContext:
    """State without subgraphs."""

    state: dict[Any, Any] = field(factory=dict)
    max_iterations: int | None = None
    stop: None = None

    def call(self, subgraph: int, inputs: Sequence[Array]) -> tuple[Array, ...]:
        raise NotImplementedError


class Run:
    """One execution of a program exactly as planned: placed tensors are in arenas, which contain garbage at first."""

    def __init__(self, program: Program) -> None:
        routine = program.main
        self.graph = routine.subgraph
        self.routine = routine
        self.context = ToyContext()
        arenas = {name: plan.memory.allocate(plan.size) for name, plan in routine.arenas.items()}
        for arena in arenas.values():
            arena[:] = 0x7F
        places = {
            operand: (plan.memory, arenas[name], place)
            for name, plan in routine.arenas.items()
            for operand, place in plan.placements.items()
        }
        tensors = {}
        for index, operand in enumerate(self.graph.operands):
            memory = routine.memories[index]
            if index in places:
                memory, arena, place = places[index]
                tensors[index] = Tensor(operand.type, memory.view(arena, place.offset, operand.type), memory)
            elif memory.name != HOST.name and operand.data is None and self._outlives(index):
                own = memory.view(memory.allocate(operand.type.nbytes), 0, operand.type)
                memory.copy_in(np.zeros(operand.type.shape, operand.type.dtype.numpy), own, operand.type)
                tensors[index] = Tensor(operand.type, own, memory)
            elif operand.data is not None:
                own = memory.view(memory.allocate(operand.type.nbytes), 0, operand.type)
                memory.copy_in(operand.data.array, own, operand.type)
                tensors[index] = Tensor(operand.type, own, memory)
            elif operand.type.is_static and (
                operand.variable or index in self.graph.inputs or index in self.graph.outputs
            ):
                tensors[index] = Tensor(operand.type, np.zeros(operand.type.shape, operand.type.dtype.numpy), memory)
            elif not operand.type.is_static:
                tensors[index] = Tensor(operand.type, None, memory)
        for operand, root in routine.roots.items():
            type_ = self.graph.type(operand)
            tensors[operand] = Tensor(type_, tensors[root].array.reshape(static(type_.shape)))
        self.tensors = Tensors(tensors)
        self.calls = [step.kernel.bind(self.tensors, self.context) for step in routine.steps]

    def _outlives(self, operand: int) -> bool:
        """Whether an operand in a separate memory space outlives a run: a variable, or the copy of an input."""
        at = self.graph.definitions.get(operand)
        copied = None if at is None else self.graph.operations[at]
        return self.graph.operands[operand].variable or (copied is not None and copied.used[0] in self.graph.inputs)

    def __call__(self, *inputs: Array, order: Sequence[int] | None = None) -> tuple[Array, ...]:
        for operand, array in zip(self.graph.inputs, inputs, strict=True):
            self.tensors[operand].assign(array)
        for step in range(len(self.calls)) if order is None else order:
            self.calls[step]()
        for update in self.graph.state:
            self.tensors[update.variable].assign(self.tensors[update.source].array)
        return tuple(self.tensors[o].array.copy() for o in self.graph.outputs)


def interpret(graph: Subgraph, inputs: Sequence[Array], state: Mapping[int, Array] | None = None) -> tuple[Array, ...]:
    """The outputs, by evaluating all operations in order, each result in separate memory."""
    known: dict[int, Array] = {i: o.data.array for i, o in enumerate(graph.operands) if o.data is not None}
    known.update(state or {})
    known.update(zip(graph.inputs, inputs, strict=True))
    context = ToyContext()
    for operation in graph.operations:
        arrays = [None if i is None else known[i] for i in operation.inputs]
        known.update(
            zip(operation.outputs, evaluate(operation.op, arrays, graph.types(operation), context), strict=True)
        )
    return tuple(known[o] for o in graph.outputs)
