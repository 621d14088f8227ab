"""`onert_run`: load a model, compile it, run it, print what came out."""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import onert
from onert.backend import Program, TensorInfo
from onert.compiler import Options
from onert.exec.observers import Observer, Profile, Trace
from onert.ir import Array, ExecutionError, OnertError, dequantize, quantize

from . import inputs as sources
from . import profiling
from .arguments import UsageError, check, parser, shapes
from .classes import read_labels, top_classes
from .measure import Measurements, phase_lines, write_report


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0 when done, 1 when the model, its data or a backend failed, 2 for wrong usage."""
    options = parser().parse_args(arguments)
    try:
        check(options)
        _run(options)
    except UsageError as error:
        print(f"onert_run: {error}", file=sys.stderr)
        return 2
    except OnertError as error:
        if options.verbose_level >= 2:
            traceback.print_exc()
        print(f"onert_run: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    return 0


def _run(options: argparse.Namespace) -> None:
    measured = Measurements()
    say = (lambda line: print(line, file=sys.stderr)) if options.json else print
    with measured.phase("MODEL_LOAD"):
        package = onert.load(options.model)
    chosen = Options.from_environment(**_choices(options)).with_config(package.config)
    if options.profile_backends or chosen.profiling:
        for line in profiling.profile_backends(package, chosen):
            say(line)
    if options.profile_backends:
        return
    with measured.phase("COMPILE"):
        program = onert.compile(package, **_choices(options))
    profile = Profile()
    execution = onert.Execution(program, observers=_observers(options, profile))
    for index, shape in shapes(options.shape_run, "--shape_run").items():
        execution.set_input_shape(index, shape)
    if options.verbose_level >= 1:
        print(execution.program.describe(), file=sys.stderr)
    used = _inputs(options, execution.program)
    with measured.phase("EXECUTE"):
        outputs = _runs(options, execution, used, measured)
    infos = execution.program.outputs
    best = _best(options, infos, outputs)
    _dump(options, execution.program, used, outputs)
    execution.close()
    if options.profile:
        say(str(profiling.profile_table(profile)))
    if options.write_report:
        names = (Path(sys.argv[0]).stem or "onert_run", Path(options.model).stem, options.backends or "default")
        write_report(Path("-".join(names).replace(";", "+") + ".csv"), measured, names)
    for line in phase_lines(measured, memory=options.mem_poll):
        say(line)
    if options.json:
        print(json.dumps(_summary(options, execution.program, measured, outputs, best)))
    else:
        _print_outputs(infos, outputs, best)


def _observers(options: argparse.Namespace, profile: Profile) -> list[Observer]:
    """Who watches the runs: times of operations include what watching takes."""
    found: list[Observer] = []
    if options.trace is not None:
        found.append(Trace(options.trace))
    if options.profile:
        found.append(profile)
    return found


def _choices(options: argparse.Namespace) -> dict[str, Any]:
    """Compiler options that were given; the rest comes from the environment."""
    chosen: dict[str, Any] = {"input_shapes": shapes(options.shape_prepare, "--shape_prepare")}
    if options.backends:
        chosen["backends"] = tuple(name for name in options.backends.split(";") if name)
    for name in ("executor", "num_threads", "signature"):
        if getattr(options, name) is not None:
            chosen[name] = getattr(options, name)
    return chosen


def _inputs(options: argparse.Namespace, program: Program) -> list[Array]:
    """An array for every input: from the files that are named, random otherwise."""
    infos = program.inputs
    found: dict[int, Array] = {}
    if options.load is not None:
        found = dict(enumerate(sources.archive(options.load, infos)))
    elif options.load_raw is not None:
        for i, info in enumerate(infos):
            path = Path(f"{options.load_raw}.{i}")
            found[i] = sources.from_file(path, info, None) if not path.is_file() else sources.raw(path, info)
    for item in options.input:
        name, _, file = item.partition("=")
        position = _position(name, infos)
        found[position] = sources.from_file(Path(file), infos[position], options.image_mode)
    if options.force_float:
        found = {i: _stored(infos[i], array) for i, array in found.items()}
    rng = np.random.default_rng(options.seed)
    return [found[i] if i in found else sources.random(info, rng) for i, info in enumerate(infos)]


def _position(name: str, infos: Sequence[TensorInfo]) -> int:
    """An input by its name, by a signature's short name inside of it, or by its number."""
    for position, info in enumerate(infos):
        if name == info.name or name == str(position):
            return position
    inside = [i for i, info in enumerate(infos) if info.name.removeprefix("serving_default_").split(":")[0] == name]
    if len(inside) == 1:
        return inside[0]
    raise ExecutionError(f"there is no input {name!r}, expected one of {', '.join(repr(i.name) for i in infos)}")


def _stored(info: TensorInfo, array: Array) -> Array:
    """Real numbers as a quantised input stores them."""
    if info.quantization is None or array.dtype.kind != "f":
        return array
    return quantize(array, info.quantization, info.dtype)


def _runs(
    options: argparse.Namespace, execution: onert.Execution, used: list[Array], measured: Measurements
) -> list[Array]:
    """Warm up, then the runs that count; random inputs are new for each run unless they are fixed."""
    fresh = not (options.fixed_input or options.input or options.load or options.load_raw) and options.num_runs > 1
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


def _best(options: argparse.Namespace, infos: Sequence[TensorInfo], outputs: Sequence[Array]) -> list[dict[str, Any]]:
    if options.topk is None and options.labels is None:
        return []
    if not outputs:
        raise ExecutionError("the model has no outputs to take classes from")
    labels = read_labels(options.labels) if options.labels is not None else []
    info = infos[0]
    if options.force_float:
        info = TensorInfo(info.name, info.dtype, info.shape)
    return top_classes(info, outputs[0], options.topk or 5, labels)


def _dump(options: argparse.Namespace, program: Program, used: Sequence[Array], outputs: Sequence[Array]) -> None:
    try:
        if options.dump is not None:
            if options.dump.suffix.lower() in (".h5", ".hdf5"):
                sources.write_hdf5(options.dump, outputs)
            else:
                named: Mapping[str, Any] = {
                    info.name or str(i): array
                    for i, (info, array) in enumerate(zip(program.outputs, outputs, strict=True))
                }
                with options.dump.open("wb") as file:
                    np.savez(file, **named)
        for prefix, arrays in ((options.dump_raw, outputs), (options.dump_input_raw, used)):
            if prefix is not None:
                for i, array in enumerate(arrays):
                    Path(f"{prefix}.{i}").write_bytes(np.ascontiguousarray(array).tobytes())
    except OSError as error:
        raise ExecutionError(
            f"{error.filename or options.dump} cannot be written: {error.strerror or error}"
        ) from error


def _summary(
    options: argparse.Namespace,
    program: Program,
    measured: Measurements,
    outputs: Sequence[Array],
    best: list[dict[str, Any]],
) -> dict[str, Any]:
    arenas = {name: plan.size for name, plan in program.memory_plan.items()}
    return {
        "model": str(options.model),
        "inputs": [_described(info, info.shape) for info in program.inputs],
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
    for place, item in enumerate(best, 1):
        print(f"{place:>3}. {item['score']:.4f}  {item['class']:>4}  {item['label']}".rstrip())


if __name__ == "__main__":
    sys.exit(main())
