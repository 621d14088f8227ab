"""What the host costs, and how accurate its simulation is.

        python tests/bench/host.py costs             # a request against a bare execution, and HTTP against a request
        python tests/bench/host.py devices MODEL     # two devices against one: two replicas, and two parts
        python tests/bench/host.py batches MODEL ... # batched requests against single ones, at equal p99
        python tests/bench/host.py simulation MODEL  # two devices and a stream of requests, measured and simulated

Alternatives run alternately in short rounds. Printed are the medians over the rounds of the times and of their ratios.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from statistics import median
from threading import Thread
from typing import Any

import numpy as np

import onert
from onert.host import BatchConfig, DeviceConfig, HostManager
from onert.host.partitioner.costs import numbers
from onert.host.placement import with_open_batch
from onert.host.simulation import Station, Stream, Workload, simulate
from onert.host.simulation.calibration import FREE, Measurements, calibrate
from onert.host.simulation.observed import observe
from onert.ir import Array
from onert.serve import ServeConfig, Server

DIGITS = Path(__file__).resolve().parent.parent.parent / "nnpackage" / "examples" / "digits_int8"
ROUNDS = 30
SECONDS = 0.2
"""Seconds per round of randomly arriving requests."""
PIECES, PIECE = 21, 0.8
"""The number of rounds of a simulated stream, and the seconds per round."""
SHARES = (0.3, 0.5, 0.7, 0.85)
"""The load of the simulated streams, relative to the capacity of the devices."""
REQUESTS = 40
"""Requests per round of the comparison of devices."""
BOUNDS = (0.002, 0.005, 0.01, 0.02, 0.05)
"""Upper bounds on the p99, in seconds."""
MISSES = 3
BATCH = 256
SLOWEST = 8000.0
"""Requests per second."""
PAUSE = 0.0002
"""The shortest sleep in seconds of the request source; requests due by then are sent together."""


def each(call: Callable[[], object], runs: int) -> float:
    """The median time of a run in microseconds."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return median(times) * 1e6


def costs() -> None:
    """`Execution.run`, `run_network_blocking`, `run_network`, and HTTP with binary data on a persistent connection."""
    package = onert.load(DIGITS)
    execution = onert.Execution(onert.compile(package, num_threads=1))
    image = np.zeros((1, 8, 8, 1), np.int8)
    with HostManager([DeviceConfig(threads=1)]) as host:
        config = ServeConfig(http_port=0, grpc_port=None)
        with Server(host, {"digits": DIGITS}, config) as server, connected(server) as end:
            message = infer(image)
            ways: dict[str, Callable[[], object]] = {
                "Execution.run": lambda: execution.run([image]),
                "run_network_blocking": lambda: host.run_network_blocking("digits", [image]),
                "run_network": lambda: host.run_network("digits", [image]).result(),
                "HTTP": lambda: exchange(end, message),
            }
            found: dict[str, list[float]] = {name: [] for name in ways}
            for _ in range(ROUNDS):
                for name, way in ways.items():
                    found[name].append(each(way, 200))
    for name, times in found.items():
        more = median(a - b for a, b in zip(times, found["Execution.run"], strict=True))
        print(f"{name:24} {median(times):8.1f} us  {more:+8.1f} over Execution.run")
    more = median(a - b for a, b in zip(found["HTTP"], found["run_network_blocking"], strict=True))
    print(f"HTTP over run_network_blocking: {more:+.1f} us")


def connected(server: Server) -> socket.socket:
    end = socket.create_connection(("127.0.0.1", server.http_port))
    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return end


def infer(image: Array) -> bytes:
    """An inference request with binary data in both directions."""
    given = {"name": "serving_default_image:0", "shape": image.shape, "datatype": "INT8"}
    given["parameters"] = {"binary_data_size": image.nbytes}
    head = json.dumps({"inputs": [given], "parameters": {"binary_data_output": True}}).encode()
    lines = [
        "POST /v2/models/digits/infer HTTP/1.1",
        "Host: localhost",
        f"Inference-Header-Content-Length: {len(head)}",
        f"Content-Length: {len(head) + image.nbytes}",
    ]
    return "\r\n".join([*lines, "", ""]).encode() + head + image.tobytes()


def exchange(end: socket.socket, message: bytes) -> bytes:
    """Send a request and return the complete response body."""
    end.sendall(message)
    found = end.recv(1 << 16)
    while True:
        head, found_end, body = found.partition(b"\r\n\r\n")
        if found_end:
            length = int(head.lower().split(b"\r\ncontent-length: ")[1].split(b"\r\n")[0])
            if len(body) >= length:
                assert head.startswith(b"HTTP/1.1 200"), found
                return body
        found += end.recv(1 << 16)


def inputs_of(program: onert.Program) -> list[Array]:
    rng = np.random.default_rng(0)
    made = []
    for info in program.inputs:
        shape = tuple(d or 1 for d in info.shape)
        kind = info.dtype.numpy
        made.append(rng.uniform(-1, 1, shape).astype(kind) if kind.kind == "f" else np.zeros(shape, kind))
    return made


