"""Networks: the compiled cells of a flow, and the tensors that they share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from onert.ir import Array

from .builder.initial import initial
from .cell import Cell
from .compiled import Shared
from .errors import KeyRangeError
from .keys import Parameters
from .tensor import Tensor, fill, tensor, value_of


class Network:
    """Cells by the names of functions, and the tensors that they share: `net[key]` is a constant, or a learnable
    variable, whose elements can be assigned.
    """

    def __init__(self, cells: Mapping[str, Cell], parameters: Parameters, shared: Shared) -> None:
        self.cells = cells
        self.parameters = parameters
        self.shared = shared

    def cell(self, name: Any) -> Cell:
        """The cell of a function. Raises KeyRangeError, an IndexError, if it does not exist."""
        found = self.cells.get(name if isinstance(name, str) else repr(name))
        if found is None:
            raise KeyRangeError(f"there is no cell '{name}', expected one of {', '.join(self.cells)}")
        return found

    def _found(self, key: Any) -> tuple[str, Array]:
        name = self.parameters.names[self.parameters.number(key)]
        array = self.shared.arrays.get(name)
        if array is None:
            raise KeyRangeError(f"'{name}' is not shared by cells: each instance has its own")
        return name, array

    def tensor(self, key: Any) -> Tensor:
        """The tensor with this key, also if it has only one element."""
        return tensor(*self._found(key))

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str) and key in self.cells and key not in self.parameters.numbers:
            return self.cells[key]
        return value_of(*self._found(key))

    def __setitem__(self, key: Any, value: Any) -> None:
        name, array = self._found(key)
        fill(name, array, value)

    def init_model_parameters(self, seed: int = 0) -> None:
        """Initialise the random learnable variables, with numbers determined by the seed and their names
        (`onert.flow.builder.initial`); the others are unchanged.

        Equal seeds give equal numbers. Raises ExecutionError, with nothing changed, if a distribution is unknown.
        """
        shared = self.shared
        found = {
            name: initial(name, shared.types[name], distribution, seed) for name, distribution in shared.initial.items()
        }
        for name, array in found.items():
            np.copyto(shared.arrays[name], array)

    def profile(self) -> str:
        """The tables of all cells. Raises ExecutionError unless compiled with `Compiler(profiling=True)`."""
        return "\n\n".join(cell.profile() for cell in self.cells.values())

    def __repr__(self) -> str:
        return f"Network({', '.join(self.cells)})"
