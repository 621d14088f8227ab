"""The inference protocol over HTTP."""

from __future__ import annotations

import gzip
import json
import socket
import zlib
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from patience import PATIENCE

import onert
from onert.host import DeviceConfig, HostManager
from onert.serve import Server
from onert.serve.http.connection import WholeAnswer
from serve.conftest import DIGITS, FREE
from serve.http_requests import IMAGE, INFER, SCORES, X, answer, ask, exchange, request, right

client = pytest.importorskip("tritonclient.http", reason="tritonclient is not installed")


def expected_scores(x: np.ndarray[Any, Any] = X) -> list[int]:
    program = onert.compile(onert.load(DIGITS), num_threads=1)
    (found,) = onert.Execution(program).run([x]).values()
    numbers: list[int] = found.ravel().tolist()
    return numbers


def port(server: Server) -> int:
    assert server.http_port is not None
    return server.http_port


def input_tensor(x: np.ndarray[Any, Any] = X, *, binary: bool = True) -> Any:
    created = client.InferInput(IMAGE, list(x.shape), "INT8")
    created.set_data_from_numpy(x, binary_data=binary)
    return created


@pytest.mark.parametrize("sent", [True, False], ids=["bytes", "json"])
@pytest.mark.parametrize("got", [True, False], ids=["bytes", "json"])
def test_a_triton_client_gets_the_results_of_an_execution(server: Server, sent: bool, got: bool) -> None:
    with client.InferenceServerClient(f"127.0.0.1:{port(server)}") as triton:
        asked = [client.InferRequestedOutput(SCORES, binary_data=got)]
        found = triton.infer("digits", [input_tensor(binary=sent)], outputs=asked, request_id="seven")
        assert found.as_numpy(SCORES).ravel().tolist() == expected_scores()
        response = found.get_response()
        assert (response["id"], response["model_name"], response["model_version"]) == ("seven", "digits", "1")
        output = found.get_output(SCORES)
        assert (output["datatype"], output["shape"], "data" in output) == ("INT8", [1, 10], not got)


@pytest.mark.parametrize("packing", ["gzip", "deflate"])
def test_a_compressed_request_is_decompressed(server: Server, packing: str) -> None:
    with client.InferenceServerClient(f"127.0.0.1:{port(server)}") as triton:
        found = triton.infer("digits", [input_tensor()], request_compression_algorithm=packing)
        assert found.as_numpy(SCORES).ravel().tolist() == expected_scores()


class Transport:
    """A fake transport that records the data of each call."""

    def __init__(self) -> None:
        self.sent: list[tuple[bytes | str, ...]] = []

    def write(self, data: bytes) -> None:
        self.sent.append((data,))

    def writelines(self, data: tuple[bytes, ...]) -> None:
        self.sent.append(data)

    def close(self) -> None:
        self.sent.append(("closed",))

    def is_closing(self) -> bool:
        return ("closed",) in self.sent


HEAD = b"HTTP/1.1 200 OK"


def test_a_triton_client_can_query_status_metadata_and_statistics(server: Server) -> None:
    with client.InferenceServerClient(f"127.0.0.1:{port(server)}") as triton:
        assert triton.is_server_live()
        assert triton.is_server_ready()
        assert triton.is_model_ready("digits")
        assert triton.is_model_ready("digits", "1")
        assert not triton.is_model_ready("digits", "2")
        assert not triton.is_model_ready("other")
        assert triton.get_server_metadata()["name"] == "onert"
        assert triton.get_model_metadata("digits") == {
            "name": "digits",
            "versions": ["1"],
            "platform": "onert",
            "inputs": [{"name": IMAGE, "datatype": "INT8", "shape": [1, 8, 8, 1]}],
            "outputs": [{"name": SCORES, "datatype": "INT8", "shape": [1, 10]}],
        }
        before = triton.get_inference_statistics("digits")["model_stats"][0]["inference_count"]
        triton.infer("digits", [input_tensor()])
        (counted,) = triton.get_inference_statistics("digits")["model_stats"]
        assert counted["inference_count"] == before + 1
        assert counted["inference_stats"]["success"]["ns"] > 0
        assert counted["last_inference"] > 1.7e12
        assert triton.get_inference_statistics()["model_stats"] == [counted]
        (index,) = triton.get_model_repository_index()
        assert index == {"name": "digits", "version": "1", "state": "READY", "reason": ""}


@pytest.mark.parametrize("form", [list, np.ndarray.tolist], ids=["flat", "nested"])
def test_json_data_can_be_flat_or_nested(server: Server, form: Any) -> None:
    data = X.ravel().tolist() if form is list else X.tolist()
    status, found = ask(port(server), "POST", INFER, right(data=data))
    assert (status, found["outputs"][0]["data"]) == (200, expected_scores())
    assert found["outputs"][0]["shape"] == [1, 10]


@pytest.mark.parametrize("size", [1, 7])
def test_a_request_in_chunks_is_accepted(server: Server, size: int) -> None:
    body = json.dumps(right()).encode()
    chunks = [body[i : i + size] for i in range(0, len(body), size)]
    chunked = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)
    head = f"POST {INFER} HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n".encode()
    status, _, found = exchange(port(server), head + chunked + b"0\r\n\r\n")
    assert (status, json.loads(found)["outputs"][0]["data"]) == (200, expected_scores())


def test_several_clients_are_served_concurrently(server: Server) -> None:
    def several(number: int) -> bool:
        x = np.full_like(X, number)
        expected = expected_scores(x)
        with client.InferenceServerClient(f"127.0.0.1:{port(server)}") as triton:
            return all(
                triton.infer("digits", [input_tensor(x)]).as_numpy(SCORES).ravel().tolist() == expected
                for _ in range(20)
            )

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(several, range(4), timeout=PATIENCE))


