"""The protocol's two forms of one inference: JSON with bytes behind it, and messages over gRPC."""
