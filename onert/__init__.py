"""A neural-network compiler and runtime: load a model, compile it, run it.

package = onert.load("model.tflite")
program = onert.compile(package)
outputs = onert.Execution(program).run({"x": array})
"""

import importlib
from typing import TYPE_CHECKING, Any

from onert.backend import Program, TensorInfo
from onert.bundle import bundle
from onert.compiler import Options
from onert.exec import Execution
from onert.frontend import custom_op
from onert.ir import BackendError, CompileError, ExecutionError, ModelError, OnertError, Package
from onert.runtime import compile, load

if TYPE_CHECKING:
    from onert.bundle import Bundle, load_bundle
    from onert.runtime import Interpreter, SignatureRunner

__version__ = "0.1.0"

__all__ = [
    "BackendError",
    "Bundle",
    "CompileError",
    "Execution",
    "ExecutionError",
    "Interpreter",
    "ModelError",
    "OnertError",
    "Options",
    "Package",
    "Program",
    "SignatureRunner",
    "TensorInfo",
    "bundle",
    "compile",
    "custom_op",
    "load",
    "load_bundle",
]

_LATER = {
    "Bundle": "onert.bundle",
    "Interpreter": "onert.runtime",
    "SignatureRunner": "onert.runtime",
    "load_bundle": "onert.bundle",
}


def __getattr__(name: str) -> Any:
    """What few programs need is read when it is named."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_LATER[name]), name)
