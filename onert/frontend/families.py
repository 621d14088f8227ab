"""An operator table split over several files, which are imported on demand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from onert.ir.process import imports

KeyT = TypeVar("KeyT")
ImporterT = TypeVar("ImporterT")


class Families(Mapping[KeyT, ImporterT]):
    """The tables of all files of a package as one mapping; a file is imported only if no earlier one has the key.

    Importing a table also imports the operation kinds that it builds; importing all of them takes longer than reading
    most models. `files` are module names relative to `package`, those with the most common operators first; `table` is
    the name of the table in each.
    """

    def __init__(self, package: str, files: Sequence[str], table: str = "TABLE") -> None:
        self._package, self._files, self._table = package, files, table

    def __getitem__(self, key: KeyT) -> ImporterT:
        for table in self._tables():
            if key in table:
                return table[key]
        raise KeyError(key)

    def __iter__(self) -> Iterator[KeyT]:
        for table in self._tables():
            yield from table

    def __len__(self) -> int:
        return sum(map(len, self._tables()))

    def _tables(self) -> Iterator[Mapping[KeyT, ImporterT]]:
        for file in self._files:
            module: Any = imports.module(f"{self._package}.{file}")
            yield getattr(module, self._table)
