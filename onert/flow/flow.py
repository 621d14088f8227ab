"""Flows: what is built function by function, saved and loaded."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from .builder import Builder
from .files import load, save
from .graph import Graph


class Flow(Graph):
    """A flow: functions of operations over variables, which can be changed until they are compiled."""

    def define(self, name: str) -> Builder:
        """A builder for the function of a name."""
        return Builder(self, self.func(name))

    def save(self, file: str | os.PathLike[str] | BinaryIO, version: int = 6) -> None:
        """Write a flow file, to a path or to a file that is open for writing, which is closed.

        A file at the path is replaced when all is written. ModelError where the version has no room for something.
        """
        save(self, Path(file) if isinstance(file, str | os.PathLike) else file, version)

    def load(self, file: str | os.PathLike[str] | bytes) -> None:
        """Add what a flow file holds, given its path or its bytes; ModelError where it is malformed."""
        load(self, file if isinstance(file, bytes) else Path(file))
