"""A neural-network compiler and runtime: load a model, compile it, run it.

package = onert.load("model.tflite")
program = onert.compile(package)
outputs = onert.Execution(program).run({"x": array})
"""

from onert.backend import Program, TensorInfo
from onert.bundle import Bundle, bundle, load_bundle
from onert.compiler import Options
from onert.exec import Execution
from onert.frontend import custom_op
from onert.ir import BackendError, CompileError, ExecutionError, ModelError, OnertError, Package
from onert.runtime import Interpreter, SignatureRunner, compile, load

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
