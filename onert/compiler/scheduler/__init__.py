"""Schedulers: which backend runs which operation."""
