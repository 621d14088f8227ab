"""Shutting down a server, and the command line of `onert_serve`."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest
from host.gated import GatedDevice
from patience import PATIENCE

from onert.host import HostManager
from onert.serve import ServeConfig, Server
from onert.tools.serve import main, named_models
from serve.conftest import DIGITS
from serve.http_requests import INFER, answer, ask, request, right

FREE = ServeConfig(http_port=0, grpc_port=0)
BODY = json.dumps(right()).encode()


def connected(server: Server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.http_port), PATIENCE)


def test_shutdown_finishes_accepted_requests() -> None:
    """One request is running and another has partly arrived; new connections are refused."""
    device = GatedDevice()
    with HostManager([device]) as host:
        server = Server(host, {"digits": Path(DIGITS)}, FREE)
        server.start()
        with connected(server) as running, connected(server) as arriving, connected(server) as idle, device:
            running.sendall(request("POST", INFER, BODY))
            device.begun()
            arriving.sendall(request("POST", INFER, BODY)[:-1])
            idle.sendall(request("GET", "/v2/health/ready"))
            assert answer(idle)[0] == 200
            ending = Thread(target=server.stop)
            ending.start()
            assert idle.recv(1) == b""
            with pytest.raises(OSError, match="refused"):
                connected(server)
            arriving.sendall(BODY[-1:])
            ending.join(1.5)  # longer than the HTTP server's own wait for connections
            assert ending.is_alive()
            device.gate.set()
            assert answer(running)[0] == 200
            assert answer(arriving)[0] == 200
            ending.join(PATIENCE)
        assert server.wait(PATIENCE)
        server.stop()


def test_shutdown_waits_no_longer_than_the_drain_timeout() -> None:
    device = GatedDevice()
    limits = ServeConfig(http_port=0, grpc_port=None, drain_timeout=0.2)
    with HostManager([device]) as host:
        server = Server(host, {"digits": Path(DIGITS)}, limits)
        server.start()
        with connected(server) as running, device:
            running.sendall(request("POST", INFER, BODY))
            device.begun()
            server.stop()
            assert server.wait(PATIENCE)
            assert not device.gate.is_set()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_command_serves_until_it_gets_a_signal(number: signal.Signals) -> None:
    code = "import sys; from onert.tools.serve import main; sys.exit(main())"
    command = [sys.executable, "-c", code, f"scores={DIGITS}", "--http-port", "0", "--grpc-port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ))
    assert process.stdout is not None
    try:
        said = [process.stdout.readline() for _ in range(3)]
        assert said[0] == "model scores\n"
        found = re.fullmatch(r"HTTP http://127\.0\.0\.1:(\d+)\n", said[1])
        assert found is not None
        assert re.fullmatch(r"gRPC 127\.0\.0\.1:\d+\n", said[2])
        assert ask(int(found[1]), "POST", "/v2/models/scores/infer", right())[0] == 200
        process.send_signal(number)
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_signal_ends_the_command_in_whichever_thread_it_arrives_in() -> None:
    code = (
        "import signal\n"
        "from threading import Timer, get_ident\n"
        "from onert.tools.serve import told_to_end\n"
        "with told_to_end() as wait:\n"
        "    Timer(0.2, lambda: signal.pthread_kill(get_ident(), signal.SIGTERM)).start()\n"
        "    wait()\n"
        "print('over')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout == "over\n"


def test_models_are_named_by_their_file_stem_or_by_an_explicit_name(tmp_path: Path) -> None:
    for name in ("a.tflite", "b=c.tflite"):
        (tmp_path / name).touch()
    place = str(tmp_path)
    assert named_models([f"{place}/a.tflite", f"x={place}/a.tflite"]) == {
        "a": tmp_path / "a.tflite",
        "x": tmp_path / "a.tflite",
    }
    assert named_models([f"{place}/b=c.tflite"]) == {"b=c": tmp_path / "b=c.tflite"}


WRONG = {
    "nothing": ([], "there is nothing to serve"),
    "twice": ([str(DIGITS), str(DIGITS)], "two models are called 'digits_int8'"),
    "missing": (["nix.tflite"], "the model nix.tflite does not exist"),
    "no folder": (["--repository", "nix"], "--repository is nix, expected a folder"),
    "port": ([str(DIGITS), "--http-port", "70000"], "http_port is 70000"),
}


@pytest.mark.parametrize(("arguments", "message"), WRONG.values(), ids=WRONG.keys())
def test_invalid_arguments_are_reported(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 1
    assert message in capsys.readouterr().err
