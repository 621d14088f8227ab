"""The operation kinds, one family a folder: a file here is read when something imports a kind from it.

A process that runs one model needs few families, and reading them all takes longer than compiling most models. `OPS`
reads the rest when it is asked for a name that it does not know yet, or for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from onert.ir.op import DECLARED, Op
from onert.ir.process import imports


class Kinds(Mapping[str, type[Op]]):
    """Every operation kind by its class name: those of this package, and those that others have declared."""

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
    """Import every file of this package and its folders, so that all its kinds are declared."""
    here = Path(__file__).parent
    for file in sorted(here.rglob("[!_]*.py")):
        imports.module(".".join((__name__, *file.relative_to(here).with_suffix("").parts)))


OPS = Kinds()
