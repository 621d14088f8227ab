"""Flows, which are built function by function, saved and loaded."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from .builder import Builder
from .files import load, save
from .graph import Graph


class Flow(Graph):
    """A flow: functions of operations on variables, which can be changed until it is compiled."""

    def define(self, name: str) -> Builder:
        """A builder for the function with this name."""
        return Builder(self, self.func(name))

    def save(self, file: str | os.PathLike[str] | BinaryIO, version: int = 6) -> None:
        """Write a flow file, to a path or to a file that is open for writing, which is closed afterwards.

        An existing file is replaced once all is written. Raises ModelError if the version cannot represent the flow.
        """
        save(self, Path(file) if isinstance(file, str | os.PathLike) else file, version)

    def load(self, file: str | os.PathLike[str] | bytes) -> None:
        """Add the content of a flow file, given its path or its bytes. Raises ModelError if it is malformed."""
        load(self, file if isinstance(file, bytes) else Path(file))
