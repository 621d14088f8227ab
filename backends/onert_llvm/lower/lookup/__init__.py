"""Lowers lookups in tables."""
