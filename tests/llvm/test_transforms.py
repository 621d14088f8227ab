"""Fourier transforms and parts of complex numbers run natively and match their definitions on every target."""

from __future__ import annotations

import numpy as np
import pytest

import onert
from onert.ir import DType, Package, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.scan import RFFT2D
from onert.ir.ops.vision_audio.fourier import Fourier
from onert_llvm.lower.vision_audio.rfft import why_not_rows
from onert_llvm.target.isa import Isa, runnable

from .natively import check, natively, single, why_not

ISAS = pytest.mark.parametrize("isa", runnable(), ids=lambda isa: isa.name)
TRANSFORMS = [
    ((3, 1, 32), (1, 32)), ((5, 1, 128), (1, 128)), ((2, 2, 3, 256), (1, 256)), ((7, 1, 400), (1, 512)),
    ((2, 1, 600), (1, 512)), ((1, 1, 3), (1, 1024)), ((2, 1, 2048), (1, 2048)), ((1, 8192), (1, 8192)),
    ((4, 1, 100), (1, 100)), ((4, 1, 101), (1, 101)), ((4, 1, 5), (1, 1)), ((2, 3, 1), (2, 2)),
    ((3, 8, 16), (8, 16)), ((3, 5, 6), (8, 9)), ((2, 9, 7), (4, 7)), ((1, 1, 64), (1, 64)), ((2, 4, 4), (2, 4)),
]  # fmt: skip


@ISAS
@pytest.mark.parametrize(("shape", "lengths"), TRANSFORMS)
def test_real_fourier_transforms_agree_with_numpy(isa: Isa, shape: tuple[int, ...], lengths: tuple[int, int]) -> None:
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    subgraph, inputs = single(RFFT2D(), x, np.array(lengths, np.int32), constant=(1,))
    (found,) = natively(subgraph, inputs, isa, threads=2)
    expected = np.fft.rfft2(x.astype(np.float64), s=lengths, axes=(-2, -1))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * np.abs(expected).max())


ROWS: list[tuple[tuple[int, ...], int | None]] = [
    ((3, 128, 1), None), ((2, 5, 400, 1), 512), ((600, 1), 512), ((1, 3, 1), 1024), ((9, 2048, 1), None),
    ((2, 4096, 1), 4096), ((7, 256, 1), 128),
]  # fmt: skip


@ISAS
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("shape", "length"), ROWS)
def test_one_sided_transforms_of_rows_agree_with_numpy(
    isa: Isa, shape: tuple[int, ...], length: int | None, dtype: type
) -> None:
    x = np.random.default_rng(1).standard_normal(shape).astype(dtype)
    more = [] if length is None else [np.array(length)]
    subgraph, inputs = single(Fourier(half=True), x, np.array(-2), *more, constant=(1, 2)[: 1 + len(more)])
    assert not why_not(subgraph)
    (found,) = natively(subgraph, inputs, isa, threads=2)
    expected = np.fft.rfft(x[..., 0].astype(np.float64), n=length)
    precision = 1e-6 if dtype is np.float32 else 1e-14
    both = np.stack([expected.real, expected.imag], -1)
    np.testing.assert_allclose(found, both, rtol=0, atol=precision * np.abs(expected).max())


@pytest.mark.parametrize(
    ("shape", "lengths"),
    [((2, 16, 32), (16, 32)), ((1, 70, 40), (64, 128)), ((3, 20, 90), (48, 80)), ((4, 9), (4, 8))],
    ids=str,
)
def test_transforms_of_planes_run_natively_one_axis_after_the_other(
    shape: tuple[int, ...], lengths: tuple[int, int]
) -> None:
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    b = Builder()
    planes = b.input(TensorType(DType.FLOAT32, shape))
    model = b.model([b.add(RFFT2D(), planes, b.constant(np.array(lengths, np.int32)))])
    program = onert.compile(Package((model,)))
    assert set(program.backends) == {"llvm"}
    (found,) = onert.Execution(program).run([x]).values()
    expected = np.fft.rfft2(x.astype(np.float64), s=lengths, axes=(-2, -1))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("inverse", [False, True], ids=["forth", "back"])
