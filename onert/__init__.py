"""A neural-network compiler and runtime: load a model, compile it, run it.

package = onert.load("model.tflite")
program = onert.compile(package)
outputs = onert.Execution(program).run({"x": array})
"""

from typing import TYPE_CHECKING

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
    from .runtime import Interpreter, SignatureRunner

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
    "OnertWarning",
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

__getattr__ = later(
    __name__,
    {
        "Bundle": "onert.bundle",
        "Interpreter": "onert.runtime",
        "SignatureRunner": "onert.runtime",
        "load_bundle": "onert.bundle",
    },
)
