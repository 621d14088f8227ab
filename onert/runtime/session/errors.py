"""ONNX Runtime's errors, under its names, which are also errors of onert.

Source: `onnxruntime.capi.onnxruntime_pybind11_state` of ONNX Runtime 1.31 names them; which of them wrong arguments,
models and runs raise was found by trying. An application finds them in `onert.capi.onnxruntime_pybind11_state`.
"""

from __future__ import annotations

from onert.runtime.errors import ArgumentError, RunError


class InvalidArgument(ArgumentError):
    """An input or output that the model does not have, or elements or shapes that it does not take."""


class NoSuchFile(ArgumentError, FileNotFoundError):
    """There is no file of that name."""


class InvalidProtobuf(ArgumentError):
    """What is read is no ONNX model."""


class InvalidGraph(ArgumentError):
    """A model breaks a rule of its format, or has operators that nobody knows."""


class NotImplemented(ArgumentError):
    """A model is well-formed, but is not run with these options."""


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
