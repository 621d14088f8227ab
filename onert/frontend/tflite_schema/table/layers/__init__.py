"""Operators that are layers, one family per file."""
