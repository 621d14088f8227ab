"""Kernels of other packages: every exception is converted into one error that names the place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import frozen

from onert.backend import HasParts, Part, Step, Tensors
from onert.ir import BackendError, Context, ExecutionError, OnertError, RuleError

Call = Callable[[], None]


def bound(step: Step, tensors: Tensors, context: Context) -> Call:
    """Bind another package's kernel. Its exceptions, now or in a run, are raised as BackendError."""
    place = f"backend {step.backend!r}, {', '.join(str(operation) for operation in step.sequence.body)}"
    call: list[Call] = []
    Guarded(place, lambda: call.append(step.kernel.bind(tensors, context)))()
    if isinstance(call[0], HasParts):
        return GuardedParts(place, call[0], tuple(Part(p.operations, Guarded(place, p.call)) for p in call[0].parts))
    return Guarded(place, call[0])


@frozen(eq=False)
class Guarded:
    """A call that raises only this project's errors."""

    place: str
    call: Call

    def __call__(self) -> None:
        try:
            self.call()
        except RuleError as error:
            raise ExecutionError(f"{self.place}: {error}") from error
        except OnertError:
            raise
        except Exception as error:  # foreign code: any exception becomes an error that names it
            raise BackendError(f"{self.place} failed: {type(error).__name__}: {error}") from error

    def __getattr__(self, name: str) -> Any:
        """Other attributes of the call, such as its queue."""
        return getattr(self.call, name)


@frozen(eq=False)
class GuardedParts(Guarded):
    """A guarded call that can be run piece by piece."""

    parts: tuple[Part, ...]
