"""The inference protocol over gRPC."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from onert.serve import Server
from onert.serve.protocol.messages import SERVICE, message
from serve.http_requests import IMAGE, SCORES, X
from serve.test_http import expected_scores

client = pytest.importorskip("tritonclient.grpc", reason="tritonclient is not installed")


@pytest.fixture
def triton(server: Server) -> Iterator[Any]:
    with client.InferenceServerClient(f"127.0.0.1:{server.grpc_port}") as created:
        yield created


def input_tensor(x: np.ndarray[Any, Any] = X) -> Any:
    created = client.InferInput(IMAGE, list(x.shape), "INT8")
    created.set_data_from_numpy(x)
    return created


def test_a_triton_client_gets_the_results_of_an_execution(triton: Any) -> None:
    found = triton.infer("digits", [input_tensor()], request_id="seven")
    assert found.as_numpy(SCORES).ravel().tolist() == expected_scores()
    assert (found.get_response().id, found.get_response().model_name) == ("seven", "digits")


def test_tensors_can_be_sent_as_numbers(server: Server) -> None:
    import grpc

    infer_request = message("ModelInferRequest")(model_name="digits")
    infer_request.inputs.add(name=IMAGE, datatype="INT8", shape=X.shape).contents.int_contents.extend(
        X.ravel().tolist()
    )
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
        call = channel.unary_unary(
            "/inference.GRPCInferenceService/ModelInfer",
            request_serializer=lambda m: m.SerializeToString(),
            response_deserializer=message("ModelInferResponse").FromString,
        )
        (output,) = call(infer_request).outputs
        assert list(output.contents.int_contents) == expected_scores()
        infer_request.inputs[0].contents.int_contents[0] = 300
        with pytest.raises(grpc.RpcError, match="an element of INT8 is 300, expected -128 to 127"):
            call(infer_request)


def test_a_triton_client_can_query_status_metadata_and_statistics(triton: Any) -> None:
    assert triton.is_server_live()
    assert triton.is_server_ready()
    assert triton.is_model_ready("digits")
    assert not triton.is_model_ready("other")
    assert triton.get_server_metadata().name == "onert"
    described = triton.get_model_metadata("digits")
    assert (described.name, list(described.versions)) == ("digits", ["1"])
    assert [(i.name, i.datatype, list(i.shape)) for i in described.inputs] == [(IMAGE, "INT8", [1, 8, 8, 1])]
    before = triton.get_inference_statistics("digits").model_stats[0].inference_count
    triton.infer("digits", [input_tensor()])
    assert triton.get_inference_statistics("digits").model_stats[0].inference_count == before + 1
    assert [(m.name, m.state) for m in triton.get_model_repository_index().models] == [("digits", "READY")]


def _short_contents(infer_request: Any) -> None:
    infer_request.raw_input_contents[0] = b"short"


def _surplus_contents(infer_request: Any) -> None:
    infer_request.raw_input_contents.append(b"")


def _no_inputs(infer_request: Any) -> None:
    del infer_request.inputs[:]


def _unknown_datatype(infer_request: Any) -> None:
    infer_request.inputs[0].datatype = "INT7"


def _negative_dimension(infer_request: Any) -> None:
    infer_request.inputs[0].shape[0] = -1


def _unknown_input(infer_request: Any) -> None:
    infer_request.inputs[0].name = "other"


def _wrong_contents_field(infer_request: Any) -> None:
    del infer_request.raw_input_contents[:]
    infer_request.inputs[0].contents.fp32_contents.append(1)


def _path_as_model(infer_request: Any) -> None:
    infer_request.model_name = "../digits"


def _non_numeric_priority(infer_request: Any) -> None:
    infer_request.parameters["priority"].string_param = "high"


WRONG = {
    "bytes": (_short_contents, "5 bytes are given for INT8"),
    "two": (_surplus_contents, "1 inputs but raw contents for 2"),
    "none": (_no_inputs, "the request has no inputs"),
    "type": (_unknown_datatype, "'datatype' is 'INT7'"),
    "shape": (_negative_dimension, "a dimension is -1"),
    "name": (_unknown_input, "has no input 'other'"),
    "field": (_wrong_contents_field, "are in fp32_contents, expected in int_contents"),
    "model": (_path_as_model, "model '../digits' is unknown"),
    "parameter": (_non_numeric_priority, "parameter 'priority' is 'high'"),
}


def refusal(server: Server, infer_request: Any) -> Any:
    """The error with which the server answers a request."""
    import grpc

    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
        call = channel.unary_unary(
            "/inference.GRPCInferenceService/ModelInfer", request_serializer=lambda m: m.SerializeToString()
        )
        with pytest.raises(grpc.RpcError) as caught:
            call(infer_request)
    return caught.value


@pytest.mark.parametrize(("change", "detail"), WRONG.values(), ids=WRONG.keys())
def test_errors_in_requests_are_reported(server: Server, change: Any, detail: str) -> None:
    import grpc

    infer_request = message("ModelInferRequest")(model_name="digits", raw_input_contents=[X.tobytes()])
    infer_request.inputs.add(name=IMAGE, datatype="INT8", shape=X.shape)
    change(infer_request)
    error = refusal(server, infer_request)
    assert detail in error.details()
    assert error.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND)


@pytest.mark.parametrize("name", [m.name for m in SERVICE.methods])
def test_messages_match_those_of_the_triton_client(name: str) -> None:
    """Every field of our messages has the same number, type and label as in the client's messages."""
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


def test_large_numeric_tensors_are_decoded_off_the_event_loop(server: Server) -> None:
    """More elements than the event loop decodes itself; they do not fit the model, so an error is returned."""
    infer_request = message("ModelInferRequest")(model_name="digits")
    infer_request.inputs.add(name=IMAGE, datatype="INT8", shape=[100_000]).contents.int_contents.extend([1] * 100_000)
    assert "is given shape [100000], expected [1, 8, 8, 1]" in refusal(server, infer_request).details()


def test_messages_above_the_size_limit_are_refused(server: Server) -> None:
    import grpc

    infer_request = message("ModelInferRequest")(model_name="digits", raw_input_contents=[bytes(65 << 20)])
    assert refusal(server, infer_request).code() is grpc.StatusCode.RESOURCE_EXHAUSTED
