"""The protocol's two forms of an inference: JSON followed by binary data, and gRPC messages."""
