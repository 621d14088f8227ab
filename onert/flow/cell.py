"""Cells: compiled functions of a network, which instances compute."""

from __future__ import annotations

from typing import Any

from onert.backend import Program, ShowsCode
from onert.backend.registry import load_backends
from onert.ir import ExecutionError
from onert.ir import shape as shapes

from .channel import Channel
from .compiled import Compiled
from .instance import Instance
from .report import Profile, listing


class Cell:
    """A compiled function, of which any number of instances can be created."""

    def __init__(self, compiled: Compiled, profile: Profile | None = None) -> None:
        self.compiled = compiled
        self._profile = profile
        self.name = compiled.name

    @property
    def program(self) -> Program:
        """The program that instances run."""
        return self.compiled.program

    def instance(self) -> Instance:
        """A new instance with its own memory, in which every tensor is zeros."""
        return Instance(self.compiled, self._profile)

    def profile(self) -> str:
        """A table of the time that the steps have taken in all instances together (`onert.flow.report.profile`).

        Raises ExecutionError unless the flow was compiled with `Compiler(profiling=True)`.
        """
        if self._profile is None:
            raise ExecutionError(f"cell '{self.name}' has no profile: it was compiled without `profiling`")
        return self._profile.report(self.compiled)

    def channel(self, key: Any, size: int = 0) -> Channel:
        """A channel of tensors in the format of one of the cell's tensors."""
        name = self.compiled.named(key)
        return Channel(name, self.compiled.type(name), size)

    def index(self, key: Any) -> Any:
        """The number of a parameter, which is a faster key than its name. A tuple of keys yields a tuple, None None."""
        if key is None:
            return None
        if isinstance(key, tuple):
            return tuple(map(self.index, key))
        return self.compiled.parameters.number(key)

    def __contains__(self, key: Any) -> bool:
        try:
            name = self.compiled.named(key)
        except ExecutionError:
            return False
        return name in self.compiled.layout.fields

    def llvm_ir(self) -> str:
        """The kernels of the cell as LLVM's assembly language."""
        return self._code("ir")

    def assembly(self) -> str:
        """The kernels of the cell as assembler text."""
        return self._code("asm")

    def _code(self, form: str) -> str:
        """The code of the kernels that backends generated for the cell.

        A program from the cache contains only machine code, so it is compiled again for this.
        """
        found = _shown(self.program, form)
        if not found:
            own = {at: shapes.static(described.shape) for at, described in enumerate(self.program.inputs)}
            found = _shown(self.program.specialize(own), form)
        return found

    def __str__(self) -> str:
        """The listing: the memory of tensors, and the steps with their kernels (`onert.flow.report.listing`)."""
        return listing(self.compiled)

    def __repr__(self) -> str:
        return f"Cell('{self.name}')"


def _shown(program: Program, form: str) -> str:
    """The code of a program's kernels as text; empty if backends generated none."""
    found = []
    for step in program.main.steps:
        (backend, *_) = load_backends((step.backend,))
        if isinstance(backend, ShowsCode):
            found.append(backend.shown(step.kernel, form))
    return "\n".join(filter(None, found))
