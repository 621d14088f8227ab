"""The IR as text: what prints parses back."""

from .parser import parse, parse_subgraph
from .printer import text

__all__ = ["parse", "parse_subgraph", "text"]
