"""Loops and branches between commands."""
