"""Claims about the protocol over gRPC."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from onert.serve import Server
from onert.serve.protocol.messages import SERVICE, message
from serve.asking import IMAGE, SCORES, X
from serve.test_http import wanted

client = pytest.importorskip("tritonclient.grpc", reason="tritonclient is not installed")


@pytest.fixture
def triton(server: Server) -> Iterator[Any]:
    with client.InferenceServerClient(f"127.0.0.1:{server.grpc_port}") as made:
        yield made


def given(x: np.ndarray[Any, Any] = X) -> Any:
    made = client.InferInput(IMAGE, list(x.shape), "INT8")
    made.set_data_from_numpy(x)
    return made


def test_a_triton_client_gets_what_an_execution_gives(triton: Any) -> None:
    found = triton.infer("digits", [given()], request_id="seven")
    assert found.as_numpy(SCORES).ravel().tolist() == wanted()
    assert (found.get_response().id, found.get_response().model_name) == ("seven", "digits")


def test_tensors_may_be_numbers(server: Server) -> None:
    import grpc

    asked = message("ModelInferRequest")(model_name="digits")
    asked.inputs.add(name=IMAGE, datatype="INT8", shape=X.shape).contents.int_contents.extend(X.ravel().tolist())
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
        call = channel.unary_unary(
            "/inference.GRPCInferenceService/ModelInfer",
            request_serializer=lambda m: m.SerializeToString(),
            response_deserializer=message("ModelInferResponse").FromString,
        )
        (output,) = call(asked).outputs
        assert list(output.contents.int_contents) == wanted()
        asked.inputs[0].contents.int_contents[0] = 300
        with pytest.raises(grpc.RpcError, match="an element of INT8 is 300, expected -128 to 127"):
            call(asked)


def test_a_triton_client_finds_out_what_there_is(triton: Any) -> None:
    assert triton.is_server_live()
    assert triton.is_server_ready()
    assert triton.is_model_ready("digits")
    assert not triton.is_model_ready("other")
    assert triton.get_server_metadata().name == "onert"
    described = triton.get_model_metadata("digits")
    assert (described.name, list(described.versions)) == ("digits", ["1"])
    assert [(i.name, i.datatype, list(i.shape)) for i in described.inputs] == [(IMAGE, "INT8", [1, 8, 8, 1])]
    before = triton.get_inference_statistics("digits").model_stats[0].inference_count
    triton.infer("digits", [given()])
    assert triton.get_inference_statistics("digits").model_stats[0].inference_count == before + 1
    assert [(m.name, m.state) for m in triton.get_model_repository_index().models] == [("digits", "READY")]


def _short(asked: Any) -> None:
    asked.raw_input_contents[0] = b"short"


def _two(asked: Any) -> None:
    asked.raw_input_contents.append(b"")


def _none(asked: Any) -> None:
    del asked.inputs[:]


def _kind(asked: Any) -> None:
    asked.inputs[0].datatype = "INT7"


def _shape(asked: Any) -> None:
    asked.inputs[0].shape[0] = -1


def _name(asked: Any) -> None:
    asked.inputs[0].name = "other"


def _field(asked: Any) -> None:
    del asked.raw_input_contents[:]
    asked.inputs[0].contents.fp32_contents.append(1)


def _model(asked: Any) -> None:
    asked.model_name = "../digits"


def _parameter(asked: Any) -> None:
    asked.parameters["priority"].string_param = "high"


WRONG = {
    "bytes": (_short, "5 bytes are given for INT8"),
    "two": (_two, "1 inputs but raw contents for 2"),
    "none": (_none, "the request has no inputs"),
    "type": (_kind, "'datatype' is 'INT7'"),
    "shape": (_shape, "a dimension is -1"),
    "name": (_name, "has no input 'other'"),
    "field": (_field, "are in fp32_contents, expected in int_contents"),
    "model": (_model, "model '../digits' is unknown"),
    "parameter": (_parameter, "parameter 'priority' is 'high'"),
}


@pytest.mark.parametrize(("change", "told"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_told(server: Server, change: Any, told: str) -> None:
    import grpc

    asked = message("ModelInferRequest")(model_name="digits", raw_input_contents=[X.tobytes()])
    asked.inputs.add(name=IMAGE, datatype="INT8", shape=X.shape)
    change(asked)
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
        call = channel.unary_unary(
            "/inference.GRPCInferenceService/ModelInfer", request_serializer=lambda m: m.SerializeToString()
        )
        with pytest.raises(grpc.RpcError) as caught:
            call(asked)
        details: Any = caught.value
        assert told in details.details()
        assert details.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND)


@pytest.mark.parametrize("name", [m.name for m in SERVICE.methods])
def test_messages_are_those_of_a_triton_client(name: str) -> None:
    """Every field of ours has the number, the type and the label that it has in the client's messages."""
    from tritonclient.grpc import service_pb2

    theirs = service_pb2.DESCRIPTOR.services_by_name["GRPCInferenceService"].methods_by_name[name]
    ours = SERVICE.methods_by_name[name]
    todo = [(ours.input_type, theirs.input_type), (ours.output_type, theirs.output_type)]
    seen = set()
    while todo:
        own, other = todo.pop()
        if own.full_name in seen:
            continue
        seen.add(own.full_name)
        assert own.full_name == other.full_name
        for field in own.fields:
            found = other.fields_by_name[field.name]
            assert (field.number, field.type, field.is_repeated) == (found.number, found.type, found.is_repeated)
            if field.message_type is not None:
                todo.append((field.message_type, found.message_type))
    assert len(seen) >= 2


def test_many_numbers_are_read_beside_other_requests(server: Server) -> None:
    """More of them than the event loop reads itself; they do not fit the model, which is told."""
    import grpc

    asked = message("ModelInferRequest")(model_name="digits")
    asked.inputs.add(name=IMAGE, datatype="INT8", shape=[100_000]).contents.int_contents.extend([1] * 100_000)
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
        call = channel.unary_unary(
            "/inference.GRPCInferenceService/ModelInfer", request_serializer=lambda m: m.SerializeToString()
        )
        with pytest.raises(grpc.RpcError, match=r"is given shape \[100000\], expected \[1, 8, 8, 1\]"):
            call(asked)


def test_messages_above_the_bound_are_refused(server: Server) -> None:
    import grpc

    asked = message("ModelInferRequest")(model_name="digits", raw_input_contents=[bytes(65 << 20)])
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
        call = channel.unary_unary(
            "/inference.GRPCInferenceService/ModelInfer", request_serializer=lambda m: m.SerializeToString()
        )
        with pytest.raises(grpc.RpcError) as caught:
            call(asked)
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED  # type: ignore[attr-defined]
