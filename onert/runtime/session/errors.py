"""ONNX Runtime's errors, under its names, which are also errors of onert.

Source: the names are from `onnxruntime.capi.onnxruntime_pybind11_state` of ONNX Runtime 1.31; when each is raised was
found by experiment. Applications import them from `onert.capi.onnxruntime_pybind11_state`.
"""

from __future__ import annotations

from onert.runtime.errors import ArgumentError, RunError


class InvalidArgument(ArgumentError):
    """An input or output that the model does not have, or elements or a shape that it does not accept."""


class NoSuchFile(ArgumentError, FileNotFoundError):
    """The file does not exist."""


class InvalidProtobuf(ArgumentError):
    """The content is not an ONNX model."""


class InvalidGraph(ArgumentError):
    """A model breaks a rule of its format, or has unknown operators."""


class NotImplemented(ArgumentError):
    """A well-formed model cannot be run with these options."""


class NoModel(ArgumentError):
    """There is no model; never raised."""


class Fail(RunError):
    """A run failed."""


class RuntimeException(RunError):
    """A run failed."""


class EPFail(RunError):
    """A provider failed; never raised."""


class EngineError(RunError):
    """An engine failed; never raised."""


class FailedRun(Fail, RuntimeException):
    """A run failed: ONNX Runtime raises one or the other."""
