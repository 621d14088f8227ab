"""What a backend implements and what it is given: the contract that a third party reads."""

from .backend import API_VERSION, Backend, EmitsObject, Settings
from .emission import Blueprint, CodeTarget, EntryPoint, ObjectCode, Place, Region, Symbol
from .evaluating import EvaluatingKernel
from .kernel import Group, HasParts, Kernel, Part, Sequence
from .memory import CHANNELS_FIRST, HOST, ArenaPlan, Buffer, HostMemory, Memory, Placement, require_room
from .program import Program, Routine, Step, TensorInfo
from .tensor import Tensor, Tensors

__all__ = [
    "API_VERSION",
    "CHANNELS_FIRST",
    "HOST",
    "ArenaPlan",
    "Backend",
    "Blueprint",
    "Buffer",
    "ChannelsFirstMemory",
    "CodeTarget",
    "EmitsObject",
    "EntryPoint",
    "EvaluatingKernel",
    "Group",
    "HasParts",
    "HostMemory",
    "Kernel",
    "Memory",
    "ObjectCode",
    "Part",
    "Place",
    "Placement",
    "Program",
    "Region",
    "Routine",
    "Sequence",
    "Settings",
    "Step",
    "Symbol",
    "Tensor",
    "TensorInfo",
    "Tensors",
    "require_room",
]