@pytest.mark.parametrize(
    ("shape", "length"), [((2, 1024, 2), 1024), ((3, 700, 2), 1000), ((1, 1200, 1), 1152)], ids=str
)
def test_long_transforms_of_complex_numbers_run_natively_as_two_short_ones(
    shape: tuple[int, ...], length: int, inverse: bool
) -> None:
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    b = Builder()
    signal = b.input(TensorType(DType.FLOAT32, shape))
    model = b.model([b.add(Fourier(inverse), signal, b.constant(np.int32(1)), b.constant(np.int32(length)))])
    program = onert.compile(Package((model,)))
    assert set(program.backends) == {"llvm"}
    (found,) = onert.Execution(program).run([x]).values()
    numbers = x.astype(np.float64) @ np.array([1, 1j])[: shape[-1]]
    expected = (np.fft.ifft if inverse else np.fft.fft)(numbers, length, axis=1)
    np.testing.assert_allclose(found @ np.array([1, 1j]), expected, rtol=0, atol=1e-6 * np.abs(expected).max())


OTHERS: list[tuple[tuple[int, ...], int, Fourier, str]] = [
    ((4, 128, 1), 0, Fourier(half=True), "along the last axis"),
    ((4, 100, 1), -2, Fourier(half=True), "a length of 100"),
    ((4, 16, 1), -2, Fourier(half=True), "a length of 16"),
    ((2, 8192, 1), -2, Fourier(half=True), "a length of 8192"),
    ((4, 128, 2), -2, Fourier(), "one-sided"),
    ((4, 128, 1), -2, Fourier(), "one-sided"),
    ((4, 128, 2), -2, Fourier(half=True, inverse=True), "one-sided"),
]


@pytest.mark.parametrize(("shape", "axis", "op", "reason"), OTHERS)
def test_other_transforms_are_left_to_their_decomposition(
    shape: tuple[int, ...], axis: int, op: Fourier, reason: str
) -> None:
    subgraph, _ = single(op, np.zeros(shape), np.array(axis), constant=(1,))
    assert reason in (why_not_rows(op, subgraph.types(subgraph.operations[0])) or "")


def test_unsupported_transform_lengths_are_not_native() -> None:
    for shape, lengths in (((1, 16384), (1, 16384)), ((601, 4), (601, 4))):
        subgraph, _ = single(RFFT2D(), np.zeros(shape, np.float32), np.array(lengths, np.int32), constant=(1,))
        assert why_not(subgraph)


@ISAS
@pytest.mark.parametrize("kind", [UnaryKind.REAL, UnaryKind.IMAG, UnaryKind.COMPLEX_ABS], ids=lambda kind: kind.name)
@pytest.mark.parametrize("shape", [(1,), (3, 7), (2, 129), (5000,)], ids=str)
def test_parts_of_complex_numbers_are_accurate(isa: Isa, kind: UnaryKind, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(2)
    x = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(np.complex64)
    subgraph, inputs = single(Unary(kind), x)
    check(subgraph, inputs, isa, tolerance=1e-6, threads=2)


@ISAS
def test_magnitudes_are_accurate_even_if_their_squares_are_out_of_range(isa: Isa) -> None:
    x = np.array([0, 3e38, 1e-38 + 1e-38j, 3e30 - 4e30j, 3e-30 + 4e-30j, 2e-45, np.inf, 1 + np.nan * 1j], np.complex64)
    subgraph, inputs = single(Unary(UnaryKind.COMPLEX_ABS), x)
    (found,) = natively(subgraph, inputs, isa)
    np.testing.assert_allclose(found, np.abs(x.astype(np.complex128)), rtol=1e-6, atol=1e-44)
