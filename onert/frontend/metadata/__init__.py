"""Metadata in model files: labels, normalisation, sample rates, calibration."""

from typing import TYPE_CHECKING

from onert.ir.process.later import later

from .model_metadata import Box, Calibration, ModelMetadata, TensorMetadata

if TYPE_CHECKING:
    from .labels import label_files
    from .reading import metadata

__all__ = ["Box", "Calibration", "ModelMetadata", "TensorMetadata", "label_files", "metadata"]

__getattr__ = later(
    __name__, {"label_files": "onert.frontend.metadata.labels", "metadata": "onert.frontend.metadata.reading"}
)
