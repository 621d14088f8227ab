"""Small hand-written models, and the reference backend's results for them."""

from __future__ import annotations

from typing import Any

import numpy as np

import onert
from onert.ir import DType, Package, Signature, SignatureTensor, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.contraction.conv import Conv2D
from onert.ir.ops.contraction.fully_connected import FullyConnected
from onert.ir.ops.data_movement.gather import Gather
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.vision_audio.interpolate import Coordinates, Interpolate, Interpolation, Rounding

Array = np.ndarray[Any, Any]
FLOAT = DType.FLOAT32


def _normal(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def network(name: str = "net", seed: int = 0, batch: int | None = 1) -> Package:
    """A convolution, an activation and a per-pixel dense layer, with two intermediate tensors."""
    b = Builder()
    x = b.input(TensorType(FLOAT, (batch, 9, 7, 3)), "gpu_0/data")
    weights, bias = b.constant(_normal(seed, 10, 3, 3, 3), name="conv/w"), b.constant(_normal(seed, 10), name="conv/b")
    y = b.add(Unary(UnaryKind.TANH), b.add(Conv2D(), x, weights, bias))
    y = b.add(FullyConnected(keep_dims=True), y, b.constant(_normal(seed, 6, 10), name="fc/w"), None)
    return Package((b.model([y]),), name)


def lookup() -> Package:
    """Rows of a table, selected by indices from the caller."""
    b = Builder()
    at = b.input(TensorType(DType.INT32, (4,)), "at")
    return Package((b.model([b.add(Gather(0), b.constant(_normal(1, 5, 3), name="table"), at)]),), "lookup")


def resized() -> Package:
    """Images resized up and down, by operations that the backend decomposes."""
    b = Builder()
    x = b.input(TensorType(FLOAT, (2, 3, 5, 4)), "x")
    twice = Interpolate(Interpolation.NEAREST, (2, 3), Coordinates.ASYMMETRIC, Rounding.FLOOR, (2.0, 2.0))
    y = b.add(Interpolate(Interpolation.CUBIC, (2, 3)), b.add(twice, x), b.constant(np.array([7, 9])))
    return Package((b.model([y]),), "resized")


def counter() -> Package:
    """The running sum of all inputs."""
    b = Builder()
    x = b.input(TensorType(FLOAT, (3,)), "x")
    total = b.variable(TensorType(FLOAT, (3,)), "total")
    added = b.add(Binary(BinaryKind.ADD), x, total)
    b.update(total, added)
    return Package((b.model([added]),), "counter")


def halves() -> Package:
    """Two signatures that share a table and an input name."""
    table = _normal(3, 7, 5)
    graphs, signatures = [], []
    for number, key in enumerate(("encode", "decode:0")):
        b = Builder(key)
        x = b.input(TensorType(FLOAT, (1, 5)), f"{key}_x")
        y = b.add(FullyConnected(), x, b.constant(table, name="table"), None)
        y = b.add(Unary(UnaryKind.TANH if number else UnaryKind.ABS), y)
        graphs.append(b.model([y]).primary)
        names = SignatureTensor("x", x), SignatureTensor("y", y)
        signatures.append(Signature(key, number, names[:1], names[1:]))
    return Package((Subgraphs(tuple(graphs), tuple(signatures)),), "halves")


def reference(source: Package, inputs: list[Array], **options: Any) -> list[Array]:
    """The reference backend's outputs for the inputs."""
    program = onert.compile(source, backends=("reference",), num_threads=1, **options)
    return list(onert.Execution(program).run(inputs).values())


def example(package: Package) -> tuple[list[Array], list[Array]]:
    """Random inputs, and the reference backend's outputs for them."""
    program = onert.compile(package, backends=("reference",), num_threads=1)
    inputs = random_inputs(program.inputs)
    return inputs, list(onert.Execution(program).run(inputs).values())


def random_inputs(infos: tuple[onert.TensorInfo, ...], seed: int = 0) -> list[Array]:
    """Integers from the whole range of their type; floats from -1 to 1."""
    rng = np.random.default_rng(seed)
    found = []
    for info in infos:
        shape = tuple(d or 1 for d in info.shape)
        if info.dtype.is_integer:
            found.append(rng.integers(*info.dtype.limits, shape, info.dtype.numpy, endpoint=True))
        else:
            found.append(rng.uniform(-1, 1, shape).astype(info.dtype.numpy))
    return found


def require_close(found: Array, wanted: Array) -> None:
    """Require floats within 1e-5 of the range of `wanted`, and equality for all other types."""
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    if wanted.dtype.kind == "f":
        span = float(np.ptp(wanted)) or 1.0
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 * span)
    else:
        np.testing.assert_array_equal(found, wanted)
