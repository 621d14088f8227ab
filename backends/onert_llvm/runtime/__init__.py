"""What runs compiled kernels in this process: loading code, memory, threads."""
