"""nnpackages: a manifest, one or more models, a configuration, a test case; a directory or a zip archive."""

from .package import FORMAT
from .test_case import TestCase, test_case

__all__ = ["FORMAT", "TestCase", "test_case"]
