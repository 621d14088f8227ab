"""Where a program comes from: enough to make it again in another process."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import frozen

from onert.backend import Program
from onert.compiler import Options
from onert.ir import Package


@frozen(eq=False)
class Origin:
    """A program's `specialize`, with the package and the options that it was compiled of.

    A program is pickled as these two: unpickling compiles again, or finds the program in the cache.
    """

    specialized: Callable[[Mapping[int, tuple[int, ...]]], Program]
    package: Package
    options: Options

    def __call__(self, shapes: Mapping[int, tuple[int, ...]]) -> Program:
        return self.specialized(shapes)
