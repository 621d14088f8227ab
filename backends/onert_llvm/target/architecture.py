"""What may be asked of one architecture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from onert.ir.value import Value


@frozen
class Architecture(Value):
    """What may be asked of one architecture.

    `triple` stands for a name without a system. `processors` are LLVM's names with the target each is like, the first
    the default; `gains` are features and what code may rely on with them; `others` are features that change nothing
    but LLVM's choice of instructions, and may be taken away too; `losses` say what code may not rely on then.
    """

    triple: str
    processors: Mapping[str, str]
    gains: Mapping[str, Mapping[str, Any]]
    others: frozenset[str]
    losses: Mapping[str, Mapping[str, Any]] = field(factory=dict)


def like(isa: str, names: str) -> dict[str, str]:
    """Processors that are like one target."""
    return dict.fromkeys(names.split(), isa)
