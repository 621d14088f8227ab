"""Every case of every operation that has a native form gives natively what it must, on every target."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from enum import Enum
from pathlib import Path

import cases
import pytest
from cases.case import Case

from onert.ir import RuleError
from onert_llvm.target.isa import runnable

from .natively import by_meaning, legal, natively_as_it_is, same, subgraph_of, why_not


def _cases() -> list[tuple[str, Case]]:
    found = []
    for module in pkgutil.iter_modules(cases.__path__):
        family = importlib.import_module(f"cases.{module.name}")
        found += [(f"{module.name}-{case.name}", case) for case in getattr(family, "CASES", ())]
    return found


def _small(case: Case) -> tuple[int, ...]:
    """The operands that a model would hold as constants: those that are small or integers, but for the first."""
    kinds = [(i, a) for i, a in enumerate(case.inputs) if a is not None]
    return tuple({*case.constant, *(i for i, a in kinds if a.ndim <= 1 and a.dtype.kind in "iu")})


def _variants() -> list[tuple[str, Case, tuple[int, ...]]]:
    """Each case with the operands constant that it says, with all small ones, and with all but the first."""
    found = []
    for name, case in _cases():
        rest = tuple(i for i, a in enumerate(case.inputs) if a is not None and i)
        for constant in dict.fromkeys((case.constant, _small(case), rest)):
            try:
                reason = why_not(subgraph_of(case, constant))
            except RuleError:
                continue
            if reason is None:
                found.append((f"{name}-{len(constant)}", case, constant))
    return found


VARIANTS = _variants()


def signature(case: Case) -> str:
    """A case's operation, with its function where it is one of several, and the element types of its operands."""
    kind = getattr(case.op, "kind", None)
    name = type(case.op).__name__ + (f".{kind.name}" if isinstance(kind, Enum) else "")
    types = (t.dtype.text for t in case.input_types(known=False) if t is not None)
    return f"{name} {' '.join(types)}".strip()


def test_the_list_of_native_forms_is_current() -> None:
    """`python -m llvm.test_cases > llvm/native_forms.txt`, in this folder's parent, writes the list anew."""
    listed = (Path(__file__).parent / "native_forms.txt").read_text().splitlines()
    assert len(listed) > 200
    assert listed == sorted({signature(case) for _, case, _ in VARIANTS})


@pytest.mark.parametrize(("name", "case", "constant"), VARIANTS, ids=[v[0] for v in VARIANTS])
def test_a_case_runs_natively(name: str, case: Case, constant: tuple[int, ...]) -> None:
    subgraph = subgraph_of(case, constant)
    inputs = [a for i, a in enumerate(case.inputs) if a is not None and i not in constant]
    expected, decomposed = by_meaning(subgraph, inputs), legal(subgraph)
    for isa in runnable():
        same(natively_as_it_is(decomposed, inputs, isa), expected, where=isa.name)


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in sorted({signature(case) for _, case, _ in VARIANTS}))
