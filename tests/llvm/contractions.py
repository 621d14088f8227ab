"""The contractions that tests and benchmarks run on their own."""

from __future__ import annotations

from onert_llvm.kernels.arithmetic.requantize_int8 import Requantize
from onert_llvm.kernels.contraction.byte_terms import Bytes, ByteTerms
from onert_llvm.kernels.contraction.contraction import Contraction, Ending
from onert_llvm.kernels.contraction.epilogue import PLAIN
from onert_llvm.kernels.contraction.float_terms import FloatTerms
from onert_llvm.kernels.contraction.im2col import Patch
from onert_llvm.kernels.contraction.operands import Matrix, Patches, Windows
from onert_llvm.kernels.contraction.register_tile import Tile


def gemm_f32(tile: Tile, ending: Ending = PLAIN) -> Contraction:
    return Contraction(tile, Matrix(), FloatTerms(), ending)


def conv_f32(tile: Tile, ending: Ending = PLAIN, packed: bool = True, skips: bool = False) -> Contraction:
    return Contraction(tile, Windows(skips), FloatTerms(packed), ending)


def gemm_int8(
    tile: Tile, rest: int, signed: bool = True, how: Requantize | Ending | None = None, bits: int = 8
) -> Contraction:
    return Contraction(tile, Matrix(), ByteTerms(rest, signed, bits), _ending(how, signed))


def conv_int8(tile: Tile, rest: int, signed: bool = True, how: Requantize | Ending | None = None) -> Contraction:
    return Contraction(tile, Windows(), ByteTerms(rest, signed), _ending(how, signed))


def patch_conv_int8(
    tile: Tile, patch: Patch, signed: bool = True, how: Requantize | Ending | None = None
) -> Contraction:
    return Contraction(tile, Patches(patch), ByteTerms(0, signed), _ending(how, signed))


def _ending(how: Requantize | Ending | None, signed: bool) -> Ending:
    return how if isinstance(how, Ending) else Bytes(how or Requantize(), signed)
