"""Other runtimes behind one interface, each with its fastest settings for a number of threads."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen

from onert.ir import OnertError
from onert.ir.value import Value

Arrays = Sequence[np.ndarray[Any, Any]]


class PeerError(OnertError):
    """A peer is not installed or cannot run the model."""


@frozen
class Prepared(Value):
    """A runtime with its inputs bound: `call` runs one inference, `setup_seconds` is the time to load and compile."""

    call: Callable[[], object]
    outputs: Callable[[], list[np.ndarray[Any, Any]]]
    setup_seconds: float


def litert(path: Path, inputs: Arrays, threads: int) -> Prepared:
    """LiteRT with its default delegate (XNNPACK)."""
    try:
        from ai_edge_litert.interpreter import Interpreter
    except ImportError as error:
        raise PeerError("ai-edge-litert is not installed; pip install 'onert-toolkit[bench]'") from error
    start = time.perf_counter()
    try:
        interpreter = Interpreter(model_path=str(path), num_threads=threads)
        details = interpreter.get_input_details()
        for detail, array in zip(details, inputs, strict=True):
            if tuple(detail["shape"]) != array.shape:
                interpreter.resize_tensor_input(detail["index"], array.shape)
        interpreter.allocate_tensors()
    except (ValueError, RuntimeError) as error:
        raise PeerError(f"LiteRT cannot run {path.name}: {_first_line(error)}") from error
    setup = time.perf_counter() - start
    for detail, array in zip(details, inputs, strict=True):
        interpreter.set_tensor(detail["index"], array)
    outputs = [d["index"] for d in interpreter.get_output_details()]
    return Prepared(interpreter.invoke, lambda: [interpreter.get_tensor(i) for i in outputs], setup)


_OPENVINO = {"NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
"""One request at a time, in float32: by default OpenVINO runs float models in bfloat16 if the processor supports it."""


def openvino(path: Path, inputs: Arrays, threads: int) -> Prepared:
    """OpenVINO's CPU plugin: latency hint, one stream, float32, `threads` threads."""
    try:
        import openvino as ov
    except ImportError as error:
        raise PeerError("openvino is not installed; pip install 'onert-toolkit[bench]'") from error
    core = ov.Core()
    start = time.perf_counter()
    try:
        model = core.read_model(str(path))
        model.reshape({i: list(a.shape) for i, a in enumerate(inputs)})
        compiled = core.compile_model(model, "CPU", {**_OPENVINO, "INFERENCE_NUM_THREADS": threads})
        setup = time.perf_counter() - start
        request = compiled.create_infer_request()
        for i, array in enumerate(inputs):
            request.set_input_tensor(i, ov.Tensor(array, shared_memory=True))
        request.infer()
    except RuntimeError as error:
        raise PeerError(f"OpenVINO cannot run {path.name}: {_first_line(error)}") from error
    return Prepared(
        request.infer, lambda: [request.get_output_tensor(i).data for i in range(len(compiled.outputs))], setup
    )


def onnxruntime(path: Path, inputs: Arrays, threads: int) -> Prepared:
    """ONNX Runtime's CPU provider; it reads ONNX files and those of its own format."""
    try:
        import onnxruntime as ort
    except ImportError as error:
        raise PeerError("onnxruntime is not installed; pip install 'onert-toolkit[bench]'") from error
    if path.suffix not in (".onnx", ".ort"):
        raise PeerError(f"ONNX Runtime cannot run {path.name}: it reads .onnx and .ort files only")
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    start = time.perf_counter()
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    setup = time.perf_counter() - start
    feed = {i.name: a for i, a in zip(session.get_inputs(), inputs, strict=True)}
    return Prepared(lambda: session.run(None, feed), lambda: session.run(None, feed), setup)


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


PEERS: dict[str, Callable[[Path, Arrays, int], Prepared]] = {
    "litert": litert,
    "openvino": openvino,
    "onnxruntime": onnxruntime,
}
