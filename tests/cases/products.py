"""Cases of products with named dimensions: contractions in every order, and convolutions of every kind."""

from __future__ import annotations

import numpy as np
from attrs import evolve
from formulas import floats, spread

from onert.ir import Array, DType
from onert.ir.ops.contraction.block_codes import BlockFullyConnected, DequantizeBlocks
from onert.ir.ops.contraction.einsum import Einsum
from onert.ir.ops.stablehlo.products import HloConvolution, HloDotGeneral, Places
from onert.ir.ops.stablehlo.sliding import Sliding

from .case import Case

_F32 = DType.FLOAT32


def _einsum(name: str, equation: str, *shapes: tuple[int, ...]) -> Case:
    xs = tuple(floats(shape, 37 + 6 * i) for i, shape in enumerate(shapes))
    return Case(name, Einsum(equation), xs, (np.asarray(np.einsum(equation, *xs), np.float32),))


def _dot(name: str, equation: str, x: tuple[int, ...], y: tuple[int, ...], to: DType = _F32) -> Case:
    """A contraction given by an equation; labels in both operands and the result are batch dimensions."""
    terms, result = equation.split("->")
    a, b = terms.split(",")
    batch = [label for label in a if label in b and label in result]
    summed = [label for label in a if label in b and label not in result]
    op = HloDotGeneral(to, *(tuple(side.index(c) for c in some) for some in (batch, summed) for side in (a, b)))
    if to is _F32:
        xs: tuple[Array, ...] = (floats(x), floats(y, 43))
    else:
        xs = tuple(spread(shape, -128, 127).astype(np.int8) for shape in (x, y))
    expected = np.einsum(equation, *(array.astype(np.float64) for array in xs))
    return Case(name, op, xs, (np.asarray(expected).astype(to.numpy),))


_NHWC, _HWIO = Places(0, 3, (1, 2)), Places(2, 3, (0, 1))
_NCHW, _OIHW = Places(0, 1, (2, 3)), Places(1, 0, (2, 3))
_NWC, _WIO = Places(0, 2, (1,)), Places(1, 2, (0,))
_NDHWC, _DHWIO = Places(0, 4, (1, 2, 3)), Places(3, 4, (0, 1, 2))


def _conv(
    name: str,
    x: tuple[int, ...],
    kernel: tuple[int, ...],
    places: tuple[Places, Places, Places] = (_NHWC, _HWIO, _NHWC),
    to: DType = _F32,
    reversal: tuple[bool, ...] | None = None,
    groups: tuple[int, int] = (1, 1),
    **options: tuple[int, ...],
) -> Case:
    space = len(places[0].spatial)
    one, none = (1,) * space, (0,) * space
    sliding = evolve(Sliding(one, none, none, one, one), **options)
    op = HloConvolution(to, *places, sliding, reversal or (False,) * space, *groups)
    if to is _F32:
        return Case(name, op, (floats(x), floats(kernel, 43)), constant=(1,))
    return Case(name, op, tuple(spread(shape, -128, 127).astype(np.int8) for shape in (x, kernel)), constant=(1,))


_CODES = (np.uint8([[[0x10, 0x98], [0xFF, 0x07]]]), np.float32([[2, -1]]))
"""A row of 2 * (-8, -7, 0, 1) and -1 * (7, 7, -1, -8)."""
_ROW = np.float32([[-16, -14, 0, 2, -7, -7, 1, 8]])


