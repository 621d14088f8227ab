"""The contract's requirements on every backend, whatever it computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread

import numpy as np

from onert.backend.backend import API_VERSION, Backend, Settings
from onert.backend.queue import Enqueues, Queue, queue_of
from onert.backend.tensor import Tensor, Tensors
from onert.ir import Array, DType, Operand, Operation, Subgraph, TensorType, evaluate
from onert.ir.ops.elementwise.binary import Binary, BinaryKind

from .bench import Bench, in_turn
from .trial import Misaligned, Trial, compare
from .trials import TRIALS

Claim = Callable[[Backend], None]


def hold(backend: Backend, claim: Claim) -> None:
    """Raises Misaligned if the backend violates the claim; a backend that does not support the operations holds it."""
    claim(backend)


def _require(condition: bool, sentence: str) -> None:
    if not condition:
        raise Misaligned(sentence)


def _supported(backend: Backend, count: int) -> Iterator[Trial]:
    """The first trials that the backend supports."""
    for trial in TRIALS:
        (operation,) = (graph := trial.subgraph).operations
        if count and backend.supports(operation, graph.types(operation)) is None:
            count -= 1
            yield trial


def it_says_who_it_is(backend: Backend) -> None:
    """Its name is valid in options, and it declares the version of the contract it was written for."""
    _require(backend.name.isidentifier(), f"its name is {backend.name!r}, expected letters, digits and underscores")
    _require(backend.api_version == API_VERSION, f"it is made for version {backend.api_version}, this is {API_VERSION}")


def it_answers_for_every_operation(backend: Backend) -> None:
    """`supports` returns None or a sentence for every trial, with static types and with unknown dimensions."""
    for trial in TRIALS:
        graph = trial.subgraph
        opened = graph.with_types(
            {i: TensorType(graph.type(i).dtype, (None,) * graph.type(i).rank) for i in (*graph.inputs, *graph.outputs)}
        )
        for each in (graph, opened):
            (operation,) = each.operations
            answer = backend.supports(operation, each.types(operation))
            _require(
                answer is None or bool(str(answer).strip()), f"{trial}: supports returned {answer!r}, not a sentence"
            )


def its_memory_keeps_what_is_put_in(backend: Backend) -> None:
    """Tensors of every rank and element type, stored side by side in an arena, are read back unchanged."""
    memory = backend.memory
    _require(memory.alignment > 0 and memory.alignment & (memory.alignment - 1) == 0, "alignment is no power of two")
    rng = np.random.default_rng(0)
    types = [
        TensorType(dtype, shape)
        for dtype in (DType.FLOAT32, DType.INT8, DType.INT32, DType.INT64, DType.BOOL, DType.FLOAT16)
        for shape in ((), (1,), (3, 5), (2, 3, 4, 5), (0, 4))
    ]
    offsets, at = [], 0
    for type_ in types:
        at += -at % memory.alignment
        offsets.append(at)
        at += type_.nbytes
    for _ in range(2):  # again after the arena was freed
        arena = memory.allocate(at)
        views = [memory.view(arena, offset, type_) for offset, type_ in zip(offsets, types, strict=True)]
        arrays = [rng.integers(0, 2, [d or 0 for d in t.shape]).astype(t.dtype.numpy) for t in types]
        for array, view, type_ in zip(arrays, views, types, strict=True):
            memory.copy_in(array, view, type_)
        for array, view, type_ in zip(arrays, views, types, strict=True):
            compare(f"a tensor of {type_}", np.asarray(memory.copy_out(view, type_)), array, 0)
        beside = memory.allocate(at)
        for array, view, offset, type_ in zip(arrays, views, offsets, types, strict=True):
            copied = memory.view(beside, offset, type_)
            memory.copy(view, copied, type_)
            memory.copy_in(np.zeros_like(array), view, type_)
            compare(f"a copy of a tensor of {type_}", np.asarray(memory.copy_out(copied, type_)), array, 0)
        memory.free(beside)
        memory.free(arena)


def its_kernels_serve_many_executions(backend: Backend) -> None:
    """One kernel bound to several sets of tensors computes each of them correctly, in any order."""
    for trial in _supported(backend, 3):
        graph = trial.subgraph
        with Bench(backend, graph, Settings()) as bench, _apart(bench) as others:
            call = in_turn(bench.memory, bench.kernel.bind(others, bench.context))
            first, second = trial.inputs(1), trial.inputs(2)
            for operand, array in zip(graph.inputs, second, strict=True):
                others[operand].assign(array)
            one = bench.run(first)
            call()
            two = [others[o].array for o in graph.outputs]
            for got, inputs in ((one, first), (two, second)):
                for array, wanted in zip(got, trial.wanted(inputs), strict=True):
                    compare(f"{trial} bound twice", array, wanted, trial.tolerance)


@contextmanager
def _apart(bench: Bench) -> Iterator[Tensors]:
    """Tensors like the bench's, in memory of their own."""
    found = {}
    allocated = []
    for operand, tensor in bench.tensors.items():
        arena = tensor.memory.allocate(tensor.type.nbytes)
        allocated.append((tensor.memory, arena))
        buffer = tensor.memory.view(arena, 0, tensor.type)
        tensor.memory.copy_in(np.ascontiguousarray(tensor.array), buffer, tensor.type)
        found[operand] = Tensor(tensor.type, buffer, tensor.memory)
    try:
        yield Tensors(found)
    finally:
        for memory, arena in allocated:
            memory.free(arena)


