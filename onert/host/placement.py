"""Place a network on devices: partition, compile and load it, also for batches of several sizes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from math import inf, prod
from time import perf_counter

import numpy as np
from attrs import evolve

from onert.backend import Program
from onert.backend.registry import load_backends
from onert.compiler import Options
from onert.exec import Execution
from onert.ir import Array, CompileError, OnertError, Operation, Package, Subgraph, Subgraphs, TensorType
from onert.ir import shape as shapes
from onert.ir.ops.data_movement.reshape import Reshape
from onert.runtime import compile

from .device_manager import DeviceManager, is_stateful
from .host_config import BatchConfig
from .network import Network
from .partitioner import Kind, Partitioner, Wanted
from .provisioner import Provisioner, evict, prepared_options

OVERHEAD = 30e-6
"""The overhead of a run in seconds, in addition to the network's own time."""
_SLOWER = 1.2
"""How much slower a stacked run may be than separate runs in a trial, because other processes disturb the timing."""
_TRIES = 5
_CLOSE = 1e-3
"""The largest difference between a row of a batch and the same row run alone, relative to the output's range."""


def placed(
    name: str, package: Package, options: Options, devices: Sequence[DeviceManager], wanted: Wanted, most: int
) -> Network:
    """Place a network on some of the devices, for at most `most` concurrent requests. If it fails, nothing remains."""
    found = _partitioner(options, devices).partition(name, package, wanted)
    nodes = Provisioner(compile).provision(found.dag, devices, options, found.programs)
    return Network(found.dag, nodes, most)


def _partitioner(options: Options, devices: Sequence[DeviceManager]) -> Partitioner:
    """The partitioner for some devices; those with the same backend are one kind."""
    alike: dict[str, list[DeviceManager]] = {}
    for device in devices:
        alike.setdefault(device.config.backend, []).append(device)
    kinds = [
        Kind(backend, [device.info for device in own], load_backends((backend,))) for backend, own in alike.items()
    ]

    def compiled(package: Package, backend: str, prepared: bool) -> Program:
        chosen = alike[backend][0].options(options)
        return compile(package, prepared_options(chosen) if prepared else chosen)

    return Partitioner(kinds, compiled)


def batched(
    network: Network, package: Package, options: Options, wanted: Wanted, batch: BatchConfig
) -> tuple[dict[int, Network], str]:
    """A placed network compiled for batches of several sizes on the same devices, by size; and a note.

    If batches are not stacked, the result has only the network itself, and the note says why. Raises CompileError if
    stacking is required but not possible.
    """
    devices = list(dict.fromkeys(device for node in network.nodes for device in node.devices))
    single = {1: network}
    if batch.stacked is False:
        return single, "batches are several runs, as configured"
    opened = with_open_batch(package)
    must_pay = batch.stacked is None
    reason = _why_not_stacked(package, opened, devices[0].options(options), batch.max_size, must_pay=must_pay)
    if reason is not None:
        if batch.stacked:
            raise CompileError(f"network {network.name!r}: requests cannot be stacked: {reason}")
        return single, f"batches are several runs: {reason}"
    found: dict[int, Network] = dict(single)
    try:
        for size in batch.sizes[1:]:
            wider = options.choose(input_shapes=_wider(network, size))
            found[size] = placed(f"{network.name}/batch{size}", opened, wider, devices, wanted, network.most_active)
    except BaseException:
        for other in list(found.values())[1:]:
            evict(other.dag, other.nodes)
        raise
    return found, f"batches are one run, of {', '.join(map(str, batch.sizes))} requests"


def with_open_batch(package: Package) -> Package:
    """The package with the first dimension of constant reshapes inferred, so that they accept batches.

    Reshape(x: [1,4,4,6], [1,96]) --> Reshape(x, [-1,96])

    With the file's own shapes this changes nothing. With larger batches the rows follow one another; whether the whole
    model still computes the right result is decided by a trial.
    """
    return evolve(package, models=tuple(_opened(model) for model in package.models))


def _opened(model: Subgraphs) -> Subgraphs:
    return evolve(model, subgraphs=tuple(_open_subgraph(graph) for graph in model.subgraphs))


def _open_subgraph(graph: Subgraph) -> Subgraph:
    return evolve(graph, operations=tuple(_open_operation(graph, operation) for operation in graph.operations))


def _open_operation(graph: Subgraph, operation: Operation) -> Operation:
    if not isinstance(operation.op, Reshape):
        return operation
    made = graph.type(operation.outputs[0])
    if not made.is_static or not made.shape or prod(shapes.static(made.shape)) == 0:
        return operation
    return evolve(operation, op=Reshape((-1, *shapes.static(made.shape)[1:])))


