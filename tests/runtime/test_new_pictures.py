"""Pictures of a new size use the kernels that those of known size do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from length_pictures import PICTURES

import onert
from onert.ir import Package, Subgraphs


@pytest.mark.parametrize(("model", "shapes"), [pytest.param(*row[1:], id=row[0]) for row in PICTURES])
def test_pictures_of_a_new_size_use_the_kernels_of_a_program_compiled_for_it_alone(
    model: Callable[[], Subgraphs], shapes: Callable[[int], list[tuple[int, ...]]]
) -> None:
    package = Package((model(),), "made")
    program = onert.compile(package).specialize({0: shapes(30)[0]}).specialize({0: shapes(40)[0]})
    assert program.stretch is not None
    assert _kinds(program) == _kinds(onert.compile(package, input_shapes={0: shapes(40)[0]}))


def _kinds(program: Any) -> set[str]:
    """The kinds of the kernels that a program calls."""
    return {command.spec.name for step in program.main.steps for command in step.kernel.lowered.commands}
