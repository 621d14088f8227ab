"""Tests of the host runtime, and the devices they control."""
