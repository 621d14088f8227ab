"""`onert_bundle`: compile models into an object file, weights and a C header."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import onert
from onert.bundle import Files
from onert.bundle.names import apart, symbol
from onert.compiler.settings.config_keys import PRECISIONS

from . import glow_options
from .arguments import shapes
from .exits import UsageError, ended
from .open_shapes import compiled_with
from .options import add_threads, option
from .reports import bundle_report


class _CMakeFolder(argparse.Action):
    """Prints the folder of `onertConfig.cmake` and ends the command."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(Path(onert.__file__).parent / "bundle" / "cmake")
        parser.exit()


def parser(prog: str = "onert_bundle", api: str = "dynamic") -> argparse.ArgumentParser:
    """The options of the command; `api` is the default of --api."""
    out = argparse.ArgumentParser(
        prog=prog, description="Compile models ahead of time into an object file, weights and a C header."
    )
    option(out, "models MODEL", "a model file, or an nnpackage (directory or zip)", nargs="*")
    option(out, "-o --output -emit-bundle DIR", "the folder to write to", type=Path, required=True)
    option(out, "--name -network-name N", "name of the files and symbols (default: the model's file name)")
    out.add_argument("--version", action="version", version=f"onert {onert.__version__}")
    option(out, "--cmake-dir", "print the folder of the CMake package onert, and exit", action=_CMakeFolder, nargs=0)
    option(
        out,
        "--entry -main-entry-name N",
        "name of the entry point (default: the bundle's name); with several models, give it once for each",
        action="append",
        default=[],
    )
    option(
        out,
        "--signature KEY",
        "the signature to run; if given several times, each one gets an entry point",
        action="append",
        default=[],
    )
    apis = ("static", "dynamic", "both")
    option(
        out,
        "--api -bundle-api",
        f"how a C program finds inputs and weights (default: {api})",
        choices=apis,
        default=api,
    )
    option(out, "--shape S", "[index, [dims], ...]: shapes of inputs with dynamic dimensions")
    code = out.add_argument_group("code")
    option(code, "--target -target TRIPLE", "target, such as aarch64-linux-gnu (default: this machine's)")
    option(
        code,
        "--cpu -mcpu C",
        "LLVM's name of a processor, native, or several names separated by commas: the code gets a version for "
        "each (default: multi, such as x86-64,x86-64-v3,x86-64-v4-vnni,x86-64-v4-vbmi; the most basic processor if "
        "the target has only one version)",
    )
    option(code, "--features F", "processor features to add or remove, such as +avx2,+fma")
    models = ("pic", "static")
    option(code, "--relocation -relocation-model", "relocation model (default: pic)", choices=models, default="pic")
    add_threads(code, type=int, default=1, metavar="N", help="threads that share a run (default: 1)")
    option(code, "--precision", "how much rounding is allowed (default: exact)", choices=PRECISIONS, default="exact")
    option(code, "--overlap", "use less memory by letting other tensors overwrite the inputs during a call")
    option(code, "--steps", "add entry points NAME_step that run one layer per call")
    option(code, "--instrument", "call NAME_hook before and after each layer")
    option(code, "--embed-weights", "put the weights into the object, as NAME_weights")
    option(code, "--share", "entry points share inputs and outputs of the same name")
    option(code, "--save-asm -llvm-save-asm", "also write the code as assembly")
    option(code, "--save-ir", "also write the code as LLVM IR")
    glow_options.add(out)
    option(out, "--report", "print flash, RAM, stack and multiply-adds, layer by layer")
    option(out, "--json", "print one JSON object and nothing else")
    option(out, "-v --verbose_level N", "2: tracebacks", type=int, default=0)
    return out


CALLED = {
    name: f"--{name}"
    for name in ("api", "cpu", "entry", "features", "name", "overlap", "precision", "relocation", "target")
} | {"threads": "--num_threads", "input_shapes": "--shape"}
"""Command-line names of the library's options."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0 when done, 1 when a model cannot be bundled, 2 for wrong usage."""
    return _main(parser(), arguments)


