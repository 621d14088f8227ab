"""Writes `onert/serve/protocol/open_inference.binpb`, the compiled form of `open_inference.proto` beside it.

pip install grpcio-tools
python tests/descriptors.py
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "onert" / "serve" / "protocol" / "open_inference.proto"


def compiled() -> bytes:
    """The file's descriptor, as `protoc` compiles it."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from grpc_tools import protoc

    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "descriptors")
        if protoc.main(["protoc", f"-I{SOURCE.parent}", f"--descriptor_set_out={target}", SOURCE.name]) != 0:
            sys.exit("protoc refused the file")
        found = FileDescriptorSet.FromString(target.read_bytes())
    (file,) = found.file
    data: bytes = file.SerializeToString(deterministic=True)
    return data


if __name__ == "__main__":
    SOURCE.with_suffix(".binpb").write_bytes(compiled())
