"""Partitioned models give bit-identical results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conformance.test_onnx_models import ROWS
from patience import PATIENCE
from shared_material import REPOSITORY, SHARED, needs_shared

import onert
from onert.frontend import tnn
from onert.host import DeviceConfig, HostManager, PartitionError
from onert.host.partitioner.units import unit_graph
from onert.ir import Array, DType

CUTS = (2, 3, 5)
SUFFIXES = (".tflite", ".circle", ".onnx", ".tnnproto")
QUICK = {"digits_int8", "cf_while_cond_fp32", "mobilenet_v3_small_224_fp32", "trained_lstm", "kws_ref_model"}


SHAPES = {name: shapes for name, shapes, _ in ROWS}
"""Shapes for the inputs of ONNX models with dynamic dimensions."""
RATE = 16000
"""The sample rate in Hz, which audio models take as a scalar input."""


def loaded(path: Path) -> onert.Package:
    """A model; a TNN structure is given random weights."""
    return tnn.load(path, random_weights=0) if path.suffix == ".tnnproto" else onert.load(path)


def inputs_of(program: onert.Program, shapes: Mapping[str, tuple[int, ...]]) -> list[Array]:
    rng = np.random.default_rng(0)
    found = []
    for info in program.inputs:
        shape = shapes.get(info.name) or tuple(d or 1 for d in info.open_shape)
        if info.dtype is DType.INT64 and not shape:
            found.append(np.array(RATE))
        elif info.dtype.is_float:
            found.append(rng.uniform(-1, 1, shape).astype(info.dtype.numpy))
        else:  # vocabulary indices or a mask: small values
            found.append(rng.integers(0, 2, shape).astype(info.dtype.numpy))
    return found


def bits(outputs: dict[str, Array]) -> dict[str, tuple[tuple[int, ...], bytes]]:
    return {name: (array.shape, array.tobytes()) for name, array in outputs.items()}


def check(path: Path) -> None:
    """Assert that a model gives the same bits when split into 2, 3 and 5 partitions (as far as it can be), run twice
    blocking and twice by future."""
    package = loaded(path)
    program = onert.compile(package, num_threads=1)
    if any(info.dtype.is_handle for info in program.inputs):
        pytest.skip("its inputs are strings")
    inputs = inputs_of(program, SHAPES.get(path.stem, {}))
    want = bits(onert.Execution(program).run(inputs))
    with HostManager([DeviceConfig(threads=1) for _ in range(max(CUTS))]) as host:
        for count in CUTS:
            if count > len(unit_graph(program).units):
                with pytest.raises(PartitionError, match="indivisible groups of operations"):
                    host.add_network(f"cut{count}", package, parts=count)
                continue
            dag = host.add_network(f"cut{count}", package, parts=count)
            assert len(dag.nodes) == count
            assert dag.logical_devices == tuple(range(count))
            for _ in range(2):
                assert bits(host.run_network_blocking(f"cut{count}", inputs)) == want
                assert bits(host.run_network(f"cut{count}", inputs).result(PATIENCE)) == want
            host.remove_network(f"cut{count}")


def _models() -> Iterator[Any]:
    """All shared models; those that are not quick are marked long."""
    shared = sorted(path for path in (SHARED / "models").rglob("*") if path.suffix in SUFFIXES)
    for path in shared:
        marks = () if path.stem in QUICK else (pytest.mark.long,)
        yield pytest.param(path, id=f"{path.parent.name}-{path.stem}", marks=marks)


@needs_shared
@pytest.mark.parametrize("path", list(_models()))
def test_a_partitioned_shared_model_gives_the_same_bits(path: Path) -> None:
    check(path)


@pytest.mark.parametrize("name", ["digits_float", "digits_int8"])
def test_a_partitioned_example_model_gives_the_same_bits(name: str) -> None:
    check(REPOSITORY / "nnpackage" / "examples" / name)
