"""`onert_serve` beside a plain FastAPI server over ONNX Runtime: requests a second, and latencies, of one ONNX model.

    pip install fastapi
    python tests/bench/serving.py MODEL.onnx [SECONDS]

Both are processes of their own with the same HTTP server (uvicorn, httptools, uvloop), take the input's bytes and give
the outputs', and run the model on all processors, one thread a request. The same clients ask both in turn, each on a
connection that it keeps.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from threading import Thread

import numpy as np

import onert
from onert.backend import TensorInfo

CLIENTS = (1, 2, 4, 8, 16)
ROUNDS = 5
PEER = """
import sys
import numpy as np
import onnxruntime
import uvicorn
from fastapi import FastAPI, Request, Response
from starlette.concurrency import run_in_threadpool

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(sys.argv[1], options)
name = session.get_inputs()[0].name
shape = [int(d) for d in sys.argv[3].split(",")]
app = FastAPI()

@app.post("/infer")
async def infer(request: Request):
    given = np.frombuffer(await request.body(), np.float32).reshape(shape)
    found = await run_in_threadpool(session.run, None, {name: given})
    return Response(b"".join(each.tobytes() for each in found), media_type="application/octet-stream")

uvicorn.run(app, port=int(sys.argv[2]), loop="uvloop", http="httptools", access_log=False, log_level="error")
"""
OURS = "import sys; from onert.tools.serve import main; sys.exit(main())"


def free_port() -> int:
    with socket.socket() as end:
        end.bind(("127.0.0.1", 0))
        port: int = end.getsockname()[1]
        return port


@contextmanager
def process(*command: str) -> Iterator[None]:
    made = subprocess.Popen([sys.executable, "-c", *command], stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        made.terminate()
        made.wait()


def connected(port: int) -> socket.socket:
    """A connection, once somebody listens."""
    for _ in range(600):
        try:
            end = socket.create_connection(("127.0.0.1", port))
        except OSError:
            time.sleep(0.1)
            continue
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return end
    sys.exit(f"nobody listens on {port}")


def posted(path: str, body: bytes, *headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def ours(info: TensorInfo, data: bytes) -> bytes:
    """An inference of ours, with bytes in both directions."""
    given = {"name": info.name, "shape": info.shape, "datatype": "FP32", "parameters": {"binary_data_size": len(data)}}
    head = json.dumps({"inputs": [given], "parameters": {"binary_data_output": True}}).encode()
    return posted("/v2/models/model/infer", head + data, f"Inference-Header-Content-Length: {len(head)}")


def exchange(end: socket.socket, message: bytes) -> bool:
    """Send a request and read all of the answer; whether it is one."""
    end.sendall(message)
    found = b""
    while True:
        head, over, body = found.partition(b"\r\n\r\n")
        if over and len(body) >= int(head.lower().split(b"\r\ncontent-length: ")[1].split(b"\r\n")[0]):
            return head.startswith(b"HTTP/1.1 200")
        found += end.recv(1 << 18)


def load(port: int, message: bytes, clients: int, seconds: float) -> list[float]:
    """The latencies of all requests that so many clients make in that time."""
    found: list[float] = []
    end = time.perf_counter() + seconds

    def client() -> None:
        with connected(port) as connection:
            while (start := time.perf_counter()) < end:
                assert exchange(connection, message)
                found.append(time.perf_counter() - start)

    threads = [Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def main(model: Path, seconds: float) -> None:
    program = onert.compile(onert.load(model))
    (info,) = program.inputs
    shape = tuple(d or 1 for d in info.shape)
    data = np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32).tobytes()
    devices = Path(tempfile.gettempdir(), f"onert-bench-devices-{os.getpid()}.toml")
    devices.write_text("[[device]]\nthreads = 1\n" * (os.cpu_count() or 1))
    ports = {"onert_serve": free_port(), "FastAPI and ONNX Runtime": free_port()}
    messages = {"onert_serve": ours(info, data), "FastAPI and ONNX Runtime": posted("/infer", data)}
    port, peer = map(str, ports.values())
    arguments = [f"model={model}", "--http-port", port, "--grpc-port", "-1", "--devices", str(devices), "--copies", "0"]
    with process(OURS, *arguments), process(PEER, str(model), peer, ",".join(map(str, shape))):
        for name in ports:
            with connected(ports[name]) as end:
                while not exchange(end, messages[name]):
                    time.sleep(0.1)
        for clients in CLIENTS:
            rates: dict[str, list[float]] = {name: [] for name in ports}
            tails: dict[str, list[float]] = {name: [] for name in ports}
            for _ in range(ROUNDS):
                for name in ports:
                    taken = load(ports[name], messages[name], clients, seconds)
                    rates[name].append(len(taken) / seconds)
                    tails[name].append(float(np.percentile(taken, 99)))
            for name in ports:
                print(
                    f"{clients:3} clients  {name:26} {median(rates[name]):9.1f} requests a second,"
                    f" p99 {median(tails[name]) * 1e3:8.2f} ms"
                )
            one, other = rates.values()
            print(f"{'':13}{median(a / b for a, b in zip(one, other, strict=True)):.2f} times as many")
    devices.unlink()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, metavar="MODEL.onnx")
    parser.add_argument("seconds", type=float, nargs="?", default=1.0, metavar="SECONDS", help="of a round (1)")
    chosen = parser.parse_args()
    main(chosen.model, chosen.seconds)
