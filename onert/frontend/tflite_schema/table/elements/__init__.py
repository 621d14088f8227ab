"""Operators on elements and shapes, one family a file."""
