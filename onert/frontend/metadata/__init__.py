"""What model files say of themselves beside their graphs: labels, normalisation, sample rates, calibrations."""

from .model_metadata import Box, Calibration, ModelMetadata, TensorMetadata
from .reading import metadata

__all__ = ["Box", "Calibration", "ModelMetadata", "TensorMetadata", "metadata"]
