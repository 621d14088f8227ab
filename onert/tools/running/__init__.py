"""What `onert_run` does between its arguments and its answers."""
