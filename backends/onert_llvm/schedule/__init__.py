"""Schedules: tiles and shares of work by estimated cost, and how weights are packed for them."""
