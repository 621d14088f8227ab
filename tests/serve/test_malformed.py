"""A thousand malformed requests: each is answered with a reason, and the server is unaffected."""

from __future__ import annotations

import copy
import gc
import json
import random
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from patience import PATIENCE
from resident import current

from onert.host import DeviceConfig, HostManager
from onert.serve import ServeConfig, Server
from serve.conftest import DIGITS
from serve.http_requests import IMAGE, INFER, answer, ask, exchange, request, right

LENGTH = "Inference-Header-Content-Length"
LIMITS = ServeConfig(
    http_port=0,
    grpc_port=None,
    max_body=1 << 20,
    max_json=1 << 18,
    max_header=1 << 13,
)
HASTY = evolve(LIMITS, header_timeout=0.2, body_timeout=0.2)
Make = Callable[[random.Random], bytes]


@pytest.fixture(scope="module")
def small() -> Iterator[Server]:
    """A server with small limits on sizes."""
    with HostManager([DeviceConfig(threads=1)]) as host, Server(host, {"digits": Path(DIGITS)}, LIMITS) as running:
        yield running


@pytest.fixture(scope="module")
def hasty() -> Iterator[Server]:
    """A server with short timeouts."""
    with HostManager([DeviceConfig(threads=1)]) as host, Server(host, {"digits": Path(DIGITS)}, HASTY) as running:
        yield running


VALUES: list[Any] = [None, True, -1, 1.5, 10**30, "", "x", [], {}, [[]], [None], {"a": 1}, ["x"] * 64]


def body(document: Any) -> bytes:
    return request("POST", INFER, json.dumps(document).encode())


def cut(rng: random.Random) -> bytes:
    whole = json.dumps(right()).encode()
    return request("POST", INFER, whole[: rng.randrange(len(whole))])


def noise(rng: random.Random) -> bytes:
    return request("POST", INFER, rng.randbytes(rng.randrange(1, 300)))


def nested(rng: random.Random) -> bytes:
    return request("POST", INFER, b"[" * rng.randrange(1, 200_000))


def wrong_field(rng: random.Random) -> bytes:
    """A field with a value of the wrong type."""
    document = right()
    field = rng.choice(["name", "shape", "datatype", "data"])
    document["inputs"][0][field] = rng.choice([v for v in VALUES if v != [] or field != "shape"])
    return body(document)


def wrong_shape(rng: random.Random) -> bytes:
    shape = rng.choice([[64], [1, 8, 8], [1, 8, 8, 2], [8, 1, 8, 1], [-1, 8, 8, 1], [2**40, 2**40], [1] * 40, [1.0]])
    return body(right(shape=shape))


def wrong_elements(rng: random.Random) -> bytes:
    data: list[Any] = right()["inputs"][0]["data"]
    data[rng.randrange(64)] = rng.choice([None, 128, -129, 1.5, 10**30, "x", [1, 2], {}, float("nan"), float("inf")])
    return body(right(data=data))


def wrong_count(rng: random.Random) -> bytes:
    return body(right(data=[0] * rng.choice([0, 1, 63, 65, 1000, 60_000])))


def wrong_request(rng: random.Random) -> bytes:
    """A wrong or surplus field of the request itself."""
    document = copy.deepcopy(right())
    name, value = rng.choice(
        [
            ("id", 7),
            ("inputs", []),
            ("inputs", 3),
            ("inputs", [3]),
            ("inputs", right()["inputs"] * 2),
            ("inputs", right()["inputs"] * 2000),
            ("outputs", {}),
            ("outputs", [{"name": "other"}]),
            ("outputs", [{"name": 3}]),
            ("outputs", [{"name": IMAGE, "parameters": {"classification": 3}}]),
            ("parameters", []),
            ("parameters", {"priority": "high"}),
            ("parameters", {"priority": 10**20}),
            ("parameters", {"timeout": -1}),
            ("parameters", {"sequence_id": 1.5}),
            ("parameters", {"binary_data_output": 1}),
            ("parameters", {"x": []}),
            ("surprise", 1),
        ]
    )
    document[name] = value
    return body(document)


