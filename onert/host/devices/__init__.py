"""Kinds of devices: the processor in this process, or in another."""
