"""`onert_run`: load a model, compile it, run it, print what came out."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from attrs import evolve

import onert
from onert.backend import Program, TensorInfo
from onert.backend.tensor_names import offered, position_named
from onert.compiler import Options
from onert.exec.observers import MinMax, Observer, Profile, Trace
from onert.ir import Array, BackendError, CompileError, ExecutionError, OnertWarning, dequantize, quantize
from onert.ir.process import imports
from onert.tools.reports import profiling
from onert.tools.reports.answers import answer_lines, read_answers, read_labels
from onert.tools.reports.measure import Measurements, phase_lines, write_report
from onert.tools.reports.slowness import runs_slowly, slowness

from . import inputs as sources
from .arguments import CALLED, CODEGEN, backend_names, check, is_h5, parser, shapes, wants_h5
from .exits import UsageError, ended


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0 when done, 1 when the model, its data or a backend failed, 2 for wrong usage."""
    options = parser().parse_args(arguments)
    return ended("onert_run", partial(_run, options), tracebacks=options.verbose_level >= 2, called=CALLED)


def _loaded(options: argparse.Namespace) -> onert.Package:
    """The model; a TNN structure with random weights where these are asked for."""
    if options.random_weights is None:
        return onert.load(options.model)
    found: onert.Package = imports.module("onert.frontend.tnn").load(
        options.model, random_weights=options.random_weights
    )
    return found


def _run(options: argparse.Namespace) -> None:
    check(options)
    measured = Measurements()
    labels = () if options.labels is None else read_labels(options.labels)
    messages: list[str] = []
    say = messages.append if options.json else print
    _refuse_quantization(options)
    if options.gpumem_poll:
        warnings.warn("-g shows nothing: no backend uses GPU memory", OnertWarning, stacklevel=1)
    with measured.phase("MODEL_LOAD"):
        package = _loaded(options)
    asked = Options.from_environment(os.environ, **_choices(options))
    chosen = asked.with_config(package.config)
    if options.profile_backends or chosen.profiling:
        for line in profiling.profile_backends(package, chosen):
            say(line)
    if options.profile_backends:
        if options.json:
            print(json.dumps({"model": str(options.model), "messages": messages}))
        return
    if options.codegen is not None:
        say(_generated(options, package))
    with measured.phase("COMPILE"):
        program = onert.compile(package, asked, profiling=False)
    profile = Profile()
    slow = runs_slowly(program, chosen)
    execution = onert.Execution(program, observers=_observers(options, profile, watched=options.profile or slow))
    for index, shape in _shapes_to_run(options).items():
        execution.set_input_shape(index, shape)
    if options.verbose_level >= 1:
        for note in package.notes:
            print(note, file=sys.stderr)
        print(execution.program.describe(), file=sys.stderr)
    given = _inputs(options, execution)
    used = [one.array for one in given]
    if options.minmax_runs:
        say(_ranges(options, execution.program, used, Path(chosen.workspace_dir)))
    with measured.phase("EXECUTE"):
        outputs = _runs(options, execution, used, measured)
    infos = execution.program.outputs
    best = _answers(options, infos, outputs, labels)
    if runs_slowly(execution.program, chosen):
        warnings.warn(slowness(execution.program, profile.rows, chosen), OnertWarning, stacklevel=1)
    _dump(options, execution.program, used, outputs)
    execution.close()
    if options.profile:
        say(str(profiling.profile_table(profile)))
    if options.write_report:
        names = (Path(sys.argv[0]).stem or "onert_run", Path(options.model).stem, options.backends or "default")
        write_report(Path("-".join(names).replace(";", "+") + ".csv"), measured, names)
    if options.json:
        summary = _summary(options, execution.program, measured, given, outputs, best)
        print(json.dumps({**summary, "messages": messages}))
    else:
        for line in phase_lines(measured, memory=options.mem_poll):
            print(line)
        _print_inputs(execution.program.inputs, given)
        _print_outputs(infos, outputs, best)


def _refuse_quantization(options: argparse.Namespace) -> None:
    if options.quantize is not None:
        raise CompileError(
            f"-q {options.quantize} asks for a quantised model, but onert runs quantised models and does not make "
            "them; quantise the file with ONE's or LiteRT's tools and run the result"
        )


def _generated(options: argparse.Namespace, package: onert.Package) -> str:
    """The model compiled ahead of time by the backend that -c names; a line that says where."""
    if options.codegen != CODEGEN:
        raise BackendError(
            f"-c is {options.codegen}, but the only backend that generates code ahead of time is {CODEGEN}"
        )
    files = onert.bundle(
        package,
        options.cpath or Path(options.model).resolve().with_suffix(f".{CODEGEN.removesuffix('-gen')}"),
        shapes=_choices(options)["input_shapes"],
        signatures=() if options.signature is None else (options.signature,),
    )
    return f"code for {files.target} is written to {next(iter(files.paths.values())).parent}"


