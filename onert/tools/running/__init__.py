"""The steps of `onert_run` between its arguments and its answers."""
