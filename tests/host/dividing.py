"""Networks to partition, and a way to run their partitions sequentially."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import onert
from onert.backend.registry import load_backends
from onert.host import (
    DAG,
    DeviceInfo,
)
from onert.host.partitioner import Kind, Partitioner
from onert.host.provisioner import prepared_options
from onert.ir import Array, DType, Package, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind

WIDTH = 16
GREAT = 1 << 30


def layers(*widths: int, branches: int = 1) -> Package:
    """Fully connected layers, each followed by tanh; `branches` copies read the same input and are added up."""
    rng = np.random.default_rng(0)
    b = Builder("layers")
    x = b.input(TensorType(DType.FLOAT32, (1, widths[0])), "x")
    ends = []
    for _ in range(branches):
        end, last = x, widths[0]
        for width in widths[1:]:
            weights = b.constant(rng.normal(size=(width, last)).astype(np.float32))
            bias = b.constant(rng.normal(size=width).astype(np.float32))
            end = b.add(Unary(UnaryKind.TANH), b.add(FullyConnected(), end, weights, bias))
            last = width
        ends.append(end)
    total = ends[0]
    for end in ends[1:]:
        total = b.add(Binary(BinaryKind.ADD), total, end)
    return Package((b.model([total]),), "layers")


def compiled(package: Package, backend: str = "reference", prepared: bool = False) -> onert.Program:
    options = onert.Options(backends=(backend,), num_threads=1)
    return onert.compile(package, prepared_options(options) if prepared else options)


def kinds(*memories: int, backend: str = "reference", **more: Any) -> Kind:
    infos = [DeviceInfo(memory, backend, **more) for memory in memories]
    return Kind(backend, infos, load_backends((backend,)))


def partitioner(*of: Kind) -> Partitioner:
    return Partitioner(of, compiled)


def run(dag: DAG, inputs: Sequence[Array]) -> list[Array]:
    """The network's outputs, its partitions compiled separately and run one after the other."""
    values = dict(zip((value for _, value in dag.inputs), inputs, strict=True))
    for at in dag.order:
        node = dag.nodes[at]
        program = compiled(node.package, node.backend_name, node.prepared)
        outputs = onert.Execution(program).run([values[v] for v in node.inputs])
        values.update(zip(node.outputs, outputs.values(), strict=True))
    return [values[value] for _, value in dag.outputs]


def assert_same(package: Package, dag: DAG, backend: str = "reference") -> None:
    program = compiled(package, backend)
    rng = np.random.default_rng(1)
    inputs = [rng.normal(size=info.shape).astype(np.float32) for info in program.inputs]
    want = onert.Execution(program).run(inputs)
    assert [a.tobytes() for a in run(dag, inputs)] == [a.tobytes() for a in want.values()]
