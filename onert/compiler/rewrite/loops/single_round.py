"""Loops that make exactly one round, like that over the tokens in a step of a language model."""

from __future__ import annotations

from collections.abc import Sequence

from onert.ir import Subgraphs, TensorType
from onert.ir.ops.control_flow.control import While

from .invariants import constant_state
from .lists import Simplify, counted


def makes_one_round(model: Subgraphs, op: While, starts: Sequence[TensorType], simplify: Simplify) -> bool:
    """Whether a loop with operands of these types is certain to run its body exactly once."""
    condition, body = (model[index] for index in op.subgraphs)
    fixed = constant_state([start.data for start in starts], body)
    found = counted(condition, body, starts, fixed, simplify)
    return found is not None and found.rounds == 1