def test_parameters_control_priority_timeout_and_sequence_of_a_request(server: Server) -> None:
    sent = {**right(), "parameters": {"priority": 1, "timeout": 50_000_000, "sequence_id": 5, "sequence_start": True}}
    assert ask(port(server), "POST", INFER, sent)[0] == 200
    sent["parameters"] = {"sequence_id": 5, "sequence_end": True}
    assert ask(port(server), "POST", INFER, sent)[0] == 200
    late = {**right(), "parameters": {"timeout": 1}}
    status, found = ask(port(server), "POST", INFER, late)
    assert status in (200, 504)
    assert status == 200 or "was not answered within" in found["error"]


def test_metrics_are_exported_for_prometheus(server: Server) -> None:
    assert ask(port(server), "POST", INFER, right())[0] == 200
    status, headers, body = exchange(port(server), request("GET", "/metrics"))
    lines = body.decode().splitlines()
    assert (status, headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    counts = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert int(counts['onert_requests_total{model="digits",outcome="success"}']) > 0
    assert float(counts['onert_request_seconds{model="digits",quantile="0.99"}']) > 0
    assert counts['onert_device_load{device="cpu0"}'] == "0"
    families = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(families) == len(set(families)) > 8


REFUSED: dict[str, tuple[bytes, int, str]] = {
    "no model": (request("POST", "/v2/models/other/infer", b"{}"), 400, "the request has no 'inputs'"),
    "unknown model": (request("GET", "/v2/models/other"), 404, "model 'other' is unknown"),
    "unknown version": (request("GET", "/v2/models/digits/versions/7"), 404, "is '7', expected 1"),
    "no path": (request("GET", "/v3"), 404, "GET /v3: Not Found"),
    "method": (request("GET", INFER), 405, "Method Not Allowed"),
    "host": (request("GET", "/v2", headers={"host": "example.com"}), 403, "this server is not 'example.com'"),
    "origin": (
        request("POST", "/v2/repository/models/digits/unload", headers={"origin": "http://example.com"}),
        403,
        "requests from 'http://example.com' are not accepted",
    ),
    "packing": (request("POST", INFER, b"x", {"content-encoding": "br"}), 415, "expected gzip, deflate or identity"),
    "packed wrongly": (request("POST", INFER, b"wrong", {"content-encoding": "gzip"}), 400, "is not valid gzip data"),
    "packed short": (
        request("POST", INFER, gzip.compress(b"x" * 99)[:-4], {"content-encoding": "gzip"}),
        400,
        "gzip data is truncated or followed by other data",
    ),
    "packed much": (
        request("POST", INFER, zlib.compress(bytes(70 << 20), 1), {"content-encoding": "deflate"}),
        413,
        "expected at most 67108864",
    ),
    "too large": (
        request("POST", INFER, headers={"content-length": str(65 << 20)}),
        413,
        "the body has at least 68157440 bytes",
    ),
    "files": (
        request("POST", "/v2/repository/models/digits/load", b'{"parameters":{"file:1/model":"AAAA"}}'),
        400,
        "'parameters' are not supported",
    ),
    "not loaded": (request("POST", "/v2/repository/models/other/unload"), 400, "model 'other' is not loaded"),
    "not in the repository": (request("POST", "/v2/repository/models/..%2f..%2fetc/load"), 404, "Not Found"),
    "path for a name": (request("POST", "/v2/repository/models/..%5Cx/load"), 404, "there is no model"),
}


@pytest.mark.parametrize(("data", "status", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_bad_requests_are_refused_with_a_reason(server: Server, data: bytes, status: int, message: str) -> None:
    found, _, body = exchange(port(server), data)
    assert (found, message in json.loads(body)["error"]) == (status, True), body
    assert ask(port(server), "GET", "/v2/health/ready") == (200, {"ready": True})


def test_the_server_s_thread_is_lent_longer_to_a_single_client(monkeypatch: pytest.MonkeyPatch) -> None:
    lent: list[float] = []
    with HostManager([DeviceConfig(threads=1)]) as host, Server(host, {"digits": DIGITS}, FREE) as own:
        run = host.run_network

        def recording(name: str, inputs: Any, *, lend: float, **more: Any) -> Any:
            lent.append(lend)
            return run(name, inputs, lend=lend, **more)

        monkeypatch.setattr(host, "run_network", recording)
        with socket.create_connection(("127.0.0.1", port(own)), PATIENCE) as first:
            first.sendall(request("POST", INFER, json.dumps(right()).encode()))
            assert answer(first)[0] == 200
            assert ask(port(own), "POST", INFER, right())[0] == 200
    assert len(lent) == 2
    assert lent[0] > lent[1] > 0


WRITES = {
    "head and body": ([HEAD, b"body"], [(HEAD, b"body")]),
    "a word before": ([b"100", HEAD, b"body"], [(b"100",), (HEAD, b"body")]),
    "a body in pieces": ([HEAD, b"one", b"two"], [(HEAD, b"one"), (b"two",)]),
    "an empty body": ([HEAD, b""], [(HEAD, b"")]),
    "a head without a body": ([HEAD], [(HEAD,)]),
}


@pytest.mark.parametrize("case", WRITES)
def test_a_response_s_head_is_sent_together_with_its_body(case: str) -> None:
    written, sent = WRITES[case]
    transport = Transport()
    cycle = SimpleNamespace(transport=transport, response_started=False)
    answer = WholeAnswer(cycle)
    for data in written:
        cycle.response_started |= data is HEAD
        answer.write(data)
    assert not answer.is_closing()
    answer.close()
    assert transport.sent == [*sent, ("closed",)]
    assert answer.is_closing()
