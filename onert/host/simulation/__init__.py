"""Simulate a host under a virtual clock: predict how described devices would handle streams of requests."""

from .model import Outcome, Station, Stream, Workload
from .search import fewest
from .simulate import simulate

__all__ = ["Outcome", "Station", "Stream", "Workload", "fewest", "simulate"]
