"""From operations to commands: which kernel runs on what memory."""
