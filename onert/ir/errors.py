"""The errors that onert raises: each one sentence with the place, the rule and the value."""

from __future__ import annotations


class OnertError(Exception):
    """The root of every error that onert raises on purpose."""


class ModelError(OnertError):
    """The model file is malformed or breaks a rule of its format."""


class CompileError(OnertError):
    """The model is well-formed, but cannot be compiled with these options."""


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
