"""The model repository: listing, loading and unloading models."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from host.gated import GatedDevice
from patience import PATIENCE
from shared_material import REPOSITORY

from onert.host import ConfigurationError, DeviceConfig, HostManager
from onert.serve import ServeConfig, Server
from serve.conftest import DIGITS
from serve.http_requests import INFER, ask, right

HTTP = ServeConfig(http_port=0, grpc_port=None)
FLOAT = REPOSITORY / "nnpackage" / "examples" / "digits_float"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A repository with a package, a broken file, and a hidden file and a link that clients must not reach."""
    place = tmp_path / "models"
    shutil.copytree(DIGITS, place / "digits")
    (place / "broken.tflite").write_bytes(b"TFL3 and no more")
    (place / ".hidden.tflite").write_bytes(b"")
    (tmp_path / "outside.tflite").write_bytes(b"")
    os.symlink(tmp_path / "outside.tflite", place / "link.tflite")
    return place


@pytest.fixture
def server(folder: Path) -> Iterator[Server]:
    with HostManager([DeviceConfig(threads=1)]) as host, Server(host, {}, HTTP, folder=folder) as running:
        yield running


def post(server: Server, path: str, document: Any = None) -> tuple[int, Any]:
    return ask(server.http_port or 0, "POST", path, document)


def states(server: Server) -> dict[str, str]:
    status, found = post(server, "/v2/repository/index")
    assert status == 200
    return {each["name"]: each["state"] for each in found}


def test_models_in_the_folder_can_be_loaded_and_unloaded(server: Server) -> None:
    assert states(server) == {"broken": "UNAVAILABLE", "digits": "UNAVAILABLE"}
    assert post(server, INFER, right())[0] == 404
    for _ in range(2):
        assert post(server, "/v2/repository/models/digits/load") == (200, {})
        assert states(server)["digits"] == "READY"
        assert post(server, INFER, right())[0] == 200
        assert post(server, "/v2/repository/index", {"ready": True})[1][0]["name"] == "digits"
        assert (
            post(server, "/v2/repository/models/digits/unload", {"parameters": {"unload_dependents": True}})[0] == 200
        )
        assert states(server)["digits"] == "UNAVAILABLE"
        assert post(server, INFER, right())[0] == 404
    assert post(server, "/v2/repository/index", {"ready": True}) == (200, [])


def test_loading_a_model_again_rereads_its_file(server: Server, folder: Path) -> None:
    def kind() -> str:
        _, found = ask(server.http_port or 0, "GET", "/v2/models/digits")
        text: str = found["inputs"][0]["datatype"]
        return text

    assert post(server, "/v2/repository/models/digits/load")[0] == 200
    assert kind() == "INT8"
    shutil.rmtree(folder / "digits")
    shutil.copytree(FLOAT, folder / "digits")
    assert post(server, "/v2/repository/models/digits/load")[0] == 200
    assert kind() == "FP32"


def test_a_broken_file_is_reported_without_its_path(server: Server, folder: Path) -> None:
    status, found = post(server, "/v2/repository/models/broken/load")
    assert (status, "model 'broken' cannot be loaded" in found["error"]) == (400, True)
    assert str(folder) not in found["error"]
    assert states(server)["broken"] == "UNAVAILABLE"
    _, index = post(server, "/v2/repository/index")
    assert str(folder) not in index[0]["reason"]


@pytest.mark.parametrize(
    "name", ["link", "outside", ".hidden", "hidden", "..", "digits.tflite", "nix", "%2e%2e%2foutside"]
)
def test_requests_cannot_name_paths_links_or_hidden_files(server: Server, name: str) -> None:
    status, found = post(server, f"/v2/repository/models/{name}/load")
    assert (status, "error" in found) == (404, True)
    assert server.repository.host.networks == ()


def test_unloading_waits_for_requests_in_progress(folder: Path) -> None:
    device = GatedDevice()
    with HostManager([device]) as host, Server(host, {}, HTTP, folder=folder) as server:
        assert post(server, "/v2/repository/models/digits/load")[0] == 200
        answers: list[int] = []
        asking = threading.Thread(target=lambda: answers.append(post(server, INFER, right())[0]))
        asking.start()
        device.begun()
        unloading = threading.Thread(
            target=lambda: answers.append(post(server, "/v2/repository/models/digits/unload")[0])
        )
        unloading.start()
        while server.repository.is_ready("digits"):
            assert unloading.is_alive()
        assert post(server, INFER, right())[0] == 404  # new requests are refused
        assert post(server, "/v2/repository/models/digits/load")[0] == 409
        device.gate.set()
        for thread in (asking, unloading):
            thread.join(PATIENCE)
        assert len(answers) == 2
        assert host.networks == ()


def test_a_model_whose_requests_are_not_answered_in_time_is_neither_unloaded_nor_reloaded(folder: Path) -> None:
    device = GatedDevice()
    with HostManager([device]) as host, Server(host, {}, HTTP, folder=folder) as server:
        server.repository._patience = 0.0
        assert post(server, "/v2/repository/models/digits/load")[0] == 200
        asking = threading.Thread(target=post, args=(server, INFER, right()))
        asking.start()
        device.begun()
        for change in ("unload", "load"):
            assert post(server, f"/v2/repository/models/digits/{change}")[0] == 409
            assert states(server)["digits"] == "READY"
        device.gate.set()
        asking.join(PATIENCE)


def test_a_server_does_not_start_if_a_model_cannot_be_loaded(folder: Path) -> None:
    with HostManager([DeviceConfig(threads=1)]) as host:
        server = Server(host, {"broken": folder / "broken.tflite"}, HTTP)
        with pytest.raises(Exception, match="model 'broken' cannot be loaded"):
            server.start()
        assert server.wait(PATIENCE)


@pytest.mark.parametrize("kind", ["http_port", "grpc_port"])
def test_a_port_in_use_is_reported(kind: str) -> None:
    with HostManager([DeviceConfig(threads=1)]) as host:
        with Server(host, {}, ServeConfig(http_port=0, grpc_port=0)) as first:
            ports = {"http_port": 0, "grpc_port": 0, kind: getattr(first, kind)}
            with pytest.raises(ConfigurationError, match=f"cannot be served on 127.0.0.1:{ports[kind]}"):
                Server(host, {}, ServeConfig(**ports)).start()
        with Server(host, {}, ServeConfig(http_port=None, grpc_port=None)) as silent:
            assert (silent.http_port, silent.grpc_port) == (None, None)
