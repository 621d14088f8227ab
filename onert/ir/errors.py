"""The errors that onert raises. Each is one sentence with the place, the rule and the offending value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Result = TypeVar("Result")

MAX_SENTENCE = 8_000
"""The maximum length of a message: names in it come from files, and a file may contain a name of a megabyte."""


def printable(text: str) -> str:
    """The text with control characters escaped: names come from files, and a terminal would execute them."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


class OnertError(Exception):
    """The base class of all errors that onert raises deliberately."""

    def __str__(self) -> str:
        """The sentence on one line, with control characters escaped so that names from files are safe to print."""
        text = super().__str__()
        if len(text) > MAX_SENTENCE:
            half = MAX_SENTENCE // 2
            text = f"{text[:half]} [{len(text) - 2 * half} characters left out] {text[-half:]}"
        return printable(text)


class ModelError(OnertError):
    """The model file is malformed or violates a rule of its format."""


class CompileError(OnertError):
    """The model is well-formed, but cannot be compiled with these options."""


class OptionError(CompileError):
    """An option has an invalid value; `option` is its name here, and `rest` is the remainder of the sentence.

    A command whose option has another name prints the sentence with that name instead.
    """

    def __init__(self, option: str, rest: str) -> None:
        super().__init__(f"{option} {rest}")
        self.option, self.rest = option, rest

    def __reduce__(self) -> tuple[type[OptionError], tuple[str, str]]:
        return type(self), (self.option, self.rest)


class ExecutionError(OnertError):
    """An input, a shape or a value met at run time is invalid."""


class BackendError(OnertError):
    """A backend could not be found or loaded, or violated its contract."""


MISHAPS = (ValueError, TypeError, ArithmeticError, IndexError, KeyError, MemoryError)
"""What Python and NumPy raise when an operation's rules or meaning meet operands that they were not written for."""


def call_foreign(
    kind: type[OnertError], failed: Callable[[], str], function: Callable[..., Result], *arguments: Any
) -> Result:
    """The result of third-party code; an exception that is not ours becomes one of this `kind`, after `failed`."""
    try:
        return function(*arguments)
    except OnertError:
        raise
    except Exception as error:
        raise kind(f"{failed()}: {type(error).__name__}: {error}") from error


class OnertWarning(UserWarning):
    """A request is carried out in part or in another way; the sentence says how. Filtered by Python's `warnings`."""


class RuleError(OnertError):
    """An operation's own rule is broken. A caller that can locate the operation re-raises the error with its place.

    `infer` and `evaluate` raise it with only the sentence ("stride_height is 0, expected at least 1").
    """
