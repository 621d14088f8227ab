"""RoiAlign with sample counts that depend on the region runs natively, and rejects what its definition rejects."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import onert
from onert.ir import DType, Package, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.vision_audio.sampling import RoiAlign
from onert_llvm.target.isa import runnable

from .natively import assert_close, evaluated, natively, single

REGIONS = np.float32(
    [[0, 0, 20, 17], [3, 2, 9, 8], [5, 5, 5, 5], [-30, -20, 60, 50], [8, 8, 2, 1], [0, 0, 1, 1], [20, 0, 300, 4]]
)


@pytest.mark.parametrize("half_pixel", [False, True])
@pytest.mark.parametrize("largest", [False, True])
def test_roi_align_takes_as_many_samples_as_each_region_needs(largest: bool, half_pixel: bool) -> None:
    x = np.random.default_rng(3).uniform(-1, 1, (2, 5, 9, 11)).astype(np.float32)
    for dtype in (np.int32, np.int64):
        op = RoiAlign(3, 2, 0, 0.5, half_pixel, largest)
        graph, inputs = single(op, x, REGIONS, np.array([0, 1, 1, 0, 1, 0, 1], dtype))
        expected = evaluated(graph, inputs)
        for isa in runnable():
            for threads in (1, 2):
                assert_close(natively(graph, inputs, isa, threads), expected, where=f"{isa.name} {threads}")


def _package() -> Package:
    b = Builder()
    types = (DType.FLOAT32, (2, 3, 4, 5)), (DType.FLOAT32, (2, 4)), (DType.INT64, (2,))
    return Package((b.model([b.add(RoiAlign(2, 2), *(b.input(TensorType(*t)) for t in types))]),), "regions")


def test_invalid_regions_are_rejected_in_process_and_in_bundles(tmp_path: Path) -> None:
    program = onert.compile(_package())
    assert {step.backend for step in program.main.steps} == {"llvm"}
    onert.bundle(_package(), tmp_path, cpu="native")
    bundle, execution = onert.load_bundle(tmp_path), onert.Execution(program)
    expected = onert.Execution(onert.compile(_package(), backends=("reference",)))
    x = np.random.default_rng(1).uniform(-1, 1, (2, 3, 4, 5)).astype(np.float32)
    good = np.float32([[0, 0, 3, 3], [-1, 1, 9, 2]])
    for regions, pictures in ((good, (0, 1)), (good * 50, (1, 1)), (good[::-1] * 0, (1, 0))):
        inputs = [x, np.ascontiguousarray(regions), np.int64(pictures)]
        (theirs,) = expected.run(inputs).values()
        for each in (execution, bundle):
            (found,) = each.run(inputs).values()
            np.testing.assert_allclose(found, theirs, rtol=1e-4, atol=1e-6)
    broken = [(good, (0, 2)), (good, (-1, 0)), (good, (1 << 62, 0)), (good * 9000, (0, 0))]
    for value in (np.nan, np.inf, -np.inf, 3e38):
        broken.append((np.where(good == 9, np.float32(value), good), (0, 1)))
    for regions, pictures in broken:
        for each in (execution, expected, bundle):
            with pytest.raises(onert.OnertError):
                each.run([x, regions, np.int64(pictures)])
