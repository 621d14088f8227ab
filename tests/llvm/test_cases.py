"""Every native case computes its expected results: on a target in turn, in the long suite on all targets.

The choices of constant operands for which a case is native take turns too. Cases run with two and three threads in
turn, and every third case is lowered as for a bundle.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator, Sequence
from enum import Enum
from functools import cache
from itertools import chain
from pathlib import Path

import cases
import pytest
from cases.case import Case

from onert.ir import RuleError, Subgraph
from onert_llvm.target.isa import runnable

from .natively import a_target, assert_close, evaluated, legal, natively_legalized, subgraph_of, unsupported

LISTED = (Path(__file__).parent / "native_forms.txt").read_text().splitlines()
FAMILIES = [module.name for module in pkgutil.iter_modules(cases.__path__)]


def _small(case: Case) -> tuple[int, ...]:
    """The operands that a model would store as constants: all small integer ones, and those the case names."""
    kinds = [(i, a) for i, a in enumerate(case.inputs) if a is not None]
    return tuple({*case.constant, *(i for i, a in kinds if a.ndim <= 1 and a.dtype.kind in "iu")})


def cases_of(family: str) -> tuple[Case, ...]:
    return tuple(getattr(importlib.import_module(f"cases.{family}"), "CASES", ()))


Variant = tuple[str, Case, tuple[int, ...], Subgraph]
"""A name, a case, its constant operands, and its legal subgraph."""


def variants(case: Case) -> Iterator[Variant]:
    """A case with its own constant operands, with all small ones constant, and with all but the first, where native."""
    rest = tuple(i for i, a in enumerate(case.inputs) if a is not None and i)
    for constant in dict.fromkeys((case.constant, _small(case), rest)):
        try:
            decomposed = legal(subgraph_of(case, constant))
        except RuleError:
            continue
        if unsupported(decomposed) is None:
            yield f"{case.name}-{len(constant)}", case, constant, decomposed


@cache
def native_cases(family: str) -> Sequence[Sequence[Variant]]:
    """The native variants of each case of a family that has any."""
    return tuple(found for case in cases_of(family) if (found := tuple(variants(case))))


def signature(case: Case) -> str:
    """A case's operation with its kind, if it has several, and the element types of its operands."""
    kind = getattr(case.op, "kind", None)
    name = type(case.op).__name__ + (f".{kind.name}" if isinstance(kind, Enum) else "")
    types = (t.dtype.text for t in case.input_types(known=False) if t is not None)
    return f"{name} {' '.join(types)}".strip()


def _signatures() -> list[str]:
    return sorted({signature(case) for family in FAMILIES for (_, case, *_), *_ in native_cases(family)})


def test_the_list_of_native_forms_is_current() -> None:
    """To update the list, run `python -m llvm.test_cases > llvm/native_forms.txt` in tests/."""
    assert len(LISTED) > 200
    assert _signatures() == LISTED


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.long)], ids=["in turn", "all"])
@pytest.mark.parametrize("family", FAMILIES)
def test_cases_run_natively(family: str, every: bool, subtests: pytest.Subtests) -> None:
    found = native_cases(family)
    assert {signature(case) for (_, case, *_), *_ in found} <= set(LISTED)
    chosen = chain(*found) if every else (each[at // 2 % len(each)] for at, each in enumerate(found))
    for position, (name, case, constant, decomposed) in enumerate(chosen):
        with subtests.test(name):
            subgraph = subgraph_of(case, constant)
            inputs = [a for i, a in enumerate(case.inputs) if a is not None and i not in constant]
            expected = evaluated(subgraph, inputs)
            for isa in runnable() if every else a_target(position):
                threads, compact = 2 + position % 2, position % 3 == 0
                results = natively_legalized(decomposed, inputs, isa, threads, compact=compact)
                assert_close(results, expected, where=isa.name)


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in _signatures())
