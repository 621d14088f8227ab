"""What a rule is: how operations of some kind become commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import frozen

from onert.ir.value import Value

from .builder import Lowering

WhyNot = Callable[..., str | None]
Lower = Callable[[Lowering, Sequence[int]], None]


@frozen
class Rule(Value):
    """How operations of some kind and element types become commands.

    `why_not` gives the reason why one is not run. After an `anchor` a chain of element-wise operations may follow in
    the same kernel.
    """

    why_not: WhyNot
    lower: Lower
    anchor: bool = False
