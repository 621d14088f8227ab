"""The IR as text. Printed models can be parsed back."""

from .parser import parse, parse_subgraph
from .printer import text

__all__ = ["parse", "parse_subgraph", "text"]
