"""Commands: what a lowered sequence consists of, and the memory layout of kernel tasks."""