def throughput(host: HostManager, name: str, inputs: Sequence[Array], requests: int) -> float:
    """Requests per second when all are submitted at once."""
    start = time.perf_counter()
    futures = [host.run_network(name, inputs) for _ in range(requests)]
    for future in futures:
        future.result()
    return requests / (time.perf_counter() - start)


def devices(model: Path) -> None:
    """Replicas and a pipeline on two one-thread devices against one; also two threads against one, without a host."""
    package = onert.load(model)
    program = onert.compile(package, num_threads=1)
    inputs = inputs_of(program)
    executions = [onert.Execution(program) for _ in range(2)]
    ways: dict[str, Callable[[], float]] = {
        "one thread": lambda: bare(executions[:1], inputs, REQUESTS),
        "two threads": lambda: bare(executions, inputs, REQUESTS),
    }
    with HostManager([DeviceConfig(threads=1, cores=(at,)) for at in range(2)], FREE) as host:
        host.add_network("one", package)
        host.add_network("replicas", package, copies=2)
        host.add_network("pipeline", package, parts=2, profile=True)
        for name in ("one", "replicas", "pipeline"):
            ways[f"{name} on the host"] = partial(throughput, host, name, inputs, REQUESTS)
        found = compare(ways)
    most = ratio(found["two threads"], found["one thread"])
    for name in ("replicas", "pipeline"):
        mine = ratio(found[f"{name} on the host"], found["one on the host"])
        print(f"{name}: {mine:.2f} times one device, {mine / most:.0%} of what two threads make of one")