def _wider(network: Network | Program, size: int) -> dict[int | str, tuple[int, ...]]:
    """The input shapes for `size` stacked requests."""
    infos = network.inputs if isinstance(network, Program) else [info for info, _ in network.dag.inputs]
    shapes_ = [shapes.static(info.shape) for info in infos]
    return {at: (size * shape[0], *shape[1:]) for at, shape in enumerate(shapes_)}


def _why_not_stacked(package: Package, opened: Package, options: Options, size: int, *, must_pay: bool) -> str | None:
    """Why requests cannot be stacked along their first dimension with `opened`, or (with `must_pay`) are not worth it.

    None if they can be, which is tried with random inputs.
    """
    try:
        alone = compile(package, options)
        ends = (*alone.inputs, *alone.outputs)
        for info in ends:
            if not shapes.is_static(info.shape) or not info.shape or info.dtype.is_handle:
                return f"{info.name!r} has shape {shapes.text(info.shape)}, expected a known first dimension"
        if is_stateful(alone):
            return "the network has state"
        together = compile(opened, options.choose(input_shapes=_wider(alone, size)))
        for one, many in zip(alone.outputs, together.outputs, strict=True):
            expected = (size * (one.shape[0] or 0), *one.shape[1:])
            if many.shape != expected:
                return f"output {one.name!r} would have shape {shapes.text(many.shape)}, not {shapes.text(expected)}"
        return _difference(alone, together, size) or (_loss(alone, together, size) if must_pay else None)
    except OnertError as error:
        return str(error)


def _loss(alone: Program, together: Program, size: int) -> str | None:
    """A message if a stacked batch is slower than separate runs; None if not. It can be slower because the intermediate
    tensors of many requests exceed the processor's caches earlier than those of one."""
    one, many = _seconds(alone, together)
    several = size * (one + OVERHEAD)
    if many <= several * _SLOWER:
        return None
    return f"one run of {size} requests takes {many * 1e3:.2f} ms, {size} runs {several * 1e3:.2f} ms"


def _seconds(*programs: Program) -> list[float]:
    """The least seconds of a run of each program; the minimum, because other processes only make runs longer."""
    rng = np.random.default_rng(0)
    given = [[_random(info.type, rng) for info in program.inputs] for program in programs]
    found = [inf] * len(programs)
    with ExitStack() as stack:
        executions = [stack.enter_context(Execution(program)) for program in programs]
        for _ in range(_TRIES):
            for at, execution in enumerate(executions):
                start = perf_counter()
                execution.run(given[at])
                found[at] = min(found[at], perf_counter() - start)
    return found


def _difference(alone: Program, together: Program, size: int) -> str | None:
    """A message about an output in which a row of a batch differs from the row run alone; None if there is none."""
    rng = np.random.default_rng(0)
    rows = [[_random(info.type, rng) for info in alone.inputs] for _ in range(size)]
    with Execution(together) as execution:
        found = list(execution.run([np.concatenate(arrays) for arrays in zip(*rows, strict=True)]).values())
    with Execution(alone) as execution:
        wanted = [list(execution.run(row).values()) for row in rows]
    for at, info in enumerate(alone.outputs):
        expected = np.concatenate([outputs[at] for outputs in wanted])
        if not _same(found[at], expected):
            return f"output {info.name!r} of a request depends on the others"
    return None


def _random(type_: TensorType, rng: np.random.Generator) -> Array:
    """Random elements for a trial. Wide integers are 0 or 1, because they are mostly indices."""
    shape, kind = shapes.static(type_.shape), type_.dtype.numpy
    if type_.dtype.is_float:
        return rng.uniform(-1, 1, shape).astype(kind)
    if kind.itemsize == 1 and kind.kind in "iu":
        return rng.integers(np.iinfo(kind).min, np.iinfo(kind).max, shape).astype(kind)
    return rng.integers(0, 2, shape).astype(kind)


def _same(found: Array, expected: Array) -> bool:
    if found.dtype.kind not in "fc":
        return bool(np.array_equal(found, expected))
    span = float(np.ptp(expected)) if expected.size else 0.0
    return bool(np.allclose(found, expected, rtol=_CLOSE, atol=_CLOSE * span, equal_nan=True))


def instances(network: Network) -> int:
    """How many batches can run at the same time: one for each copy of each sub-network."""
    return sum(len(node.devices) for node in network.nodes)


def removed(networks: Sequence[Network]) -> None:
    """Remove networks from their devices."""
    for network in networks:
        evict(network.dag, network.nodes)


def noted(network: Network, note: str) -> None:
    """Add a note to a network's DAG."""
    network.dag = evolve(network.dag, notes=(*network.dag.notes, note))
