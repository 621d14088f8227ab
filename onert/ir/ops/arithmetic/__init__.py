"""Arithmetic that several families share; no operation kinds."""
