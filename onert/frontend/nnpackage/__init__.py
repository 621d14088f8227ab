"""nnpackages: a manifest, one or more models, a configuration and a test case in a directory or zip archive."""

from .package import FORMAT
from .test_case import TestCase, test_case

__all__ = ["FORMAT", "TestCase", "test_case"]
