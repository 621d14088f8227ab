"""Lowers element-wise operations."""
