"""Rules: how operations of some kind are lowered to commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

from attrs import frozen

from onert.ir.process import imports
from onert.ir.symbolic.cases import Cases
from onert.ir.value import Value

from .command_builder import Lowering

WhyNot = Callable[..., str | None]
Lower = Callable[[Lowering, Sequence[int]], None]


@frozen
class Rule(Value):
    """How operations of some kind and element types are lowered to commands.

    `why_not` returns the reason why an operation does not run natively, or None. A chain of element-wise operations may
    be fused into the kernel of an `anchor`; `tabled` results may pass through a byte lookup table before they are
    stored. An operation that `encloses` graphs lowers their operations one by one.
    """

    why_not: WhyNot
    lower: Lower
    anchor: bool = False
    tabled: bool = False
    encloses: bool = False

    def lower_by_cases(self, lowering: Lowering, operations: Sequence[int], cases: Cases | None) -> None:
        """Lower operations for each of the cases of the lengths."""
        if cases is None or self.encloses:  # enclosed operations have cases of their own
            self.lower(lowering, operations)
        else:
            lowering.by_cases(cases, partial(self.lower, lowering, operations))

    def import_lowering(self) -> None:
        """Import the module of the lowering function."""
        if isinstance(self.lower, Named):
            _ = self.lower.function


@frozen
class Named(Value):
    """A function of a module of `onert_llvm.lower`; the module is imported when the function is first called."""

    module: str
    name: str

    @property
    def function(self) -> Callable[..., Any]:
        """The function itself."""
        return _function(self.module, self.name)

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)


@cache
def _function(module: str, name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(imports.module(f"{__package__}.{module}"), name)
    return found


def rule(
    module: str, lower: str = "lower", why_not: str = "why_not", anchor: bool = False, tabled: bool = False
) -> Rule:
    """A rule made of a module's functions, imported on first use: few models need more than a few modules."""
    return Rule(Named(module, why_not), Named(module, lower), anchor, tabled)
