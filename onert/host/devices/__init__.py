"""Kinds of devices: the processor in this process, in another process, or on a node of a Ray cluster."""