def wrong_bytes(rng: random.Random) -> bytes:
    """Too few, too many or no bytes after the JSON."""
    size = rng.choice([-1, 0, 63, 64, 65, 10**18, 1.5, "64", True])
    sent_size = rng.choice([0, 63, 65] if size == 64 else [0, 63, 64, 65])
    document = {"inputs": [{"name": IMAGE, "shape": [1, 8, 8, 1], "datatype": "INT8"}]}
    document["inputs"][0]["parameters"] = {"binary_data_size": size}  # type: ignore[assignment]
    head = json.dumps(document).encode()
    return request("POST", INFER, head + bytes(sent_size), {LENGTH: str(len(head))})


def wrong_length(rng: random.Random) -> bytes:
    value = rng.choice(["0", "-1", "9999999", "x", "1.5", "9" * 30, " ", "1_0", "0x10", "٣"])
    return request("POST", INFER, json.dumps(right()).encode(), {LENGTH: value.encode().decode("latin-1")})


def wrong_content_length(rng: random.Random) -> bytes:
    value = rng.choice(["-1", "x", "1e3", "9" * 30, str(1 << 21), "1, 2", "+3"])
    return f"POST {INFER} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {value}\r\n\r\n".encode()


def too_large(rng: random.Random) -> bytes:
    """More JSON or bytes than the server accepts, possibly in chunks."""
    many = b" " * rng.choice([LIMITS.max_json + 1, LIMITS.max_body + 1])
    if rng.random() < 0.5:
        return request("POST", INFER, many)
    head = f"POST {INFER} HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n".encode()
    return head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(many), many)