def _coded(name: str, rows: int, outputs: int, blocks: int, run: int, bits: int, zeros: bool) -> list[Case]:
    """Products of integers, which are exact in any order: as floats, and as the equal bytes."""
    count, most = outputs * blocks, 1 << bits
    codes = (np.arange(count * run) * 7 % 11 % most).astype(np.uint8).reshape(outputs, blocks, run)
    scales = np.float32(2) ** (np.arange(count) % 3).reshape(outputs, blocks).astype(np.float32)
    zero = (np.arange(count) % 5 % most).astype(np.uint8).reshape(outputs, blocks)
    x = (np.arange(rows * blocks * run) * 5 % 17 - 8).astype(np.float32).reshape(rows, blocks, run)
    x[..., 0] = 127
    weights = (codes.astype(np.float64) - (zero[..., None] if zeros else most / 2)) * scales[..., None]
    expected = x.reshape(rows, -1).astype(np.float64) @ weights.reshape(outputs, -1).T
    octets = np.bitwise_or.reduce(codes.reshape(outputs, blocks, -1, 8 // bits) << np.arange(0, 8, bits), -1)
    given = (x.reshape(rows, -1), octets.astype(np.uint8), scales, *((zero,) if zeros else ()))
    constant = tuple(range(1, len(given)))
    return [
        Case(
            f"{name}, {how}",
            BlockFullyConnected(bits, how == "bytes"),
            given,
            (expected.astype(np.float32),),
            constant=constant,
        )
        for how in ("floats", "bytes")
    ]


CASES = [
    Case("a row of codes", DequantizeBlocks(), _CODES, (_ROW,), constant=(0, 1)),
    Case(
        "codes above their zeros",
        DequantizeBlocks(),
        (*_CODES, np.uint8([[8, 7]])),
        (np.float32([[-16, -14, 0, 2, -8, -8, 0, 7]]),),
        constant=(0, 1, 2),
    ),
    *_coded("one row", 1, 35, 2, 16, 4, zeros=False),
    *_coded("rows beside zeros", 5, 70, 3, 32, 4, zeros=True),
    *_coded("bytes with zeros", 2, 16, 2, 32, 8, zeros=True),
    *_coded("pairs of bits", 14, 33, 1, 48, 2, zeros=False),
    *_coded("short blocks", 2, 3, 2, 8, 4, zeros=True),
    _einsum("heads of a query and of keys", "bqhd,bkhd->bhqk", (2, 3, 2, 4), (2, 5, 2, 4)),
    _einsum("heads of weights and values", "bhqk,bkhd->bqhd", (2, 2, 3, 5), (2, 5, 2, 4)),
    _einsum("a layer for each position", "bsm,mhd->bshd", (1, 3, 4), (4, 2, 2)),
    _einsum("labels of one operand alone", "abx,bcy->ac", (2, 3, 2), (3, 4, 2)),
    _einsum("three operands", "ab,bc,cd->da", (2, 3), (3, 4), (4, 2)),
    _einsum("an outer product", "a,b->ba", (2,), (3,)),
    _einsum("elements by elements", "ab,ab->ab", (2, 3), (2, 3)),
    _einsum("a scalar", "ab,ab->", (2, 3), (2, 3)),
    _einsum("a scalar as a factor", ",ab->ba", (), (2, 3)),
    _einsum("a matrix turned", "ab->ba", (2, 3)),
    _einsum("sums of nothing", "ab,bc->ac", (2, 0), (0, 3)),
    _einsum("nothing", "ab,bc->ac", (0, 2), (2, 3)),
    _einsum("a diagonal", "aa->a", (3, 3)),
    _einsum("diagonals of diagonals by a vector", "bacaa,bc->ba", (2, 3, 4, 3, 3), (2, 4)),
    _einsum("traces", "aba->b", (3, 2, 3)),
    _dot("columns by columns", "ka,kb->ab", (4, 2), (4, 3)),
    _dot("rows by rows", "ak,bk->ab", (2, 4), (3, 4)),
    _dot("batches behind", "akx,kbx->xab", (2, 4, 3), (4, 2, 3)),
    _dot("two batches, two sums", "xpyqa,yqbxp->xyab", (2, 3, 2, 2, 2), (2, 2, 3, 2, 3)),
    _dot("no sum", "a,b->ab", (2,), (3,)),
    _dot("all summed", "ab,ab->", (2, 3), (2, 3)),
    _dot("summed over nothing", "ak,kb->ab", (2, 0), (0, 3)),
    _dot("bytes to 32 bits", "xak,xkb->xab", (2, 3, 9), (2, 9, 2), DType.INT32),
    _dot("many bytes to 32 bits", "ak,kb->ab", (1, 1100), (1100, 2), DType.INT32),
    _conv("an image, channels last", (1, 5, 4, 3), (3, 2, 3, 4), low=(1, 0), high=(1, 1), strides=(2, 1)),
    _conv("an image, channels first", (2, 3, 5, 4), (4, 3, 3, 2), (_NCHW, _OIHW, _NCHW), window_dilations=(2, 1)),
    _conv("first to last", (1, 3, 5, 4), (2, 2, 3, 4), (_NCHW, _HWIO, _NHWC), reversal=(True, False)),
    _conv("in groups", (1, 4, 4, 4), (2, 2, 2, 6), groups=(2, 1)),
    _conv("each channel alone", (1, 4, 4, 3), (2, 2, 1, 6), groups=(3, 1), high=(1, 1)),
    _conv("groups of a batch", (4, 3, 3, 2), (2, 2, 2, 4), groups=(1, 2)),
    _conv("margins that cut", (1, 6, 5, 2), (2, 2, 2, 3), low=(-1, 2), high=(1, -2)),
    _conv("inputs apart", (1, 3, 2, 2), (3, 3, 2, 3), dilations=(2, 2), low=(1, 1), high=(2, 1)),
    _conv("inputs apart, wide margins", (1, 2, 3, 2), (2, 3, 2, 3), dilations=(3, 2), low=(4, 3), high=(0, 2)),
    _conv("inputs apart, cut", (1, 3, 3, 1), (2, 2, 1, 1), dilations=(2, 3), low=(-1, 0), high=(0, -2)),
    _conv("inputs apart, turned", (1, 3, 2, 2), (3, 2, 2, 3), dilations=(2, 1), reversal=(True, True), low=(2, 1)),
    _conv("inputs apart and strides", (1, 4, 4, 2), (2, 2, 2, 2), dilations=(2, 2), strides=(3, 1)),
    _conv("inputs apart in groups", (1, 3, 3, 4), (2, 2, 2, 4), dilations=(2, 2), groups=(2, 1)),
    _conv("a sequence", (2, 7, 3), (3, 3, 4), (_NWC, _WIO, _NWC), strides=(2,), low=(2,)),
    _conv("a sequence apart", (1, 4, 2), (3, 2, 3), (_NWC, _WIO, _NWC), dilations=(2,), low=(1,), high=(1,)),
    _conv("no space", (2, 3), (3, 4), (Places(0, 1, ()), Places(0, 1, ()), Places(1, 0, ()))),
    _conv("three dimensions", (1, 3, 4, 3, 2), (2, 3, 2, 2, 3), (_NDHWC, _DHWIO, _NDHWC), low=(1, 0, 0)),
    _conv("three dimensions in groups", (1, 2, 2, 2, 2), (1, 1, 1, 1, 2), (_NDHWC, _DHWIO, _NDHWC), groups=(2, 1)),
    _conv("windows that do not fit", (1, 2, 2, 1), (3, 3, 1, 1)),
    _conv("no channels", (1, 2, 2, 0), (1, 1, 0, 2)),
    _conv("bytes of an image", (1, 4, 4, 3), (3, 3, 3, 2), to=DType.INT32, low=(1, 1)),
]
