"""What becomes of outputs: files, lines, one JSON object."""

from .printing import printed_inputs, printed_outputs
from .saving import SAVED, Kept, save

__all__ = ["SAVED", "Kept", "printed_inputs", "printed_outputs", "save"]
