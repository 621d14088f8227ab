"""Run times: the machine's peak rates, estimates, and measurements."""
