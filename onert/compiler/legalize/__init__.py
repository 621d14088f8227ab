"""Decompositions: operations that no backend runs natively, as graphs of operations that one does."""
