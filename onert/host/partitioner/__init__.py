"""The partitioner: how a network is divided among devices."""

from .whole import whole

__all__ = ["whole"]
