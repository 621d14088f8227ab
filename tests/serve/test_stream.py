"""Streaming inference over gRPC, and model configurations as clients see them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from queue import SimpleQueue
from shutil import copytree
from threading import Event, Thread
from time import monotonic
from typing import Any

import numpy as np
import pytest
from counters import running_sum
from host.gated import GatedDevice
from patience import PATIENCE

from onert.host import BatchConfig, DeviceConfig, HostManager
from onert.ir import Package
from onert.serve import ServeConfig, Server
from onert.serve.protocol.messages import message
from onert.serve.repository import READY, Loading, ModelState
from serve.conftest import DIGITS
from serve.http_requests import IMAGE, SCORES, X, ask
from serve.test_http import expected_scores

grpc = pytest.importorskip("grpc", reason="grpcio is not installed")
triton = pytest.importorskip("tritonclient.grpc", reason="tritonclient is not installed")
CALL = "/inference.GRPCInferenceService/ModelStreamInfer"


def until(holds: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    pause = Event()
    end = monotonic() + PATIENCE
    while not holds():
        assert monotonic() < end
        pause.wait(0.002)


def input_tensor(x: np.ndarray[Any, Any] = X) -> Any:
    created = triton.InferInput(IMAGE, list(x.shape), "INT8")
    created.set_data_from_numpy(x)
    return created


def infer_request(id_: str = "", x: np.ndarray[Any, Any] = X, model: str = "digits") -> Any:
    created = message("ModelInferRequest")(model_name=model, id=id_, raw_input_contents=[x.tobytes()])
    created.inputs.add(name=IMAGE, datatype="INT8", shape=x.shape)
    return created


class Call:
    """A stream on which the test sends requests one by one."""

    def __init__(self, server: Server) -> None:
        self._channel = grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}")
        self._requests: SimpleQueue[Any] = SimpleQueue()
        method = self._channel.stream_stream(
            CALL,
            request_serializer=lambda m: m.SerializeToString(),
            response_deserializer=message("ModelStreamInferResponse").FromString,
        )
        self.answers = method(iter(self._requests.get, None), timeout=PATIENCE)

    def send(self, *requests: Any) -> None:
        for request in requests:
            self._requests.put(request)

    def end(self) -> None:
        """Half-close the stream: no more requests follow."""
        self._requests.put(None)

    def __enter__(self) -> Call:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        self._channel.close()


def test_a_triton_client_gets_answers_on_a_stream(server: Server) -> None:
    got: SimpleQueue[Any] = SimpleQueue()
    xs = [np.full_like(X, number) for number in range(8)]
    with triton.InferenceServerClient(f"127.0.0.1:{server.grpc_port}") as client:
        client.start_stream(callback=lambda result, error: got.put((result, error)))
        for number, x in enumerate(xs):
            client.async_stream_infer("digits", [input_tensor(x)], request_id=str(number))
        found = [got.get(timeout=PATIENCE) for _ in xs]
        client.stop_stream()
    assert [error for _, error in found] == [None] * len(xs)
    assert [result.get_response().id for result, _ in found] == [str(number) for number in range(len(xs))]
    assert [result.as_numpy(SCORES).ravel().tolist() for result, _ in found] == [expected_scores(x) for x in xs]


def test_a_failed_request_does_not_end_the_stream(server: Server) -> None:
    with Call(server) as call:
        call.send(
            infer_request("a"), infer_request("b", X[:, :4]), infer_request("c", model="other"), infer_request("d")
        )
        call.end()
        found = list(call.answers)
    assert [each.infer_response.id for each in found] == ["a", "b", "c", "d"]
    assert [bool(each.error_message) for each in found] == [False, True, True, False]
    assert "expected [1, 8, 8, 1]" in found[1].error_message
    assert found[2].error_message == "model 'other' is unknown"


def test_requests_of_a_stream_run_concurrently_and_are_answered_in_order(tmp_path: Path) -> None:
    """The first request waits on a gated device while the second finishes on another."""
    held = GatedDevice("held")
    config = ServeConfig(http_port=None, grpc_port=0)
    with (
        HostManager([held, DeviceConfig(name="free", threads=1)]) as host,
        Server(host, {}, config, folder=tmp_path) as server,
        held,
    ):
        for name, device in (("slow", "held"), ("quick", "free")):
            copytree(DIGITS, tmp_path / name)
            host.set_available_devices([device])
            server.repository.load(name)
        with Call(server) as call:
            call.send(infer_request("1", model="slow"), infer_request("2", model="quick"))
            call.end()
            assert held.begun() == "slow"
            until(lambda: host.statistics().networks["quick"].requests_succeeded == 1)
            held.gate.set()
            assert [each.infer_response.id for each in call.answers] == ["1", "2"]


@pytest.fixture(scope="module")
def stateful_server() -> Iterator[Server]:
    """A server of a stateful network, which is added directly because no model file has one."""
    with (
        HostManager([DeviceConfig(threads=1)]) as host,
        Server(host, {}, ServeConfig(http_port=0, grpc_port=0)) as server,
    ):
        b, total = running_sum()
        host.add_network("sum", Package((b.model([total]),), "sum"))
        server.repository._states["sum"] = ModelState("sum", READY)
        yield server


def test_sequences_on_one_stream_have_their_own_state_and_order(stateful_server: Server) -> None:
    """Two interleaved sequences, each run twice: the second may start anew while the first is still running."""
    got: SimpleQueue[Any] = SimpleQueue()
    count = 10
    x = triton.InferInput("x", [1], "FP32")
    x.set_data_from_numpy(np.ones(1, np.float32))
    with triton.InferenceServerClient(f"127.0.0.1:{stateful_server.grpc_port}") as client:
        client.start_stream(callback=lambda result, error: got.put((result, error)))
        for _ in range(2):
            for at in range(count):
                for sequence in (5, "text"):
                    client.async_stream_infer(
                        "sum", [x], sequence_id=sequence, sequence_start=at == 0, sequence_end=at == count - 1
                    )
        found = [got.get(timeout=PATIENCE) for _ in range(4 * count)]
        client.stop_stream()
    assert [error for _, error in found] == [None] * len(found)
    values = [float(result.as_numpy("output_0")[0]) for result, _ in found]
    assert values == [float(at + 1) for at in range(count) for _ in range(2)] * 2


def test_a_request_waits_for_the_previous_one_in_its_sequence(tmp_path: Path) -> None:
    """A request for another model, sent last, is accepted before the waiting ones."""
    device = GatedDevice()
    config = ServeConfig(http_port=None, grpc_port=0)
    with (
        HostManager([device]) as host,
        Server(host, {}, config, folder=tmp_path) as server,
        Call(server) as call,
        device,
    ):
        for name in ("kept", "other"):
            copytree(DIGITS, tmp_path / name)
            server.repository.load(name)
        for id_ in ("1", "2", "3"):
            request = infer_request(id_, model="kept")
            request.parameters["sequence_id"].int64_param = 7
            call.send(request)
        call.send(infer_request("4", model="other"))
        call.end()
        until(lambda: host.statistics().networks["other"].requests_active == 1)
        assert server.service.under_way == 2
        device.gate.set()
        assert [each.infer_response.id for each in call.answers] == ["1", "2", "3", "4"]


def test_shutdown_answers_the_requests_of_a_stream_and_ends_it() -> None:
    device = GatedDevice()
    with HostManager([device]) as host:
        server = Server(host, {"digits": Path(DIGITS)}, ServeConfig(http_port=None, grpc_port=0))
        server.start()
        with Call(server) as call, device:
            call.send(infer_request("last"))
            device.begun()
            ending = Thread(target=server.stop)
            ending.start()
            device.gate.set()
            assert next(call.answers).infer_response.id == "last"
            with pytest.raises(grpc.RpcError) as caught:
                next(call.answers)
            ending.join(PATIENCE)
            assert not ending.is_alive()
        assert (caught.value.code(), caught.value.details()) == (
            grpc.StatusCode.UNAVAILABLE,
            "the server is shutting down",
        )


def test_an_idle_stream_is_ended() -> None:
    limits = ServeConfig(http_port=None, grpc_port=0, keep_alive=0.2)
    with (
        HostManager([DeviceConfig(threads=1)]) as host,
        Server(host, {"digits": Path(DIGITS)}, limits) as server,
        Call(server) as call,
    ):
        call.send(infer_request("1"))
        assert next(call.answers).infer_response.id == "1"
        with pytest.raises(grpc.RpcError) as caught:
            next(call.answers)
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        assert caught.value.details() == "no request arrived within 0.2 seconds"


def test_a_client_that_cancels_its_stream_is_harmless() -> None:
    device = GatedDevice()
    config = ServeConfig(http_port=None, grpc_port=0)
    with HostManager([device]) as host, Server(host, {"digits": Path(DIGITS)}, config) as server, device:
        call = Call(server)
        call.send(*(infer_request(str(at)) for at in range(200)))
        device.begun()
        call.answers.cancel()
        until(lambda: server.service.under_way == 0)
        device.gate.set()
        with Call(server) as other:
            other.send(infer_request("still"))
            assert next(other.answers).infer_response.id == "still"
        until(lambda: host.statistics().active == 0)
        assert host.statistics().queue_size == 0


def test_the_number_of_requests_in_progress_on_a_stream_is_limited() -> None:
    """Requests beyond the limit are not read until others are answered, and none is lost."""
    device = GatedDevice()
    config = ServeConfig(http_port=None, grpc_port=0)
    most = 64 + 2  # the answers queued, the one being awaited, and one request already read
    with (
        HostManager([device]) as host,
        Server(host, {"digits": Path(DIGITS)}, config) as server,
        Call(server) as call,
        Call(server) as other,
        device,
    ):
        call.send(*(infer_request(str(at)) for at in range(300)))
        call.end()
        until(lambda: server.service.under_way >= most)
        for _ in range(20):  # time in which more could be read
            other.send(infer_request(model="other"))
            assert next(other.answers).error_message
        assert server.service.under_way == most
        device.gate.set()
        assert [each.infer_response.id for each in call.answers] == [str(at) for at in range(300)]
        counted = host.statistics().networks["digits"]
        assert (counted.requests_succeeded, counted.requests_refused) == (300, 0)


def test_clients_can_query_the_configuration_of_a_model(server: Server) -> None:
    with triton.InferenceServerClient(f"127.0.0.1:{server.grpc_port}") as client:
        config = client.get_model_config("digits").config
    assert (config.name, config.platform, config.backend, config.max_batch_size) == ("digits", "onert", "onert", 0)
    assert [(i.name, i.data_type, list(i.dims)) for i in config.input] == [(IMAGE, 6, [1, 8, 8, 1])]
    assert [(o.name, o.data_type, list(o.dims)) for o in config.output] == [(SCORES, 6, [1, 10])]
    assert [(g.name, g.count, g.kind) for g in config.instance_group] == [("digits", 1, 2)]
    assert list(config.version_policy.specific.versions) == [1]
    assert not config.HasField("dynamic_batching")
    assert not config.HasField("sequence_batching")
    status, found = ask(server.http_port or 0, "GET", "/v2/models/digits/versions/1/config")
    assert (status, found["input"]) == (200, [{"name": IMAGE, "data_type": "TYPE_INT8", "dims": [1, 8, 8, 1]}])
    assert ask(server.http_port or 0, "GET", "/v2/models/other/config")[0] == 404


def test_the_configuration_describes_batching_and_sequences(stateful_server: Server) -> None:
    with triton.InferenceServerClient(f"127.0.0.1:{stateful_server.grpc_port}") as client:
        config = client.get_model_config("sum").config
    assert config.sequence_batching.max_sequence_idle_microseconds == 300_000_000
    loading = Loading(batch=BatchConfig(4, max_delay=0.002))
    with (
        HostManager([DeviceConfig(threads=1)]) as host,
        Server(host, {"digits": Path(DIGITS)}, ServeConfig(http_port=0, grpc_port=None), loading=loading) as server,
    ):
        found = ask(server.http_port or 0, "GET", "/v2/models/digits/config")[1]
    assert found["dynamic_batching"] == {"preferred_batch_size": [4], "max_queue_delay_microseconds": 2000}
