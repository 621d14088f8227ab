"""The choices that users have for one architecture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from onert.ir.value import Value


@frozen
class Architecture(Value):
    """The choices that users have for one architecture: processors and features.

    `triple` is used if only the architecture is named. `processors` maps LLVM's processor names to the target that each
    resembles; the first is the default. `gains` maps features to what code may rely on with them; `others` are features
    that affect only LLVM's choice of instructions and may also be removed; `losses` maps removed features to the
    capabilities that remain.
    """

    triple: str
    processors: Mapping[str, str]
    gains: Mapping[str, Mapping[str, Any]]
    others: frozenset[str]
    losses: Mapping[str, Mapping[str, Any]] = field(factory=dict)


def like(isa: str, names: str) -> dict[str, str]:
    """Maps processor names to the one target that they resemble."""
    return dict.fromkeys(names.split(), isa)
