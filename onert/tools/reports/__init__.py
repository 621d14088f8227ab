"""What commands say of a run: its outputs, its times, and what made it slow."""
