"""`onert_run`: load a model, compile it, run it, and print the results."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import onert
from onert.backend import Program, TensorInfo
from onert.compiler import Options
from onert.exec import observers
from onert.exec.observers import Observer, Profile
from onert.frontend.metadata import ModelMetadata
from onert.ir import Array, ExecutionError, OnertWarning
from onert.ir.process import imports
from onert.ir.process.replacing import replace

from .arguments import CALLED, check, parser, shapes
from .exits import ended
from .outputs import CollectedOutputs, printed_inputs, printed_outputs, save
from .quantize import INTEGERS, quantized_file, require_file
from .reports.measure import Measurements, phase_lines, write_report
from .reports.progress import Progress
from .reports.slowness import runs_slowly, slowness
from .running.answering import Answers, as_json, lines_of
from .running.choosing import choices, compiled, generated, loaded, measured_backends, shapes_to_run
from .running.feeding import feed
from .running.rounds import Outcome, outcomes, record_ranges


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0 when done, 1 when the model, its data or a backend failed, 2 for wrong usage."""
    options = parser().parse_args(arguments)
    return ended("onert_run", partial(_run, options), tracebacks=options.verbose_level >= 2, called=CALLED)


def _run(options: argparse.Namespace) -> None:
    check(options)
    measured = Measurements()
    messages: list[str] = []
    say = messages.append if options.json else print
    if options.quantize is not None:
        say(_quantize(options))
    if options.gpumem_poll:
        warnings.warn("-g has no effect: no backend uses GPU memory", OnertWarning, stacklevel=1)
    with Progress(shown=not options.json or sys.stdout.isatty()) as progress:
        progress.phase("loading")
        with measured.phase("MODEL_LOAD"):
            package = loaded(options)
        asked = Options.from_environment(os.environ, **choices(options))
        chosen = asked.with_config(package.config)
        if options.profile_backends or chosen.profiling:
            progress.phase("measuring backends")
            for line in measured_backends(options, package, chosen):
                say(line)
        if options.profile_backends:
            if options.json:
                print(json.dumps({"model": str(options.model), "messages": messages}))
            return
        progress.phase("compiling")
        if options.codegen is not None:
            say(generated(options, package))
        with measured.phase("COMPILE"):
            program = compiled(options, package, asked)
        _execute(options, package, program, chosen, measured, progress, messages, say)


def _quantize(options: argparse.Namespace) -> str:
    """Write the quantised model and run it in place of the original. Returns a message with its path."""
    kind, model, count = options.quantize, Path(options.model), 0
    if kind in INTEGERS:
        require_file(model, kind)
        found, count = imports.module("onert.tools.running.calibrating").calibrated(options)
        options.model = quantized_file(model, kind, options.qpath, found)
        options.minmax_runs = 0  # the ranges have just been recorded
        return f"the {kind} model, calibrated with {count} runs, is written to {options.model}"
    options.model = quantized_file(model, kind, options.qpath)
    return f"the model with {kind} weights is written to {options.model}"


def _execute(
    options: argparse.Namespace,
    package: onert.Package,
    program: Program,
    chosen: Options,
    measured: Measurements,
    progress: Progress,
    messages: list[str],
    say: Callable[[str], object],
) -> None:
    """Run a program on all its inputs and report the results."""
    profile = Profile()
    slow = runs_slowly(program, chosen)
    execution = onert.Execution(program, observers=_observers(options, profile, watched=options.profile or slow))
    for index, shape in shapes_to_run(options).items():
        execution.set_input_shape(index, shape)
    if options.verbose_level >= 1:
        for note in package.notes:
            print(note, file=sys.stderr)
        print(execution.program.describe(), file=sys.stderr)
    said = _metadata(options, package)
    fed, batch = feed(options, package, execution, said)
    if fed.cut is not None:
        note = f"only the first {fed.count} of {fed.cut} items are run; --limit N sets another number"
        warnings.warn(note, OnertWarning, stacklevel=1)
    last_words: list[str] = []  # of a single item: printed after its outputs
    answers = Answers(options, said, fed, last_words.append if fed.count == 1 and not options.json else say)
    kept = CollectedOutputs()
    items: list[dict[str, Any]] = []
    last: Outcome | None = None
    with measured.phase("EXECUTE"), closing(answers):
        for outcome in outcomes(options, execution, fed, batch, measured, progress):
            infos = execution.program.outputs
            if options.minmax_runs and last is None:
                used = [one.array for one in outcome.given]
                say(record_ranges(options, execution.program, used, Path(chosen.workspace_dir)))
            last = outcome
            if options.dump is not None:
                kept.add(outcome.outputs)
            if fed.count != 1:
                answer = answers.add(outcome, infos)
                source = outcome.given[fed.position or 0].source
                source = source.partition(",")[0] if fed.pieces and answer is not None else source
                if options.json:
                    items.append({"source": source, "topk": as_json(answer)})
                elif answer is not None or not fed.pieces:
                    _print_item(source, lines_of(answer) or list(printed_outputs(infos, outcome.outputs)))
    if last is None:
        raise ExecutionError("the input has no items, expected at least one")
    infos = execution.program.outputs
    best = answers.add(last, infos) if fed.count == 1 else None
    answers.close()
    if fed.pieces and not options.json and all(answer is None for _, answer in answers.read):
        source = last.given[fed.position or 0].source
        _print_item(f"{source}: the last of {fed.count} pieces", list(printed_outputs(infos, last.outputs)))
    if runs_slowly(execution.program, chosen):
        warnings.warn(slowness(execution.program, profile.rows, chosen), OnertWarning, stacklevel=1)
    _dump(options, execution.program, last, kept, said)
    execution.close()
    if options.profile:
        say(str(imports.module("onert.tools.reports.profiling").profile_table(profile)))
    if options.write_report:
        names = (Path(sys.argv[0]).stem or "onert_run", Path(options.model).stem, options.backends or "default")
        write_report(Path("-".join(names).replace(";", "+") + ".csv"), measured, names)
    if options.json:
        summary = _summary(options, execution.program, measured, last, items)
        read = [answer for _, answer in answers.read if answer is not None]
        reading = {"topk": as_json(best), "task": read[-1].task if read else None}
        print(json.dumps({**summary, **reading, "messages": messages}))
        return
    for line in phase_lines(measured, memory=options.mem_poll):
        print(line)
    if fed.count == 1:
        for line in (
            *printed_inputs(execution.program.inputs, last.given),
            *printed_outputs(infos, last.outputs),
            *last_words,
            *lines_of(best),
        ):
            print(line)


