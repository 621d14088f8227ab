"""The operation kinds, one family per folder. A file is imported when one of its kinds is.

A process that runs one model needs few families, and importing all of them takes longer than compiling most models.
`OPS` imports the rest when it is iterated over or a name is looked up that is not declared yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from onert.ir.op import DECLARED, Op
from onert.ir.process import imports


class Kinds(Mapping[str, type[Op]]):
    """Every operation kind by its class name: those of this package, and those that other packages have declared."""

    def __getitem__(self, name: str) -> type[Op]:
        if name not in DECLARED:
            read_families()
        return DECLARED[name]

    def __iter__(self) -> Iterator[str]:
        read_families()
        return iter(dict(DECLARED))

    def __len__(self) -> int:
        read_families()
        return len(DECLARED)


def read_families() -> None:
    """Import every file of this package and its folders, so that all kinds are declared."""
    here = Path(__file__).parent
    for file in sorted(here.rglob("[!_]*.py")):
        imports.module(".".join((__name__, *file.relative_to(here).with_suffix("").parts)))


OPS = Kinds()
