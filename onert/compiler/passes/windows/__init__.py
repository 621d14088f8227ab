"""Passes that simplify how windows slide."""
