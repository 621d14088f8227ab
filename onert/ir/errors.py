"""The errors that onert raises: each one sentence with the place, the rule and the value."""

from __future__ import annotations

MAX_SENTENCE = 8_000
"""The most characters of a message: names in it come from files, and a file may hold a name of a megabyte."""


def printable(text: str) -> str:
    """The text with control characters escaped, for names that come from files: a terminal would act on them."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


class OnertError(Exception):
    """The root of every error that onert raises on purpose."""

    def __str__(self) -> str:
        """The sentence in one line that is safe to print, whatever names a file has: control characters are escaped."""
        text = super().__str__()
        if len(text) > MAX_SENTENCE:
            half = MAX_SENTENCE // 2
            text = f"{text[:half]} [{len(text) - 2 * half} characters left out] {text[-half:]}"
        return printable(text)


class ModelError(OnertError):
    """The model file is malformed or breaks a rule of its format."""


class CompileError(OnertError):
    """The model is well-formed, but cannot be compiled with these options."""


class OptionError(CompileError):
    """An option has a value that it cannot have; `option` is its name here, and `rest` what follows that.

    A command that calls the option otherwise says the sentence with its own name for it.
    """

    def __init__(self, option: str, rest: str) -> None:
        super().__init__(f"{option} {rest}")
        self.option, self.rest = option, rest

    def __reduce__(self) -> tuple[type[OptionError], tuple[str, str]]:
        return type(self), (self.option, self.rest)


class ExecutionError(OnertError):
    """An input, a shape or a value met at run time cannot be computed with."""


class BackendError(OnertError):
    """A backend could not be found, loaded, or did not do what it promised."""


class OnertWarning(UserWarning):
    """What was asked for is done in part or in another way; the sentence says how. `warnings` decides who sees it."""


class RuleError(OnertError):
    """An operation's own rule is broken; whoever knows the place raises it again with the place.

    `infer` and `evaluate` raise it with the bare sentence ("stride_height is 0, expected at least 1").
    """