def _shapes_to_run(options: argparse.Namespace) -> dict[int | str, tuple[int, ...]]:
    """The input shapes to change to before the first run, where they are given."""
    if wants_h5(options.shape_run):
        return sources.hdf5_shapes(options.load)
    return shapes(options.shape_run, "--shape_run")


def _ranges(options: argparse.Namespace, program: Program, used: Sequence[Array], folder: Path) -> str:
    """Runs that only record the ranges of tensors; a line that says where these are."""
    path = folder / "minmax.json"
    rng = np.random.default_rng(options.seed + 2)
    with onert.Execution(program, observers=(MinMax(path),)) as execution:
        for i in range(options.minmax_runs):
            fresh = i and _is_random(options)
            execution.run([sources.random(info, rng) for info in program.inputs] if fresh else used)
    return f"the ranges of {options.minmax_runs} runs are written to {path}"


def _is_random(options: argparse.Namespace) -> bool:
    """Whether every run may have random inputs of its own."""
    return not (options.fixed_input or options.input or options.load or options.load_raw)


def _observers(options: argparse.Namespace, profile: Profile, *, watched: bool) -> list[Observer]:
    """Who watches the runs: times of operations include what watching takes."""
    found: list[Observer] = []
    if options.trace is not None:
        found.append(Trace(options.trace))
    if watched:
        found.append(profile)
    return found


def _choices(options: argparse.Namespace) -> dict[str, Any]:
    """Compiler options that were given; the rest comes from the environment."""
    prepared = shapes(options.shape_prepare, "--shape_prepare")
    if wants_h5(options.shape_prepare):
        prepared = sources.hdf5_shapes(options.load)
    chosen: dict[str, Any] = {"input_shapes": prepared}
    if options.backends is not None:
        chosen["backends"] = backend_names(options.backends)
    for name in ("executor", "num_threads", "signature"):
        if getattr(options, name) is not None:
            chosen[name] = getattr(options, name)
    return chosen


def _inputs(options: argparse.Namespace, execution: onert.Execution) -> list[sources.Given]:
    """Elements for every input: from the files that are named, random otherwise.

    Arrays of --load decide the shapes where nothing else does.
    """
    infos = execution.program.inputs
    found: dict[int, sources.Given] = {}
    reading = sources.Reading(options.image_mode, options.sample_rate, options.start)
    if options.load is not None:
        arrays = sources.archive(options.load, infos)
        found = {i: sources.Given(array, str(options.load)) for i, array in enumerate(arrays)}
        if options.shape_prepare is None and options.shape_run is None:
            for i, array in enumerate(arrays):
                execution.set_input_shape(i, array.shape)
            infos = execution.program.inputs
    elif options.load_raw is not None:
        for i, info in enumerate(infos):
            path = Path(f"{options.load_raw}.{i}")
            found[i] = (
                sources.Given(sources.raw(path, info), str(path))
                if path.is_file()
                else sources.from_file(path, info, reading)
            )
    named: set[int] = set()
    for item in options.input:
        name, _, file = item.partition("=")
        position = _position(name, infos)
        if position in named:
            raise UsageError(f"--input names input {infos[position].name!r} twice")
        named.add(position)
        found[position] = sources.from_file(Path(file), infos[position], reading)
    if options.force_float:
        found = {i: evolve(one, array=_stored(infos[i], one.array)) for i, one in found.items()}
    rng = np.random.default_rng(options.seed)
    for i, info in enumerate(infos):
        if i not in found:
            found[i] = sources.Given(sources.random(info, rng), f"random numbers, seed {options.seed}")
    return [found[i] for i in range(len(infos))]


def _position(name: str, infos: Sequence[TensorInfo]) -> int:
    """An input by one of its names, or by its number."""
    found = position_named(name, infos)
    if found is None and name.isdecimal() and len(name) < 10 and int(name) < len(infos):
        found = int(name)
    if found is None:
        raise ExecutionError(f"there is no input {name!r}, expected one of {offered(infos)}")
    return found


def _stored(info: TensorInfo, array: Array) -> Array:
    """Real numbers as a quantised input stores them."""
    if info.quantization is None or array.dtype.kind != "f":
        return array
    return quantize(array, info.quantization, info.dtype)


