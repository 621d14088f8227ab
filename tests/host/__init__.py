"""Tests of the host runtime, and devices that they steer."""
