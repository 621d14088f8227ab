"""Commands: what a lowered sequence is made of, and how the tasks of kernels lie in memory."""
