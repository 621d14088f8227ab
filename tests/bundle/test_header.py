"""A bundle's header compiles without warnings, and its macros match the model."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from shared_material import REPOSITORY

import onert
from onert.backend import TensorInfo
from onert.bundle.macros import C_TYPES
from onert.bundle.names import identifier
from onert.bundle.request_types import Files
from onert.ir import Constant, DType, Package, Quantization, Resource, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.elementwise.binary import Binary, BinaryKind

from . import toys
from .machines import HOST, call, compile_program, needs_compiler

pytestmark = needs_compiler
STRICT = ("-Wall", "-Wextra", "-Werror", "-pedantic", "-Wconversion", "-Wcast-qual", "-Wshadow", "-Wundef")
BYTES = Quantization((0.5,), (7,))
FIRST = np.array([3, -1, 0.5], np.float32)


def _odd() -> Package:
    """Inputs with all kinds of scales, an empty shape, and state whose initial elements differ."""
    b = Builder()
    x = b.input(TensorType(DType.INT8, (2, 3), Quantization((1e-5,), (-3,))), "x")
    b.input(TensorType(DType.UINT8, (4,), Quantization((2.0625,), (128,))), "y/z:0")
    b.input(TensorType(DType.INT16, (), Quantization((0.1,), (0,))), "y_z_0")
    b.input(TensorType(DType.FLOAT32, (1, 2, 3, 4)), "int")
    floats = TensorType(DType.FLOAT32, (3,))
    total = b.variable(floats, "total")
    added = b.add(Binary(BinaryKind.ADD), total, b.input(floats, "more"))
    b.update(total, added)
    bytes_ = b.variable(TensorType(DType.INT8, (5,), BYTES), "bytes")
    b.update(bytes_, b.input(TensorType(DType.INT8, (5,), BYTES), "bytes in"))
    graph = b.model([added, x]).primary
    held = {total: Resource("", "n", Constant(FIRST))}
    operands = tuple(evolve(o, resource=held[at]) if at in held else o for at, o in enumerate(graph.operands))
    return Package((Subgraphs((evolve(graph, operands=operands),)),), "odd")


def _macro(package: onert.Package, variable: str, taken: set[str]) -> str:
    name = f"{package.name.upper()}_{identifier(variable)}"
    while name in taken:
        name += "__1"
    taken.add(name)
    return name


def _headers(folder: Path, target: str | None) -> Path:
    """A file that includes, twice each, the headers of bundles with all optional parts and with none."""
    options = {"steps": True, "instrument": True, "embed_weights": True}
    interfaces = {"both": options, "static": {}, "dynamic": {"threads": 2} if target is None else {}}
    lines = []
    for number, package in enumerate((toys.network("Odd */ name ö\n"), toys.lookup(), toys.counter(), _odd())):
        for api, more in interfaces.items():
            cpu = "native" if target is None else None
            files = onert.bundle(package, folder, name=f"{api}_{number}", api=api, target=target, cpu=cpu, **more)  # type: ignore[arg-type]
            lines += [f'#include "{files.name}.h"'] * 2
    onert.bundle(toys.network(), folder, name="versions", target="x86_64-linux-gnu")
    source = folder / "main.c"
    source.write_text("\n".join([*lines, '#include "versions.h"', "int main(void) { return 0; }", ""]))
    return source


@pytest.mark.parametrize("target", [None, "i386-linux-gnu"])
def test_the_header_compiles_with_strict_warnings_as_errors(tmp_path: Path, target: str | None) -> None:
    source = _headers(tmp_path, target)
    for standard in ("c99", "c11", "c++11", "c++17", "c++20"):
        compiler, language = ("g++", "-xc++") if "++" in standard else ("gcc", "-xc")
        if shutil.which(compiler) is not None:
            call(compiler, f"-std={standard}", language, *STRICT, "-c", source, "-o", tmp_path / "main.o")


@pytest.mark.parametrize("name", ["odd", "net", "digits"])
def test_the_macros_of_every_variable_match_the_model(tmp_path: Path, name: str) -> None:
    package = {"odd": _odd(), "net": toys.network()}.get(name)
    if package is None:
        package = evolve(onert.load(REPOSITORY / "nnpackage" / "examples" / "digits_int8"), name="digits")
    files = onert.bundle(package, tmp_path, name=name)
    program = onert.compile(package, num_threads=1)
    upper, taken, end = name.upper(), set[str](), 0
    checks = [
        f"{upper}_CONSTANT_MEM_SIZE == {files.paths['weights'].stat().st_size}",
        f"{upper}_MUTABLE_MEM_SIZE == {files.mutables}",
        f"{upper}_ACTIVATIONS_MEM_SIZE == {files.activations}",
        f"{upper}_MEM_ALIGN == 64",
        f"{upper}_HAS_CONFIG == 1",
        f"{upper}_HAS_STEP == 0",
        f"{upper}_HAS_RESET == {int(name == 'odd')}",
        f"{upper}_VERSIONS == {len(files.versions)}",
        f"{upper}_ERROR_COUNT == 0",
    ]
    state = (
        [TensorInfo("total", DType.FLOAT32, (3,)), TensorInfo("bytes", DType.INT8, (5,), BYTES)]
        if name == "odd"
        else []
    )
    for info in (*program.inputs, *program.outputs, *state):
        known = info.name or ("output_0" if info in program.outputs else "input_0")
        macro = _macro(package, known, taken) if package.name == name else f"{upper}_{identifier(known)}"
        t, shape = info.type, info.shape
        checks += [
            f"{macro} == {end}",
            f"{macro}_SIZE == {int(np.prod(shape))}",
            f"{macro}_BYTES == {t.nbytes}",
            f"{macro}_BYTES == {macro}_SIZE * sizeof({macro}_TYPE)",
            f"{macro}_RANK == {len(shape)}",
            f"sizeof((int[]){macro}_SHAPE) == {max(len(shape), 1)} * sizeof(int)",
            *(f"((int[]){macro}_SHAPE)[{at}] == {d}" for at, d in enumerate(shape)),
            f'strcmp(TEXT({macro}_TYPE), "{C_TYPES[info.dtype]}") == 0',
        ]
        q = info.quantization
        if q is not None:
            checks.append(f"{macro}_SCALE == {float(np.float32(q.scale)).hex()}f")
            checks.append(f"{macro}_ZERO_POINT == {q.zero_point}")
        else:
            checks.append(f'strcmp(TEXT({macro}_SCALE), "{macro}_SCALE") == 0')
        end += -(-t.nbytes // 64) * 64
    lines = [f"  if (!({check})) return {number % 255 + 1};" for number, check in enumerate(checks)]
    source = tmp_path / "main.c"
    source.write_text(
        "#include <string.h>\n#define TEXT_(x) #x\n#define TEXT(x) TEXT_(x)\nint main(void) {\n"
        + "\n".join(lines)
        + "\n  return 0;\n}\n"
    )
    compile_program(HOST, tmp_path, name, source, tmp_path / "main", "-Wno-sign-compare")
    call(tmp_path / "main")


HAVING: list[tuple[dict[str, Any], set[str]]] = [
    ({"api": "static"}, set()),
    ({"api": "dynamic"}, {"CONFIG"}),
    ({"threads": 2}, {"CONFIG", "STOP"}),
    ({"steps": True, "api": "static"}, {"STEP"}),
    ({"instrument": True, "api": "static"}, {"HOOK"}),
    ({"embed_weights": True, "api": "static"}, {"WEIGHTS"}),
    ({"cpu": "x86-64,x86-64-v3", "target": "x86_64-linux-gnu", "api": "static"}, {"VERSION"}),
]


@pytest.mark.parametrize(("options", "has"), HAVING, ids=lambda v: "-".join(sorted(v)) or "nothing")
def test_has_macros_match_the_features_of_the_bundle(tmp_path: Path, options: dict[str, Any], has: set[str]) -> None:
    files = onert.bundle(toys.lookup(), tmp_path, **{"cpu": "native", **options})
    macros = dict(re.findall(r"^#define LOOKUP_(\w+) +(.+)$", files.paths["h"].read_text(), re.MULTILINE))
    every = {"CONFIG", "RESET", "STOP", "VERSION", "STEP", "HOOK", "WEIGHTS"}
    assert {what for what in every if macros[f"HAS_{what}"] == "1"} == has
    assert {what for what in every if macros[f"HAS_{what}"] == "0"} == every - has
    assert macros["CONTENT_ID"] == "{" + ", ".join(f"0x{byte:02x}" for byte in _content(files)) + "}"
    assert macros["VERSION_NAMES"] == json.dumps([v.target for v in files.versions]).replace("[", "{").replace("]", "}")
    codes = {"ERROR_CONTENT": "(-1)", "ERROR_COUNT": "1", "ERROR_OPERATION_0_GATHER": "1"}
    if "STEP" in has:
        codes |= {"MORE": "(-2)", "ERROR_NO_LAYER": "(-3)"}
    assert {name: value for name, value in macros.items() if name.startswith(("ERROR", "MORE"))} == codes
    layers = {"LAYERS": "1", "LAYER_NAMES": '{"Gather operation 0"}'} if has & {"STEP", "HOOK"} else {}
    assert {name: value for name, value in macros.items() if name in ("LAYERS", "LAYER_NAMES")} == layers


def _content(files: Files) -> bytes:
    """The content id in object, weights and header: the end of the weights, which the object may embed."""
    if "weights" in files.paths:
        return files.paths["weights"].read_bytes()[-16:]
    found = re.search(r"^ \* Content: (\w+)$", files.paths["h"].read_text(), re.MULTILINE)
    assert found is not None
    assert bytes.fromhex(found[1]) in files.paths["o"].read_bytes()
    return bytes.fromhex(found[1])


def test_reset_restores_the_initial_state(tmp_path: Path) -> None:
    onert.bundle(_odd(), tmp_path, embed_weights=True)
    source = tmp_path / "main.c"
    values = ", ".join(f"{value!r}f" for value in FIRST.tolist())
    source.write_text(
        "#include <string.h>\n"
        "static GLOW_MEM_ALIGN(64) uint8_t mutables[ODD_MUTABLE_MEM_SIZE], activations[ODD_ACTIVATIONS_MEM_SIZE + 1];\n"
        "int main(void) {\n"
        f"  static const float first[] = {{{values}}};\n"
        "  const float *total = (const float *)(mutables + ODD_total); int round, i;\n"
        "  memset(mutables, 0xA5, sizeof mutables);\n"
        "  for (round = 0; round < 2; ++round) {\n"
        "    odd_reset(mutables);\n"
        "    for (i = 0; i < ODD_bytes_SIZE; ++i)\n"
        "      if (((int8_t *)(mutables + ODD_bytes))[i] != ODD_bytes_ZERO_POINT) return 1;\n"
        "    for (i = 0; i < 3; ++i) ((float *)(mutables + ODD_more))[i] = (float)(i + round);\n"
        "    if (odd(odd_weights, mutables, activations) != GLOW_SUCCESS) return 2;\n"
        "    for (i = 0; i < 3; ++i) if (total[i] != first[i] + (float)(i + round)) return 3;\n"
        "    if (odd(odd_weights, mutables, activations) != GLOW_SUCCESS) return 4;\n"
        "    for (i = 0; i < 3; ++i) if (total[i] != first[i] + 2 * (float)(i + round)) return 5;\n"
        "  }\n"
        "  return 0;\n"
        "}\n"
    )
    compile_program(HOST, tmp_path, "odd", source, tmp_path / "main")
    call(tmp_path / "main")
