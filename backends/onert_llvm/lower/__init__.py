"""From operations to commands: which kernel runs on which memory."""
