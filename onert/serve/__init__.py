"""Serve a host over HTTP and gRPC in the Open Inference Protocol.

with Server(host, {"digits": Path("digits.tflite")}, ServeConfig(http_port=8000)) as server:
    server.wait()
"""

from typing import TYPE_CHECKING

from onert.ir.process.later import later

if TYPE_CHECKING:
    from .errors import ServeError
    from .serve_config import ServeConfig
    from .server import Server

__all__ = ["ServeConfig", "ServeError", "Server"]

__getattr__ = later(
    __name__,
    {
        "ServeConfig": "onert.serve.serve_config",
        "ServeError": "onert.serve.errors",
        "Server": "onert.serve.server",
    },
)
