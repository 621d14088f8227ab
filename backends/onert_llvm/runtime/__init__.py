"""Runs compiled kernels in this process: loading of code, memory, threads."""