def _runs(
    options: argparse.Namespace, execution: onert.Execution, used: list[Array], measured: Measurements
) -> list[Array]:
    """Warm up, then the runs that count; random inputs are new for each run unless they are fixed."""
    fresh = _is_random(options) and options.num_runs > 1
    rng = np.random.default_rng(options.seed + 1)
    for i in range(options.warmup_runs + options.num_runs):
        if i and fresh:
            used[:] = [sources.random(info, rng) for info in execution.program.inputs]
        for position, array in enumerate(used):
            execution.set_input(position, array)
        if i and options.run_delay > 0:
            time.sleep(options.run_delay / 1e6)
        start = time.perf_counter()
        execution.execute()
        if i >= options.warmup_runs:
            measured.runs.append((time.perf_counter() - start) * 1e3)
    outputs = [execution.get_output(i) for i in range(len(execution.program.outputs))]
    if options.force_float:
        infos = execution.program.outputs
        return [
            array if info.quantization is None else dequantize(array, info.quantization)
            for info, array in zip(infos, outputs, strict=True)
        ]
    return outputs


def _answers(
    options: argparse.Namespace, infos: Sequence[TensorInfo], outputs: Sequence[Array], labels: Sequence[str]
) -> list[dict[str, Any]]:
    if options.topk is None and options.labels is None:
        return []
    return read_answers(infos, outputs, options.topk, labels, str(options.labels))


def _reshaped(options: argparse.Namespace, infos: Sequence[TensorInfo], outputs: Sequence[Array]) -> list[Array]:
    """The outputs as --output_shape wants them."""
    found = list(outputs)
    for index, shape in shapes(options.output_shape, "--output_shape").items():
        if not (isinstance(index, int) and 0 <= index < len(found)):
            raise ExecutionError(f"--output_shape names output {index}, expected 0 to {len(found) - 1}")
        if math.prod(shape) != found[index].size:
            raise ExecutionError(
                f"--output_shape gives output {infos[index].name!r} shape {list(shape)}, expected a shape of "
                f"{found[index].size} elements"
            )
        found[index] = found[index].reshape(shape)
    return found


def _dump(options: argparse.Namespace, program: Program, used: Sequence[Array], outputs: Sequence[Array]) -> None:
    shaped = _reshaped(options, program.outputs, outputs)
    target = options.dump
    try:
        if options.dump is not None:
            if is_h5(options.dump):
                sources.write_hdf5(options.dump, shaped)
            else:
                named: Mapping[str, Any] = {
                    info.name or str(i): array
                    for i, (info, array) in enumerate(zip(program.outputs, shaped, strict=True))
                }
                with options.dump.open("wb") as file:
                    np.savez(file, **named)
        for prefix, arrays in ((options.dump_raw, outputs), (options.dump_input_raw, used)):
            if prefix is not None:
                for i, array in enumerate(arrays):
                    target = Path(f"{prefix}.{i}")
                    target.write_bytes(np.ascontiguousarray(array).tobytes())
    except OSError as error:
        raise ExecutionError(f"{error.filename or target} cannot be written: {error.strerror or error}") from error


def _summary(
    options: argparse.Namespace,
    program: Program,
    measured: Measurements,
    given: Sequence[sources.Given],
    outputs: Sequence[Array],
    best: list[dict[str, Any]],
) -> dict[str, Any]:
    arenas = {name: plan.size for name, plan in program.memory_plan.items()}
    return {
        "model": str(options.model),
        "inputs": [
            {**_described(info, one.array.shape), "source": one.source}
            for info, one in zip(program.inputs, given, strict=True)
        ],
        "outputs": [_described(info, a.shape) for info, a in zip(program.outputs, outputs, strict=True)],
        "load_ms": measured.milliseconds["MODEL_LOAD"],
        "compile_ms": measured.milliseconds["COMPILE"],
        "execute_ms": measured.statistics,
        "memory": {"arena_bytes": arenas, "kib": measured.memory},
        "topk": best,
    }


def _described(info: TensorInfo, shape: Sequence[int | None]) -> dict[str, Any]:
    return {"name": info.name, "dtype": str(info.dtype.numpy), "shape": list(shape)}


def _print_outputs(infos: Sequence[TensorInfo], outputs: Sequence[Array], best: Sequence[dict[str, Any]]) -> None:
    for i, (info, array) in enumerate(zip(infos, outputs, strict=True)):
        numbers = np.array2string(array.reshape(-1)[:8], precision=4, separator=", ", suppress_small=True)
        more = " ..." if array.size > 8 else ""
        print(f"output {i} {info.name!r} {array.dtype}{list(array.shape)}: {numbers}{more}")
    for line in answer_lines(best):
        print(line)


def _print_inputs(infos: Sequence[TensorInfo], given: Sequence[sources.Given]) -> None:
    for i, (info, one) in enumerate(zip(infos, given, strict=True)):
        print(f"input {i} {info.name!r} {one.array.dtype}{list(one.array.shape)}: {one.source}")


if __name__ == "__main__":
    sys.exit(main())
