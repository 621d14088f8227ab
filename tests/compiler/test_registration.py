"""Which tensors are placed in an arena, and which share a place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import frozen

from onert.backend import Program
from onert.ir import Array, Op, TensorType

from .test_program import program
from .toy import ELSEWHERE, Draft, FusingBackend, Run, ToyAdd, ToyBackend, ToyFlat, ToyScale


@frozen
class ToyFirst(Op):
    """The first entry of `x`, stored where x begins: fewer bytes than x has."""

    shares = True
    stored = True

    def infer(self, x: TensorType) -> TensorType:
        return x.result((1, *x.shape[1:]))

    def evaluate(self, x: Array) -> Array:
        return x[:1].copy()


def placed(op: Op, *backends: Any) -> tuple[Program, dict[int, int]]:
    """The program of `x * 2`, the operation, and `* 3`; and for each placed operand, the one whose memory it shares."""
    d = Draft()
    x = d.input(4, 2, name="x")
    graph = d.graph(d.op(ToyScale(3.0), d.op(op, d.op(ToyScale(2.0), x))))
    compiled = program(graph, [*backends, ToyBackend("builtin")], optimize=False)
    (out,) = Run(compiled)(np.ones((4, 2), np.float32))
    assert (out == 6).all()
    roots = {i: p.root for plan in compiled.memory_plan.values() for i, p in plan.placements.items()}
    return compiled, roots


def test_a_reshaped_tensor_shares_the_memory_of_its_operand() -> None:
    assert placed(ToyFlat())[1] == {1: 1, 2: 1}


def test_a_tensor_of_fewer_bytes_is_placed_separately() -> None:
    assert placed(ToyFirst())[1] == {1: 1, 2: 2}


def test_tensors_share_memory_only_within_a_memory_space() -> None:
    compiled, roots = placed(ToyFlat(), ToyBackend("device", [ToyScale], ELSEWHERE))
    assert all(compiled.main.memories[i].name == compiled.main.memories[root].name for i, root in roots.items())
    assert {memory.name for memory in compiled.main.memories.values()} == {"host", "elsewhere"}


def test_a_fused_tensor_that_is_never_stored_is_not_placed() -> None:
    d = Draft()
    x = d.input(4, name="x")
    a = d.op(ToyScale(2.0), x)
    b = d.op(ToyScale(3.0), a)
    graph = d.graph(d.op(ToyAdd(), b, b))
    compiled = program(graph, [FusingBackend("all")], optimize=False)
    assert not any(plan.placements for plan in compiled.memory_plan.values())
    assert Run(compiled)(np.ones(4, np.float32))[0].tolist() == [12.0] * 4


@pytest.mark.parametrize(("width", "size"), [(16, 64), (17, 128), (32, 128), (33, 192), (1, 64)])
def test_a_tensor_occupies_no_more_than_its_rounded_size(width: int, size: int) -> None:
    d = Draft()
    graph = d.graph(d.op(ToyScale(3.0), d.op(ToyScale(2.0), d.input(width, name="x"))))
    compiled = program(graph, [ToyBackend("all")], optimize=False)
    assert compiled.memory_plan["host"].size == compiled.memory_plan["host"].lower_bound == size


def test_an_operand_read_last_does_not_share_memory_with_the_result() -> None:
    d = Draft()
    x = d.input(16, name="x")
    a = d.op(ToyScale(2.0), x)
    b = d.op(ToyScale(3.0), a)
    c = d.op(ToyAdd(), a, b)
    graph = d.graph(d.op(ToyAdd(), c, c))
    compiled = program(graph, [ToyBackend("all")], optimize=False)
    assert compiled.memory_plan["host"].size == 3 * 64
    assert Run(compiled)(np.ones(16, np.float32))[0].tolist() == [16.0] * 16
