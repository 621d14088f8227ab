"""Writes `onert/serve/protocol/descriptors.py`, the compiled form of `open_inference.proto` beside it.

pip install grpcio-tools
python tests/descriptors.py > onert/serve/protocol/descriptors.py
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "onert" / "serve" / "protocol" / "open_inference.proto"
WIDTH = 100
"""Characters of a line of bytes."""


def compiled() -> bytes:
    """The file's descriptor, as `protoc` makes it."""
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


def text(data: bytes) -> str:
    """A Python file with the bytes."""
    digits = data.hex()
    lines = [f'    "{digits[at : at + WIDTH]}"' for at in range(0, len(digits), WIDTH)]
    return "\n".join(
        [
            '"""What `protoc` makes of `open_inference.proto`: written by tests/descriptors.py."""',
            "",
            "FILE = bytes.fromhex(",
            *lines,
            ")",
            "",
        ]
    )


if __name__ == "__main__":
    sys.stdout.write(text(compiled()))
