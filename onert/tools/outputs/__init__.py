"""Print outputs and save them to files."""

from .printing import printed_inputs, printed_outputs
from .saving import SAVED, Kept, save

__all__ = ["SAVED", "Kept", "printed_inputs", "printed_outputs", "save"]
