"""`onert_serve` against a plain FastAPI server over ONNX Runtime: throughput and latency of ONNX models.

    pip install fastapi
    python tests/bench/serving.py MODEL.onnx[:SHAPE] ... [--seconds 0.5] [--rounds 7] [--clients 1,2,4,8,16]

Both are separate processes with the same HTTP server (uvicorn, httptools, uvloop), exchange inputs and outputs as raw
bytes, and run the model on all processors with one thread per request. The same clients call both alternately over
persistent connections; one thread drives all clients. SHAPE is the input's shape, such as 1,3,48,192; without it
unknown dimensions are 1.

For each number of clients, prints requests per second, the 99th percentile of the latencies, the server's processor
time per request, the clients' processor utilisation, and the ratio of requests per second. Below, for each p99 of the
other server, the highest rate that onert_serve reaches with a p99 at most as long, relative to the other's rate.
Finally the table of docs/serving.md, and the smallest and largest of these ratios for each model.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import numpy as np
from attrs import frozen

import onert

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
def process(*command: str) -> Iterator[int]:
    """Start a process, yield its id, and terminate it afterwards."""
    made = subprocess.Popen([sys.executable, "-c", *command], stdout=subprocess.DEVNULL)
    try:
        yield made.pid
    finally:
        made.terminate()
        made.wait()


def connected(port: int) -> socket.socket:
    """A connection to a port, once a server listens there."""
    for _ in range(600):
        try:
            end = socket.create_connection(("127.0.0.1", port))
        except OSError:
            time.sleep(0.1)
            continue
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return end
    sys.exit(f"no server listens on port {port}")


def await_ready(port: int) -> None:
    """Wait until onert_serve has loaded its model."""
    ready = b""
    while not ready.startswith(b"HTTP/1.1 200"):
        with connected(port) as end:
            end.sendall(b"GET /v2/health/ready HTTP/1.1\r\nHost: localhost\r\n\r\n")
            ready = end.recv(1 << 16)
        time.sleep(0.05)


def posted(path: str, body: bytes, *headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def ours(name: str, shape: Sequence[int], data: bytes) -> bytes:
    """A request to onert_serve with binary data in both directions."""
    given = {"name": name, "shape": shape, "datatype": "FP32", "parameters": {"binary_data_size": len(data)}}
    head = json.dumps({"inputs": [given], "parameters": {"binary_data_output": True}}).encode()
    return posted("/v2/models/model/infer", head + data, f"Inference-Header-Content-Length: {len(head)}")


class Client:
    """A connection with one outstanding request."""

    def __init__(self, port: int, message: bytes) -> None:
        self.end = connected(port)
        self._message = message
        self._found = b""
        self.begun = 0.0

    def send(self) -> None:
        self.begun = time.perf_counter()
        self.end.sendall(self._message)

    def is_answered(self) -> bool:
        """Read the available bytes; return whether the response is complete."""
        found = self.end.recv(1 << 18)
        if not found:
            sys.exit("the server closed a connection")
        found = self._found + found if self._found else found
        head = found.find(b"\r\n\r\n")
        if head >= 0:
            start = found.lower().find(b"\r\ncontent-length: ", 0, head + 2) + 18
            if len(found) - head - 4 >= int(found[start : found.index(b"\r", start)]):
                if not found.startswith(b"HTTP/1.1 200"):
                    sys.exit(f"the server answered {found[:500]!r}")
                self._found = b""
                return True
        self._found = found
        return False


def load(port: int, message: bytes, clients: int, seconds: float) -> tuple[list[float], float]:
    """The latencies of all requests that `clients` make in `seconds`, and the clients' processor utilisation."""
    taken: list[float] = []
    poll = select.epoll()
    by_number = {}
    for _ in range(clients):
        client = Client(port, message)
        by_number[client.end.fileno()] = client
        poll.register(client.end, select.EPOLLIN)
    begun, used = time.perf_counter(), time.process_time()
    over = begun + seconds
    for client in by_number.values():
        client.send()
    under_way = clients
    while under_way:
        for number, _ in poll.poll():
            client = by_number[number]
            if client.is_answered():
                now = time.perf_counter()
                taken.append(now - client.begun)
                if now < over:
                    client.send()
                else:
                    under_way -= 1
    share = (time.process_time() - used) / (time.perf_counter() - begun)
    poll.close()
    for client in by_number.values():
        client.end.close()
    return taken, share


def processor_time(pid: int) -> float:
    """The processor time in seconds of all threads of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@frozen
class Side:
    """One of the servers."""

    name: str
    pid: int
    port: int
    message: bytes


@frozen
class Point:
    """A server's measurements with a given number of clients."""

    rate: float
    p99: float
    used: float
    """The server's processor time per request in microseconds."""
    share: float
    """The clients' processor utilisation."""


