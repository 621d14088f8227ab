"""Operator tables in several files, read one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from onert.ir.process import imports

KeyT = TypeVar("KeyT")
ImporterT = TypeVar("ImporterT")


class Families(Mapping[KeyT, ImporterT]):
    """The tables of all files of a package as one; a file is read when no earlier one has the operator looked for.

    With its table a file brings the operation kinds that it builds, and to read them all takes longer than to read most
    models. `files` are named relative to `package`, those first whose operators models have most; `table` is what each
    calls its own.
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
