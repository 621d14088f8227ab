"""Lowers copies, views, gathers and slices."""
