"""What a rule is: how operations of some kind become commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from attrs import frozen

from onert.ir.process import imports
from onert.ir.value import Value

from .command_builder import Lowering

WhyNot = Callable[..., str | None]
Lower = Callable[[Lowering, Sequence[int]], None]


@frozen
class Rule(Value):
    """How operations of some kind and element types become commands.

    `why_not` gives the reason why one is not run. After an `anchor` a chain of element-wise operations may follow in
    the same kernel; results that are `tabled` may go through a table of bytes on their way to memory.
    """

    why_not: WhyNot
    lower: Lower
    anchor: bool = False
    tabled: bool = False

    def read(self) -> None:
        """Have the module of what lowers read."""
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
    """The rule made of functions of a module: few models need more than a few modules."""
    return Rule(Named(module, why_not), Named(module, lower), anchor, tabled)
