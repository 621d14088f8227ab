"""Operators on elements and shapes, one family per file."""