def point(side: Side, clients: int, seconds: float) -> Point:
    before = processor_time(side.pid)
    taken, share = load(side.port, side.message, clients, seconds)
    used = (processor_time(side.pid) - before) / len(taken) * 1e6
    return Point(len(taken) / seconds, float(np.percentile(taken, 99)), used, share)


def main(model: Path, shape: Sequence[int] | None, chosen: argparse.Namespace) -> tuple[list[str], str]:
    """Measure a model. Returns its rows of the table, and the ratios at equal p99 as text."""
    program = onert.compile(onert.load(model))
    (info,) = program.inputs
    shape = shape or [d or 1 for d in info.open_shape]
    data = np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32).tobytes()
    devices = Path(tempfile.gettempdir(), f"onert-bench-devices-{os.getpid()}.toml")
    devices.write_text("[[device]]\nthreads = 1\n" * (os.cpu_count() or 1))
    one, other = free_port(), free_port()
    arguments = [f"model={model}", "--http-port", str(one), "--grpc-port", "-1"]
    arguments += ["--devices", str(devices), "--copies", "0"]
    given = [str(model), str(other), ",".join(map(str, shape))]
    with process(OURS, *arguments) as first, process(PEER, *given) as second:
        sides = (
            Side("onert_serve", first, one, ours(info.name, shape, data)),
            Side("FastAPI and ONNX Runtime", second, other, posted("/infer", data)),
        )
        print(f"{model.name}, {len(data)} bytes a request")
        await_ready(one)
        for side in sides:
            point(side, 2, 0.5)
        found = [measured(sides, clients, chosen) for clients in map(int, chosen.clients.split(","))]
    devices.unlink()
    name = model.stem.rpartition("__")[2]
    ratios = compared(found)
    title = f"{name}, {len(data) / 1000:.0f} KB"
    return rows(title, found), f"{name} {min(ratios):.1f} to {max(ratios):.1f}"


@frozen
class Row:
    """Both servers with the same number of clients, and the median ratio of their requests per second."""

    clients: int
    mine: Point
    theirs: Point
    ratio: float


def rows(title: str, found: Sequence[Row]) -> list[str]:
    """Rows of the table in docs/serving.md."""
    return [
        f"| {title + ' ' if at == 0 else ''}| {row.clients} | {row.mine.rate:,.0f} | {row.mine.p99 * 1e3:.1f} "
        f"| {row.theirs.rate:,.0f} | {row.theirs.p99 * 1e3:.1f} | {row.ratio:.2f} "
        f"| {row.mine.used:,.0f} and {row.theirs.used:,.0f} |"
        for at, row in enumerate(found)
    ]


def measured(sides: Sequence[Side], clients: int, chosen: argparse.Namespace) -> Row:
    """Print and return the medians of each server's rounds."""
    rounds = [[point(side, clients, chosen.seconds) for side in sides] for _ in range(chosen.rounds)]
    found = []
    for at, side in enumerate(sides):
        numbers = [[getattr(r[at], name) for r in rounds] for name in ("rate", "p99", "used", "share")]
        mine = Point(*map(median, numbers))
        found.append(mine)
        print(
            f"{clients:3} clients  {side.name:26} {mine.rate:9.1f} requests a second, p99 {mine.p99 * 1e3:8.2f} ms,"
            f" {mine.used:7.1f} us of processors a request, clients {mine.share:4.0%} busy"
        )
    ratio = median(r[0].rate / r[1].rate for r in rounds)
    print(f"{'':13}{ratio:.2f} times as many", flush=True)
    return Row(clients, *found, ratio)


def compared(found: Sequence[Row]) -> list[float]:
    """Print and return the ratios of requests per second at equal p99."""
    ratios = []
    for row in found:
        theirs = row.theirs
        most = max((each.mine.rate for each in found if each.mine.p99 <= theirs.p99), default=0.0)
        ratios.append(most / theirs.rate)
        print(
            f"p99 of {theirs.p99 * 1e3:.2f} ms ({row.clients} clients of the other server): {most:.1f} requests a"
            f" second over {theirs.rate:.1f}, {ratios[-1]:.2f} times as many",
            flush=True,
        )
    return ratios


def asked(text: str) -> tuple[Path, list[int] | None]:
    """A model, and the shape of its input if it is given."""
    place, _, shape = text.partition(":")
    return Path(place), [int(each) for each in shape.split(",")] if shape else None


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=asked, nargs="+", metavar="MODEL.onnx[:SHAPE]")
    parser.add_argument("--seconds", type=float, default=0.5, help="per round (default 0.5)")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--clients", default="1,2,4,8,16")
    arguments = parser.parse_args()
    done = [main(model, shape, arguments) for model, shape in arguments.models]
    titles = (
        "model | clients | onert_serve requests/s | p99 ms | FastAPI requests/s | p99 ms | ratio | CPU us per request"
    )
    print(f"\n| {titles} |\n|---{'|---:' * titles.count('|')}|")
    for lines, _ in done:
        print(*lines, sep="\n")
    print("\ntimes as many at the same p99:", ", ".join(ratios for _, ratios in done))
