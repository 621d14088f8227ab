"""A neural-network compiler and runtime: load a model, compile it, run it.

package = onert.load("model.tflite")
program = onert.compile(package)
outputs = onert.Execution(program).run({"x": array})
"""

import os
import sys
from typing import TYPE_CHECKING

if sys.version_info < (3, 11):  # noqa: UP036 # before importing files that older versions cannot parse
    raise ImportError(f"onert needs Python 3.11 or newer, this is {sys.version_info[0]}.{sys.version_info[1]}")
if any(os.path.basename(name).startswith("onert_") for name in sys.argv[:1]):
    # In a command's own process, before NumPy is imported: by default, idle threads of its linear algebra, which
    # commands hardly use, spin for 2**26 cycles before they sleep.
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "20")

from onert.ir.process.later import later

from .backend import Program, TensorInfo
from .bundle import bundle
from .compiler import Options
from .exec import Execution
from .frontend import custom_op
from .ir import BackendError, CompileError, ExecutionError, ModelError, OnertError, OnertWarning, Package
from .runtime import compile, load

if TYPE_CHECKING:
    from .bundle import Bundle, load_bundle
    from .runtime import Interpreter, SignatureRunner, cache
    from .runtime.session import (
        ExecutionMode,
        GraphOptimizationLevel,
        InferenceSession,
        IOBinding,
        ModelMetadata,
        NodeArg,
        OrtValue,
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
        set_seed,
    )

__version__ = "0.1.0"

__all__ = [
    "BackendError",
    "Bundle",
    "CompileError",
    "Execution",
    "ExecutionError",
    "ExecutionMode",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "Interpreter",
    "ModelError",
    "ModelMetadata",
    "NodeArg",
    "OnertError",
    "OnertWarning",
    "Options",
    "OrtValue",
    "Package",
    "Program",
    "RunOptions",
    "SessionOptions",
    "SignatureRunner",
    "TensorInfo",
    "bundle",
    "cache",
    "compile",
    "custom_op",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_device",
    "load",
    "load_bundle",
    "preload_dlls",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_seed",
]


def __dir__() -> list[str]:
    """All public names, including those that are imported on first use."""
    return [*__all__, "__version__"]


__getattr__ = later(
    __name__,
    {
        # ONNX Runtime's names: an application written for it runs with `import onert as onnxruntime`.
        **dict.fromkeys(__all__, "onert.runtime.session"),
        "Bundle": "onert.bundle",
        "Interpreter": "onert.runtime",
        "SignatureRunner": "onert.runtime",
        "capi": "onert.capi",
        "load_bundle": "onert.bundle",
        "cache": "onert.runtime.cache",
    },
)
