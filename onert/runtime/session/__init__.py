"""ONNX Runtime's interface, `InferenceSession` and everything that belongs to it, implemented by onert."""

from .backend import Backend
from .binding import IOBinding
from .choices import (
    ExecutionMode,
    GraphOptimizationLevel,
    RunOptions,
    SessionOptions,
    disable_telemetry_events,
    enable_telemetry_events,
    get_all_providers,
    get_available_providers,
    get_device,
    preload_dlls,
    set_default_logger_severity,
    set_default_logger_verbosity,
)
from .inference_session import InferenceSession
from .seeds import set_seed
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
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_device",
    "preload_dlls",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_seed",
]
