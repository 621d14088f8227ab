"""The messages of the protocol's gRPC form, of a pool of their own: a client in this process may have its own."""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from .descriptors import FILE

_POOL = DescriptorPool()
_POOL.AddSerializedFile(FILE)
SERVICE = _POOL.FindServiceByName("inference.GRPCInferenceService")
"""The service's descriptor: its methods by name, each with the messages that it takes and gives."""


def message(name: str) -> Any:
    """The class of a message."""
    return GetMessageClass(_POOL.FindMessageTypeByName(f"inference.{name}"))
