"""Loops and branches to commands."""
