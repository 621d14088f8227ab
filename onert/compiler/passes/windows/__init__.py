"""Passes that simplify sliding windows."""
