"""What a backend implements and what it is given: the contract that a third party reads."""

from .backend import API_VERSION, Backend, EmitsObject, Settings
from .evaluating import EvaluatingKernel
from .kernel import Group, HasParts, Kernel, Part, Sequence
from .memory import HOST, ArenaPlan, Buffer, HostMemory, Memory, Placement, require_room
from .program import Program, Routine, Step, TensorInfo
from .tensor import Tensor, Tensors

__all__ = [
    "API_VERSION",
    "HOST",
    "ArenaPlan",
    "Backend",
    "Buffer",
    "EmitsObject",
    "EvaluatingKernel",
    "Group",
    "HasParts",
    "HostMemory",
    "Kernel",
    "Memory",
    "Part",
    "Placement",
    "Program",
    "Routine",
    "Sequence",
    "Settings",
    "Step",
    "Tensor",
    "TensorInfo",
    "Tensors",
    "require_room",
]