def bare(executions: Sequence[onert.Execution], inputs: Sequence[Array], requests: int) -> float:
    """Runs per second of executions on one thread each, each bound to a processor."""

    def work(at: int) -> None:
        os.sched_setaffinity(0, (at,))
        for _ in range(requests // len(executions)):
            executions[at].run(inputs)

    threads = [Thread(target=work, args=[at]) for at in range(len(executions))]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return requests / (time.perf_counter() - start)


def batches(*models: Path) -> None:
    """Batched requests on one device against single ones.

    For each request rate (arrivals are random and independent of the responses), prints both p99s; then, for several
    bounds, the highest rate at which each keeps its p99 within the bound (`most_within`). First prints the time of a
    run alone and its share of a run of the largest batch: batching can save at most their difference plus the host's
    cost of a run.
    """
    for model in models:
        package = onert.load(model)
        program = onert.compile(package, num_threads=1)
        inputs = inputs_of(program)
        with HostManager([DeviceConfig(threads=1)], FREE) as host:
            host.add_network("one by one", package)
            dag = host.add_network("together", package, batch=BatchConfig(max_size=BATCH))
            print(model.name, *dag.notes)
            wider = {at: (BATCH * len(array), *array.shape[1:]) for at, array in enumerate(inputs)}
            together = onert.compile(with_open_batch(package), num_threads=1, input_shapes=wider)
            alone, many = kernel(program), kernel(together) / BATCH
            print(
                f"a run takes {alone:.1f} us, of a batch of {BATCH} {many:.1f} us a request: {alone / many:.1f} times"
            )
            found: dict[str, list[tuple[float, float]]] = {"one by one": [], "together": []}
            for name in found:
                throughput(host, name, inputs, 200)
            gc.collect()
            gc.freeze()  # scanning every imported object takes longer than a thousand runs
            rate = SLOWEST
            while going := [name for name, points in found.items() if not _is_over(points)]:
                rounds = [{name: opened(host, name, inputs, rate) for name in going} for _ in range(5)]
                for name in going:
                    real, p50, p99 = (median(each[name][at] for each in rounds) for at in range(3))
                    found[name].append((real, p99))
                    print(
                        f"{rate:8.0f} wanted  {name:12} {real:9.1f} requests a second, "
                        f"p50 {p50 * 1e3:8.3f}, p99 {p99 * 1e3:8.3f} ms",
                        flush=True,
                    )
                rate *= 1.25
        for bound in BOUNDS:
            one, other = (most_within(points, bound) for points in found.values())
            if one > 0:
                print(f"p99 within {bound * 1e3:g} ms: {other:.1f} over {one:.1f}, {other / one:.2f} times as many")


def kernel(program: onert.Program) -> float:
    """The microseconds of a run whose inputs are already set."""
    execution = onert.Execution(program)
    for at, array in enumerate(inputs_of(program)):
        execution.set_input(at, array)
    return each(execution.execute, 200)


def most_within(points: Sequence[tuple[float, float]], bound: float) -> float:
    """The highest request rate whose p99 is within a bound, from points of (rate, p99); 0 if there is none.

    Each p99 is replaced by the median of itself and its neighbours, to be robust against noise from other work on the
    machine. Between two rates the logarithm of the p99 is interpolated linearly.
    """
    kept = [median(p99 for _, p99 in points[max(0, at - 1) : at + 2]) for at in range(len(points))]
    last = max((at for at, p99 in enumerate(kept) if p99 <= bound), default=None)
    if last is None:
        return 0.0
    rate = points[last][0]
    if last + 1 == len(points):
        return rate
    share = math.log(bound / kept[last]) / math.log(kept[last + 1] / kept[last])
    return rate + share * (points[last + 1][0] - rate)


def _is_over(points: Sequence[tuple[float, float]]) -> bool:
    """Whether the longest bound was missed for `MISSES` rates in a row, which is unlikely to be chance."""
    return len(points) >= MISSES and all(p99 > max(BOUNDS) for _, p99 in points[-MISSES:])


def opened(host: HostManager, name: str, inputs: Sequence[Array], rate: float) -> tuple[float, float, float]:
    """The response rate at random arrival times, and the p50 and p99 of the time from scheduled arrival to response."""
    due = np.cumsum(np.random.default_rng(2).exponential(1 / rate, max(100, round(rate * SECONDS))))
    end = np.zeros(due.size)
    sent = 0
    begun = time.perf_counter() + 0.01

    def done(at: int, _: Future[Any]) -> None:
        end[at] = time.perf_counter() - begun

    times = due.tolist()
    while sent < due.size:
        left = begun + times[sent] - time.perf_counter()
        if left > 0:
            time.sleep(max(left, PAUSE))
            continue
        future = host.run_network(name, inputs)
        future.add_done_callback(partial(done, sent))
        sent += 1
    while not end.all():
        time.sleep(PAUSE)
    p50, p99 = np.percentile(end - due, [50, 99])
    return due.size / float(end.max()), float(p50), float(p99)


def compare(ways: Mapping[str, Callable[[], float]]) -> dict[str, list[float]]:
    """Measure the rates of alternatives by round; print them relative to the first, with processor time per request."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    used: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS // 2):
        for name, way in ways.items():
            before = time.process_time()
            found[name].append(way())
            used[name].append((time.process_time() - before) / REQUESTS * 1e3)
    first = next(iter(found.values()))
    for name, rates in found.items():
        print(
            f"{name:22} {median(rates):10.1f} requests a second, {ratio(rates, first):.2f} times as many, "
            f"{median(used[name]):8.3f} ms of processors a request"
        )
    return found


def ratio(rates: Sequence[float], others: Sequence[float]) -> float:
    """The median over the rounds of the ratio of two rates."""
    return median(a / b for a, b in zip(rates, others, strict=True))


def simulation(model: Path) -> None:
    """The latencies of a Poisson stream at several loads on two devices, measured and simulated.

    Service times are measured with another stream, as `onert_host measure` does. The two alternate, so that both see
    the machine in the same state; the median over the rounds is printed.
    """
    package = onert.load(model)
    with HostManager([DeviceConfig(threads=1) for _ in range(2)], FREE) as host:
        dag = host.add_network("n", package, copies=2)
        inputs = [numbers(info, np.random.default_rng(0)) for info, _ in dag.inputs]
        throughput(host, "n", inputs, 100)
        most = median(throughput(host, "n", inputs, 200) for _ in range(5))
        print(f"two devices answer {most:.1f} requests a second")
        gc.collect()
        gc.freeze()
        for share in SHARES:
            rounds = []
            for each in range(PIECES):
                kept = calibrate(host, "n", PIECE, each + PIECES)
                stream = Stream(most * share, round(most * share * PIECE), seed=each)
                seen = observe(host, "n", inputs, stream.arrivals())
                rounds.append((summary(seen.latencies), simulated(seen.came, kept)))
            shown(f"at {share:.0%} of the most, {PIECES} rounds of {PIECE:g} s", rounds)


def simulated(came: Array, kept: Measurements) -> tuple[float, ...]:
    """The simulated latencies on two devices, with the measured service times."""
    station = Station("n", (0, 1), {1: kept.seconds["n"]}, transfers=(kept.after,), idle=kept.idle["n"])
    (found,) = simulate([Workload("n", (station,), came)], FREE)
    return found.latency_mean, found.latency_p50, found.latency_p90, found.latency_p99


def summary(seconds: Array) -> tuple[float, ...]:
    """The mean, p50, p90 and p99."""
    return (float(seconds.mean()), *np.percentile(seconds, [50, 90, 99]).tolist())


def shown(title: str, rounds: Sequence[tuple[Sequence[float], Sequence[float]]]) -> None:
    """Print a table of the measured and the simulated latencies."""
    print(f"{title}:")
    for at, name in enumerate(("mean", "p50", "p90", "p99")):
        real, would = ([each[side][at] * 1e3 for each in rounds] for side in (0, 1))
        print(
            f"  {name:5} measured {median(real):9.3f} ms  simulated {median(would):9.3f} ms "
            f"{ratio(would, real) - 1:+7.1%}"
        )
    sys.stdout.flush()


WAYS: dict[str, Callable[..., None]] = {
    "costs": costs,
    "devices": devices,
    "batches": batches,
    "simulation": simulation,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("way", choices=WAYS, help="what is measured")
    parser.add_argument("models", type=Path, nargs="*", metavar="MODEL")
    chosen = parser.parse_args()
    WAYS[chosen.way](*chosen.models)
