"""Tensors, operations evaluated at run time, and cache entries: the checks that decide what is trusted."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import onert
from onert.backend import HOST, Tensor
from onert.backend.cache import Cache
from onert.backend.registry import load_backend
from onert.ir import OPS, CallTypes, DType, ExecutionError, Package, Quantization, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.data_movement.slicing import BroadcastTo

DYNAMIC = TensorType(DType.INT8, (None,), Quantization((0.5,), (3,)))


def test_a_dynamic_tensor_copies_a_view_whose_memory_may_be_reused() -> None:
    tensor, memory = Tensor(DYNAMIC, None), np.arange(6, dtype=np.int8)
    tensor.assign(memory[:3])
    memory[:] = 9
    assert tensor.array.tolist() == [0, 1, 2]
    own = np.arange(4, dtype=np.int8)
    tensor.assign(own)
    assert tensor.buffer is own  # an array that owns its memory is not copied


def test_a_dynamic_tensor_gets_the_shape_of_the_array_and_keeps_its_scale() -> None:
    tensor = Tensor(DYNAMIC, None)
    assert tensor.dynamic
    tensor.assign(np.zeros(5, np.int8))
    assert tensor.type == TensorType(DType.INT8, (5,), DYNAMIC.quantization)
    assert tensor.declared == DYNAMIC


def test_a_static_tensor_is_copied_into_its_buffer() -> None:
    type_ = TensorType(DType.INT8, (3,))
    buffer = HOST.view(HOST.allocate(3), 0, type_)
    tensor = Tensor(type_, buffer)
    tensor.assign(np.int8([1, 2, 3]))
    assert tensor.buffer is buffer
    assert np.asarray(buffer).tolist() == [1, 2, 3]


def test_the_reference_backend_supports_every_kind_that_can_be_evaluated() -> None:
    for kind in OPS.values():
        meanings = (kind.evaluate, kind.evaluate_quantized, kind.evaluate_in)
        operation = SimpleNamespace(op=kind)
        answer = load_backend("reference").supports(operation, CallTypes((), ()))  # type: ignore[arg-type]
        assert (answer is None) is any(meaning is not None for meaning in meanings), kind


def test_a_dynamic_result_larger_than_the_memory_of_the_machine_is_rejected() -> None:
    b = Builder()
    x, shape = b.input(TensorType(DType.FLOAT32, (1,)), "x"), b.input(TensorType(DType.INT64, (4,)), "shape")
    program = onert.compile(Package((b.model([b.add(BroadcastTo(), x, shape)]),)), backends=("reference",))
    execution = onert.Execution(program)
    assert execution.run([np.ones(1, np.float32), np.int64([1, 2, 3, 4])]).popitem()[1].shape == (1, 2, 3, 4)
    with pytest.raises(ExecutionError, match="bytes are needed, more than the machine's"):
        execution.run([np.ones(1, np.float32), np.int64([1 << 10, 1 << 10, 1 << 10, 1 << 9])])


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_change_in_any_piece_of_an_entry_is_detected(tmp_path: Path, at: int) -> None:
    cache, pieces = Cache(tmp_path), [b"first" * 10, b"second" * 10, b"third" * 10]
    assert cache.store("key", *pieces)
    assert bytes(cache.load("key") or b"") == b"".join(pieces)
    (path,) = tmp_path.glob("*.onert")
    content = bytearray(path.read_bytes())
    content[content.index(pieces[at]) + 7] ^= 1
    path.write_bytes(content)
    assert cache.load("key") is None
    assert not path.exists()


@pytest.mark.parametrize("mode", [0o600, 0o620, 0o602, 0o640])
def test_a_cache_file_that_others_may_write_to_is_not_used(tmp_path: Path, mode: int) -> None:
    cache = Cache(tmp_path)
    assert cache.store("key", b"content")
    (path,) = tmp_path.glob("*.onert")
    os.chmod(path, mode)
    assert (cache.load("key") is not None) is (mode & 0o022 == 0)
