"""The contract between the compiler and a backend: what third parties implement and what they receive."""

from typing import TYPE_CHECKING

from onert.ir.process.later import later

from .backend import API_VERSION, Backend, EmitsObject, Settings, ShipsCode, ShowsCode
from .evaluation.evaluating_kernel import EvaluatingKernel
from .kernel import (
    CopiesAfter,
    Following,
    FollowingKernel,
    Group,
    HasParts,
    Kernel,
    Part,
    Redirect,
    Redirects,
    Sequence,
    Stretched,
    StretchedKernel,
)
from .memory import (
    CHANNELS_FIRST,
    HOST,
    ArenaPlan,
    Buffer,
    ChannelsFirstMemory,
    HostMemory,
    Memory,
    OwnLayout,
    Placement,
    has_own_layout,
    require_room,
    tensor_bytes,
)
from .program import Program, Routine, Step, Stretch, TensorInfo
from .tensor import Tensor, Tensors

if TYPE_CHECKING:
    from .emission import (
        Beginning,
        Blueprint,
        Code,
        CodeTarget,
        EntryPoint,
        Footprint,
        Layer,
        ObjectCode,
        Place,
        Region,
        Symbol,
        Version,
    )
    from .queue import Enqueues, Event, Queue, queue_of

__all__ = [
    "API_VERSION",
    "CHANNELS_FIRST",
    "HOST",
    "ArenaPlan",
    "Backend",
    "Beginning",
    "Blueprint",
    "Buffer",
    "ChannelsFirstMemory",
    "Code",
    "CodeTarget",
    "CopiesAfter",
    "EmitsObject",
    "Enqueues",
    "EntryPoint",
    "EvaluatingKernel",
    "Event",
    "Following",
    "FollowingKernel",
    "Footprint",
    "Group",
    "HasParts",
    "HostMemory",
    "Kernel",
    "Layer",
    "Memory",
    "ObjectCode",
    "OwnLayout",
    "Part",
    "Place",
    "Placement",
    "Program",
    "Queue",
    "Redirect",
    "Redirects",
    "Region",
    "Routine",
    "Sequence",
    "Settings",
    "ShipsCode",
    "ShowsCode",
    "Step",
    "Stretch",
    "Stretched",
    "StretchedKernel",
    "Symbol",
    "Tensor",
    "TensorInfo",
    "Tensors",
    "Version",
    "has_own_layout",
    "queue_of",
    "require_room",
    "tensor_bytes",
]

__getattr__ = later(
    __name__,
    {
        **dict.fromkeys(__all__, "onert.backend.emission"),
        **dict.fromkeys(("Enqueues", "Event", "Queue", "queue_of"), "onert.backend.queue"),
    },
)
