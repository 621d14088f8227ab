"""Operations that are decomposed into products, gathers and elementwise functions run natively, also in bundles."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from cases import audio, doubles, landmarks, onnx_pictures
from cases.case import Case
from llvm.natively import assert_close, evaluated, subgraph_of

import onert
from onert.backend import EvaluatingKernel
from onert.ir import Array, Package, Subgraphs
from onert.ir.builder import Builder
from onert.ir.ops.data_movement.columns import FromColumns, PooledPlaces
from onert.ir.ops.vision_audio.audio import AudioSpectrogram, Mfcc
from onert.ir.ops.vision_audio.fourier import Fourier
from onert.ir.ops.vision_audio.landmarks import DenseImageWarp, LandmarksToMatrix, TransformLandmarks, TransformTensor
from onert.ir.ops.vision_audio.sampling import DeformConv, GridSample, RoiAlign

from .machines import needs_compiler

KINDS = (
    *(AudioSpectrogram, DeformConv, DenseImageWarp, Fourier, FromColumns, GridSample, LandmarksToMatrix, Mfcc),
    *(PooledPlaces, RoiAlign, TransformLandmarks, TransformTensor),
)


def _fixed(case: Case) -> tuple[int, ...]:
    return tuple(
        {*case.constant, *(i for i, a in enumerate(case.inputs) if i and a is not None and a.dtype.kind == "i")}
    )


def _cases() -> list[Case]:
    """The first case of each kind, and all float64 cases except relu's."""
    given = [case for family in (audio, landmarks, onnx_pictures) for case in family.CASES]
    found = [next(case for case in given if type(case.op) is kind) for kind in KINDS]
    return [*found, *(case for case in doubles.CASES if "relu" not in case.name)]


def _package(cases: list[Case]) -> tuple[Package, list[Array], list[Array]]:
    """One package with all cases, their inputs, and the expected outputs."""
    b, inputs, results, references = Builder("main"), list[Array](), list[int](), list[Array]()
    for case in cases:
        fixed, operands, own = _fixed(case), list[int | None](), list[Array]()
        for i, (array, type_) in enumerate(zip(case.inputs, case.input_types(known=False), strict=True)):
            if array is None or type_ is None:
                operands.append(None)
            elif i in fixed:
                operands.append(b.constant(array))
            else:
                operands.append(b.input(type_))
                own.append(array)
        results += b.add_many(case.op, *operands)
        references += evaluated(subgraph_of(case, fixed), own)
        inputs += own
    return Package((Subgraphs((b.subgraph(results),)),), "cases"), inputs, references


@needs_compiler
def test_decomposed_operations_are_native_in_process_and_in_bundles(tmp_path: Path) -> None:
    package, inputs, references = _package(_cases())
    program = onert.compile(package)
    assert not any(isinstance(step.kernel, EvaluatingKernel) for step in program.main.steps)
    onert.bundle(program, tmp_path)
    for found in (onert.Execution(program).run(inputs), onert.load_bundle(tmp_path).run(inputs)):
        assert_close([np.asarray(array) for array in found.values()], references)
