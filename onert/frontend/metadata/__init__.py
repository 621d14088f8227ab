"""Metadata in model files: labels, normalisation, sample rates, calibration."""

from .label_files import label_files
from .model_metadata import Box, Calibration, ModelMetadata, TensorMetadata
from .reading import metadata

__all__ = ["Box", "Calibration", "ModelMetadata", "TensorMetadata", "label_files", "metadata"]
