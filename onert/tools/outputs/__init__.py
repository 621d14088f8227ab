"""Print outputs and save them to files."""

from .printing import printed_inputs, printed_outputs
from .saving import SAVED, CollectedOutputs, save

__all__ = ["SAVED", "CollectedOutputs", "printed_inputs", "printed_outputs", "save"]