def large_headers(rng: random.Random) -> bytes:
    count = rng.choice([10, 100, 1000])
    return request("GET", "/v2", headers={f"x-{at}": "y" * (20_000 // count) for at in range(count)})


def no_http(rng: random.Random) -> bytes:
    return rng.choice(
        [
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
            b"GET\r\n\r\n",
            b"GET / HTTP/9.9\r\n\r\n",
            b"GET  HTTP/1.1\r\n\r\n",
            b"BREW /pot HTTP/1.1\r\nhost: localhost\r\n\r\n",
            b"GET / HTTP/1.1\r\nhost localhost\r\n\r\n",
            b"GET / HTTP/1.1\r\nho st: localhost\r\n\r\n",
            b"POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
            b"POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: x\r\ncontent-length: 3\r\n\r\nabc",
            b"CONNECT localhost:80 HTTP/1.1\r\nhost: localhost\r\n\r\n",
            rng.randbytes(100) + b"\r\n\r\n",
        ]
    )


def wrong_path(rng: random.Random) -> bytes:
    path = rng.choice(
        [
            "/v2/models//infer",
            "/v2/models/../infer",
            "/v2/models/%2e%2e/infer",
            "/v2/models/%00/infer",
            "/v2/models/digits/versions/2/infer",
            "/v2/models/" + "x" * 5000 + "/infer",
            "/etc/passwd",
            "/page.py",
            "/page/../server.py",
        ]
    )
    return request("POST", path, json.dumps(right()).encode())


KINDS: list[Make] = [
    cut,
    noise,
    nested,
    wrong_field,
    wrong_shape,
    wrong_elements,
    wrong_count,
    wrong_request,
    wrong_bytes,
    wrong_length,
    wrong_content_length,
    too_large,
    large_headers,
    no_http,
    wrong_path,
]


def not_refused(port: int, rng: random.Random, count: int) -> list[tuple[str, int, bytes]]:
    """The malformed requests that were not answered with 4xx and a reason."""
    found = []
    for number in range(count):
        make = KINDS[number % len(KINDS)]
        status, _, body = exchange(port, make(rng))
        if not (400 <= status < 500 and json.loads(body)["error"]):
            found.append((make.__name__, status, body))
    return found


def test_a_thousand_malformed_requests_are_refused_and_leak_nothing(small: Server) -> None:
    port = small.http_port
    assert port is not None
    rng = random.Random(0)
    gc.collect()  # what other tests left behind must not be finalised in the middle of deeply nested requests
    assert not_refused(port, rng, 300) == []
    before = current()
    assert not_refused(port, rng, 1000) == []
    assert current() - before < 16 << 20
    status, found = ask(port, "POST", INFER, right())
    assert (status, len(found["outputs"][0]["data"])) == (200, 10)
    assert small.service.under_way == 0


SLOW = {
    "nothing": b"",
    "half a line": b"GET /v2",
    "half of the headers": b"GET /v2 HTTP/1.1\r\nhost: localhost\r\nx-",
    "no body": b"POST /v2/models/digits/infer HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n",
    "half a body": b"POST /v2/models/digits/infer HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{",
    "half a chunk": b"POST /v2/models/digits/infer HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nff\r\n{",
}


@pytest.mark.parametrize("sent", SLOW.values(), ids=SLOW.keys())
def test_slow_senders_get_a_timeout_response_and_are_disconnected(hasty: Server, sent: bytes) -> None:
    ends = [socket.create_connection(("127.0.0.1", hasty.http_port), PATIENCE) for _ in range(20)]
    for end in ends:
        end.sendall(sent)
    for end in ends:
        status, _, found = answer(end)
        assert (status, "did not arrive within 0.2 seconds" in json.loads(found)["error"]) == (408, True)
        assert end.recv(1) == b""
        end.close()
    while (status := ask(hasty.http_port or 0, "GET", "/v2/health/ready")[0]) == 408:
        continue  # on a busy machine this request may itself be too slow
    assert status == 200


def test_an_unfinished_body_is_refused_as_soon_as_it_is_too_large(small: Server) -> None:
    head = f"POST {INFER} HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n".encode()
    size = LIMITS.max_body + 1
    status, _, found = exchange(small.http_port or 0, head + b"%x\r\n" % size + bytes(size))
    assert (status, "the body has" in json.loads(found)["error"]) == (413, True)


def test_clients_that_disconnect_early_are_harmless(small: Server) -> None:
    whole = body(right())
    for length in range(0, len(whole), 29):
        with socket.create_connection(("127.0.0.1", small.http_port), PATIENCE) as end:
            end.sendall(whole[:length])
    assert ask(small.http_port or 0, "POST", INFER, right())[0] == 200


def test_the_number_of_connections_is_limited() -> None:
    limits = ServeConfig(http_port=0, grpc_port=None, max_connections=4)
    with HostManager([DeviceConfig(threads=1)]) as host, Server(host, {}, limits) as server:
        ends = [socket.create_connection(("127.0.0.1", server.http_port), PATIENCE) for _ in range(4)]
        for end in ends:
            end.sendall(request("GET", "/v2"))
            assert answer(end)[0] == 200
        with socket.create_connection(("127.0.0.1", server.http_port), PATIENCE) as end:
            status, _, found = answer(end)
        assert (status, json.loads(found)) == (503, {"error": "4 connections are open"})
        for end in ends:
            end.close()
        with socket.create_connection(("127.0.0.1", server.http_port), PATIENCE) as end:
            end.sendall(request("GET", "/v2"))
            assert answer(end)[0] in (200, 503)


def test_the_bytes_of_requests_in_progress_are_limited() -> None:
    limits = ServeConfig(http_port=0, grpc_port=None, max_buffered=1000)
    with HostManager([DeviceConfig(threads=1)]) as host, Server(host, {"digits": Path(DIGITS)}, limits) as server:
        unfinished = socket.create_connection(("127.0.0.1", server.http_port), PATIENCE)
        with unfinished:
            unfinished.sendall(request("POST", INFER, headers={"content-length": "900"}) + b"{")
            assert ask(server.http_port or 0, "GET", "/v2")[0] == 200
            status, _, found = exchange(server.http_port or 0, body(right()))
            assert (status, "those in progress have 900" in json.loads(found)["error"]) == (503, True)
            unfinished.sendall(b"}" + b" " * 898)
            assert answer(unfinished)[0] == 400
        assert ask(server.http_port or 0, "POST", INFER, right())[0] == 200
