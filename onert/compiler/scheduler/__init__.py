"""Schedulers, which assign operations to backends."""
