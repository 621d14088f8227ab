"""ONNX Runtime's interface: `InferenceSession` and what belongs to it, run by onert."""

from .backend import Backend
from .binding import IOBinding
from .choices import (
    ExecutionMode,
    GraphOptimizationLevel,
    RunOptions,
    SessionOptions,
    get_all_providers,
    get_available_providers,
    get_device,
    set_default_logger_severity,
)
from .inference_session import InferenceSession
from .values import ModelMetadata, NodeArg, OrtValue

__all__ = [
    "Backend",
    "ExecutionMode",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "ModelMetadata",
    "NodeArg",
    "OrtValue",
    "RunOptions",
    "SessionOptions",
    "get_all_providers",
    "get_available_providers",
    "get_device",
    "set_default_logger_severity",
]
