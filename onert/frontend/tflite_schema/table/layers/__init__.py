"""Operators that are layers, one family a file."""
