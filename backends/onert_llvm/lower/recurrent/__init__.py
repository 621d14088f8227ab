"""Layers with a state to commands."""