def _metadata(options: argparse.Namespace, package: onert.Package) -> ModelMetadata:
    """The model's metadata, read only if it can help to interpret the inputs or outputs."""
    if not (options.input or options.load or options.load_raw or options.text or options.task or options.topk):
        return ModelMetadata()
    found: ModelMetadata = imports.module("onert.frontend.metadata.reading").metadata(package)
    for note in found.notes:
        warnings.warn(note, OnertWarning, stacklevel=1)
    return found


def _observers(options: argparse.Namespace, profile: Profile, *, watched: bool) -> list[Observer]:
    """The observers of the runs. Their overhead is part of the measured times of operations."""
    found: list[Observer] = []
    if options.trace is not None:
        found.append(observers.Trace(options.trace))
    if watched:
        found.append(profile)
    return found


def _reshaped(options: argparse.Namespace, infos: Sequence[TensorInfo], outputs: Sequence[Array]) -> list[Array]:
    """The outputs reshaped as --output_shape says."""
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


def _dump(
    options: argparse.Namespace, program: Program, last: Outcome, kept: CollectedOutputs, said: ModelMetadata
) -> None:
    """Write the files of --dump (outputs of all items together), --dump:raw and --dump_input:raw (the last item's)."""
    if options.dump is not None:
        shaped = _reshaped(options, program.outputs, kept.whole(program.outputs))
        rate = next((t.sample_rate for t in (*said.outputs, *said.inputs) if t.sample_rate), None)
        save(options.dump, program.outputs, shaped, options.sample_rate or rate)
    arrays = [one.array for one in last.given]
    for prefix, written in ((options.dump_raw, last.outputs), (options.dump_input_raw, arrays)):
        if prefix is not None:
            for i, array in enumerate(written):
                target = Path(f"{prefix}.{i}")
                try:
                    replace(target, (np.ascontiguousarray(array).tobytes(),))
                except OSError as error:
                    raise ExecutionError(f"{target} cannot be written: {error.strerror or error}") from error


def _summary(
    options: argparse.Namespace,
    program: Program,
    measured: Measurements,
    last: Outcome,
    items: list[dict[str, Any]],
) -> dict[str, Any]:
    arenas = {name: plan.size for name, plan in program.memory_plan.items()}
    return {
        "model": str(options.model),
        "inputs": [
            {**_described(info, one.array.shape), "source": one.source}
            for info, one in zip(program.inputs, last.given, strict=True)
        ],
        "outputs": [_described(info, a.shape) for info, a in zip(program.outputs, last.outputs, strict=True)],
        "load_ms": measured.milliseconds["MODEL_LOAD"],
        "compile_ms": measured.milliseconds["COMPILE"],
        "execute_ms": measured.statistics,
        "memory": {"arena_bytes": arenas, "kib": measured.memory},
        **({"items": items} if items else {}),
    }


def _described(info: TensorInfo, shape: Sequence[int | None]) -> dict[str, Any]:
    return {"name": info.name, "dtype": str(info.dtype.numpy), "shape": list(shape)}


def _print_item(source: str, lines: Sequence[str]) -> None:
    print(source)
    for line in lines:
        print(line if line.startswith(" ") else f"  {line}")


if __name__ == "__main__":
    sys.exit(main())
