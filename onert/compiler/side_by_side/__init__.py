"""Concurrency under the Parallel executor: between steps, and between groups of a step on separate threads."""
