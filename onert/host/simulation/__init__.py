"""A host under a virtual clock: what devices that are described, and not there, would make of streams of requests."""

from .model import Outcome, Station, Stream, Workload
from .search import fewest
from .simulate import simulate

__all__ = ["Outcome", "Station", "Stream", "Workload", "fewest", "simulate"]