def its_kernels_run_in_several_threads(backend: Backend) -> None:
    """Several executions of one program run at the same time."""
    for trial in _supported(backend, 2):
        with Bench(backend, trial.subgraph, Settings()) as bench:
            problems: list[str] = []

            def work(seed: int, bench: Bench = bench, trial: Trial = trial, problems: list[str] = problems) -> None:
                inputs = trial.inputs(seed)
                wanted = trial.wanted(inputs)
                with _apart(bench) as tensors:
                    call = in_turn(bench.memory, bench.kernel.bind(tensors, bench.context))
                    for _ in range(20):
                        for operand, array in zip(bench.subgraph.inputs, inputs, strict=True):
                            tensors[operand].assign(array)
                        call()
                        try:
                            for operand, array in zip(bench.subgraph.outputs, wanted, strict=True):
                                compare(f"{trial} in thread {seed}", tensors[operand].array, array, trial.tolerance)
                        except Misaligned as problem:
                            problems.append(str(problem))

            threads = [Thread(target=work, args=(seed,)) for seed in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            _require(not problems, problems[0] if problems else "")


def it_runs_sequences(backend: Backend) -> None:
    """It runs several operations in a row, one result read twice; `fuse` must return a valid order of all of them."""
    x = TensorType(DType.FLOAT32, (4, 5))
    kinds = (BinaryKind.ADD, BinaryKind.MUL, BinaryKind.SUB)
    operations = (
        Operation(Binary(kinds[0]), (0, 1), (2,), "first"),
        Operation(Binary(kinds[1]), (2, 1), (3,), "second"),
        Operation(Binary(kinds[2]), (3, 2), (4,), "third"),
    )
    graph = Subgraph((Operand(x),) * 5, operations, (0, 1), (4,))
    if backend.single or any(backend.supports(o, graph.types(o)) is not None for o in operations):
        return
    with Bench(backend, graph, Settings()) as bench:
        answer = [at for group in bench.sequence.groups for at in group.operations]
        _require(sorted(answer) == [0, 1, 2], f"fuse returned operations {answer}, expected each of 0, 1, 2 once")
        rng = np.random.default_rng(0)
        a, b = (rng.standard_normal((4, 5)).astype(np.float32) for _ in range(2))
        (got,) = bench.run((a, b))
        arrays: dict[int, Array] = {0: a, 1: b}
        for operation in operations:
            given = [arrays[i] for i in operation.used]
            (arrays[operation.outputs[0]],) = evaluate(operation.op, given, graph.types(operation))
        compare("three operations in a row", got, arrays[4], 1e-5)


def its_calls_are_work_in_a_queue(backend: Backend) -> None:
    """If calls only enqueue, the memory has a queue too, and events can be waited for repeatedly."""
    copies = queue_of(backend.memory)
    _require(copies is None or isinstance(copies, Queue), "its memory's queue has no `record` and `follow`")
    for trial in _supported(backend, 2):
        with Bench(backend, trial.subgraph, Settings()) as bench:
            queue, inputs = queue_of(bench.call), trial.inputs()
            _require(queue is None or copies is not None, "its calls only enqueue, but its memory has no queue")
            for _ in range(3):
                found = bench.run(inputs)
            if queue is not None:
                event = queue.record()
                event.wait()
                event.wait()
                queue.follow(event)
                _require(isinstance(bench.call, Enqueues), "its calls enqueue, but have no `check`")
            for got, wanted in zip(found, trial.wanted(inputs), strict=True):
                compare(f"{trial} run again and again", got, wanted, trial.tolerance)


CLAIMS: tuple[Claim, ...] = (
    it_says_who_it_is,
    it_answers_for_every_operation,
    its_memory_keeps_what_is_put_in,
    its_kernels_serve_many_executions,
    its_kernels_run_in_several_threads,
    it_runs_sequences,
    its_calls_are_work_in_a_queue,
)
"""All claims; each is a separate test."""
