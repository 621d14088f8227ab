"""Kernels of other packages: whatever they raise becomes one error with the place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import frozen

from onert.backend import HasParts, Part, Step, Tensors
from onert.ir import BackendError, Context, ExecutionError, OnertError, RuleError

Call = Callable[[], None]


def bound(step: Step, tensors: Tensors, context: Context) -> Call:
    """What another package's kernel binds; BackendError for what it raises, now or when it runs."""
    place = f"backend {step.backend!r}, {', '.join(str(operation) for operation in step.sequence.body)}"
    call: list[Call] = []
    Guarded(place, lambda: call.append(step.kernel.bind(tensors, context)))()
    if isinstance(call[0], HasParts):
        return GuardedParts(place, call[0], tuple(Part(p.operations, Guarded(place, p.call)) for p in call[0].parts))
    return Guarded(place, call[0])


@frozen(eq=False)
class Guarded:
    """A call that raises nothing but errors of this project's."""

    place: str
    call: Call

    def __call__(self) -> None:
        try:
            self.call()
        except RuleError as error:
            raise ExecutionError(f"{self.place}: {error}") from error
        except OnertError:
            raise
        except Exception as error:  # a third party's code: whatever it raises becomes an error with its name
            raise BackendError(f"{self.place} failed: {type(error).__name__}: {error}") from error

    def __getattr__(self, name: str) -> Any:
        """What else a call may have: the queue that it works in."""
        return getattr(self.call, name)


@frozen(eq=False)
class GuardedParts(Guarded):
    """The same for a call that can be run piece by piece."""

    parts: tuple[Part, ...]
