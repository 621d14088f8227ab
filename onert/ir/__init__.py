"""The intermediate representation: the values that describe a model, and the meaning of its operations."""

from typing import TYPE_CHECKING

from onert.ir.process.later import later

from .dtype import Array, DType
from .errors import (
    BackendError,
    CompileError,
    ExecutionError,
    ModelError,
    OnertError,
    OnertWarning,
    OptionError,
    RuleError,
)
from .op import Call, Context, Effect, Op, Param, Stopping, require
from .operand import Operand, Resource
from .operation import Operation
from .ops import OPS
from .package import Connection, Package, Port
from .quant import Quantization, dequantize, quantize
from .shape import Dim, Shape
from .subgraph import Signature, SignatureTensor, StateUpdate, Subgraph, Subgraphs
from .types import CallTypes, Constant, TensorType, type_of, unranked

if TYPE_CHECKING:
    from onert.ir.analysis.evaluate import evaluate
    from onert.ir.analysis.inference import infer, infer_subgraph

__all__ = [
    "OPS",
    "Array",
    "BackendError",
    "Call",
    "CallTypes",
    "CompileError",
    "Connection",
    "Constant",
    "Context",
    "DType",
    "Dim",
    "Effect",
    "ExecutionError",
    "ModelError",
    "OnertError",
    "OnertWarning",
    "Op",
    "Operand",
    "Operation",
    "OptionError",
    "Package",
    "Param",
    "Port",
    "Quantization",
    "Resource",
    "RuleError",
    "Shape",
    "Signature",
    "SignatureTensor",
    "StateUpdate",
    "Stopping",
    "Subgraph",
    "Subgraphs",
    "TensorType",
    "dequantize",
    "evaluate",
    "infer",
    "infer_subgraph",
    "quantize",
    "require",
    "type_of",
    "unranked",
]

__getattr__ = later(
    __name__,
    {
        "evaluate": "onert.ir.analysis.evaluate",
        "infer": "onert.ir.analysis.inference",
        "infer_subgraph": "onert.ir.analysis.inference",
    },
)
