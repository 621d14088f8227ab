"""Lowers loops and branches."""
