"""Attention as a single kernel."""
