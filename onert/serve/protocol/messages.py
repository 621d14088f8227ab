"""The gRPC messages of the protocol, in a pool of their own, because a client in this process may have its own copy."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

_POOL = DescriptorPool()
_POOL.AddSerializedFile((files("onert.serve") / "protocol" / "open_inference.binpb").read_bytes())
"""The output of `protoc` for `open_inference.proto`, written by tests/descriptors.py."""
SERVICE = _POOL.FindServiceByName("inference.GRPCInferenceService")
"""The service's descriptor: its methods by name, each with its request and response messages."""


def message(name: str) -> Any:
    """The class of a message."""
    return GetMessageClass(_POOL.FindMessageTypeByName(f"inference.{name}"))
