"""What a backend implements and what it is given: the contract that a third party reads."""

from typing import TYPE_CHECKING

from onert.ir.later import later

from .backend import API_VERSION, Backend, EmitsObject, Settings
from .evaluating import EvaluatingKernel
from .kernel import Group, HasParts, Kernel, Part, Sequence
from .memory import CHANNELS_FIRST, HOST, ArenaPlan, Buffer, HostMemory, Memory, Placement, require_room
from .program import Program, Routine, Step, TensorInfo
from .tensor import Tensor, Tensors

if TYPE_CHECKING:
    from .emission import Blueprint, CodeTarget, EntryPoint, ObjectCode, Place, Region, Symbol

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

_OF_EMISSION = ("Blueprint", "CodeTarget", "EntryPoint", "ObjectCode", "Place", "Region", "Symbol")
__getattr__ = later(__name__, dict.fromkeys(_OF_EMISSION, "onert.backend.emission"))