def model_compiler(arguments: Sequence[str] | None = None) -> int:
    """The same command under the name of Glow's tool, and with that tool's default of --api."""
    return _main(parser("model-compiler", "static"), arguments)


def _main(known: argparse.ArgumentParser, arguments: Sequence[str] | None) -> int:
    options = known.parse_args(arguments)
    run = partial(_run, known.prog, options)
    return ended(known.prog, run, tracebacks=options.verbose_level >= 2, called=CALLED)


def _run(tool: str, options: argparse.Namespace) -> None:
    for note in glow_options.notes(options):
        print(f"{tool}: {note}", file=sys.stderr)
    files = _bundle(options)
    for note in files.notes if options.cpu != "native" else ():
        print(f"{tool}: {note}", file=sys.stderr)
    print(_json(files) if options.json else _text(files, options.report))


def _bundle(options: argparse.Namespace) -> Files:
    models, entries = glow_options.models(options), options.entry
    if not models:
        raise UsageError("no model is given, expected MODEL")
    target = glow_options.target(options)
    if len(models) > 1 and options.signature:
        raise UsageError(f"--signature is given with {len(models)} models, expected one")
    if entries and len(entries) != len(models):
        raise UsageError(f"--entry is given {len(entries)} times, expected once for each of {len(models)} models")
    twice = next((name for name in entries if entries.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"--entry names {twice!r} twice, expected distinct names")
    given = shapes(options.shape, "--shape")
    packages = [onert.load(model, given) for model in models]
    given |= glow_options.shapes(options, packages[0])
    source: onert.Package | dict[str, onert.Package] = packages[0]
    if len(packages) > 1:
        source = dict(zip(entries or _entries(models), packages, strict=True))
    written = partial(
        onert.bundle,
        source,
        options.output,
        name=options.name,
        entry=entries[0] if len(models) == 1 and entries else None,
        api=options.api,
        target=target,
        cpu=options.cpu,
        features=options.features,
        relocation=options.relocation,
        signatures=options.signature,
        threads=options.num_threads,
        precision=options.precision,
        overlap=options.overlap,
        save_asm=options.save_asm,
        save_ir=options.save_ir,
        embed_weights=options.embed_weights,
        steps=options.steps,
        instrument=options.instrument,
        share=options.share,
        report=options.report,
    )
    if len(packages) > 1 or len(options.signature) > 1:  # the shapes may belong to any of the entry points
        return written(shapes=given)
    signature = options.signature[0] if options.signature else None
    return compiled_with(packages[0], signature, given, lambda shapes: written(shapes=shapes), option="--shape")


def _entries(models: Sequence[str]) -> list[str]:
    """Distinct names of entry points, derived from the names of the models' files."""
    found: list[str] = []
    for model in models:
        found.append(apart(symbol(Path(model).stem), found))
    return found


def _text(files: Files, report: bool) -> str:
    lines = [f"{files.name} for {files.target}"]
    lines += [f"  {path}  {path.stat().st_size} bytes" for path in files.paths.values()]
    lines.append(
        f"  memory: constants {files.constants}, mutables {files.mutables}, activations {files.activations} bytes"
    )
    if len(files.versions) > 1:
        lines += [f"  for {v.target}: reads {v.constants} bytes of constants" for v in files.versions]
    return "\n".join([*lines, *(bundle_report.lines(files) if report else ())])


def _json(files: Files) -> str:
    return json.dumps(
        {
            **(bundle_report.values(files) if files.footprint is not None else {}),
            "name": files.name,
            "target": files.target,
            "files": {suffix: str(path) for suffix, path in files.paths.items()},
            "memory": {
                "constants": files.constants,
                "mutables": files.mutables,
                "activations": files.activations,
            },
        }
    )


if __name__ == "__main__":
    sys.exit(main())
