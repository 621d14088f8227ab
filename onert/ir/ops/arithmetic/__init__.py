"""Arithmetic that several families share; declares no operation kinds."""
