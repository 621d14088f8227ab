"""Bundles match their documentation: files, symbols, sizes, errors."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from patience import PATIENCE

import onert
import onert.ir.builder
from onert.ir import Package
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.softmax import Softmax

from . import toys
from .machines import HOST, call, compile_program, defined, needs_compiler, run, undefined

pytestmark = needs_compiler


class Entry(ctypes.Structure):
    """SymbolTableEntry."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("offset", ctypes.c_size_t),
        ("size", ctypes.c_size_t),
        ("kind", ctypes.c_char),
    )


class Config(ctypes.Structure):
    """BundleConfig."""

    _fields_ = (
        *((name, ctypes.c_size_t) for name in ("constants", "mutables", "activations", "alignment", "count")),
        ("table", ctypes.POINTER(Entry)),
    )


def test_the_written_files_are_those_the_docs_name(tmp_path: Path) -> None:
    files = onert.bundle(toys.network(), tmp_path / "build" / "deep")
    assert sorted(path.name for path in (tmp_path / "build" / "deep").iterdir()) == ["net.h", "net.o", "net.weights"]
    assert files.paths["weights"].stat().st_size == files.constants
    assert files.target.split(",")[0] in ("x86-64", "aarch64")


def test_the_static_api_also_writes_the_weights_as_text(tmp_path: Path) -> None:
    files = onert.bundle(toys.network(), tmp_path, api="static", save_asm=True, save_ir=True)
    assert sorted(files.paths) == ["h", "ll", "o", "s", "weights", "weights.bin", "weights.txt"]
    assert files.paths["weights"].read_bytes() == files.paths["weights.bin"].read_bytes()
    lines = files.paths["weights.txt"].read_text().splitlines()
    assert lines[0].count(",") == 20
    values = bytes(int(word, 16) for line in lines for word in line.split(",") if word.strip())
    assert values == files.paths["weights"].read_bytes()
    assert "net_config" not in defined(HOST, files.paths["o"])


@pytest.mark.parametrize(
    "package", [toys.network(), toys.lookup(), toys.resized(), toys.counter()], ids=lambda p: p.name
)
def test_a_loaded_bundle_computes_the_reference_results(tmp_path: Path, package: Package) -> None:
    onert.bundle(package, tmp_path)
    loaded = onert.load_bundle(tmp_path)
    inputs = [np.array([0, 4, 2, 2], np.int32)] if package.name == "lookup" else toys.random_inputs(loaded.inputs())
    for found, wanted in zip(loaded.run(inputs).values(), toys.reference(package, inputs), strict=True):
        toys.require_close(found, wanted)


def test_the_config_struct_is_laid_out_as_documented(tmp_path: Path) -> None:
    files = onert.bundle(toys.network(), tmp_path)
    call("gcc", "-shared", files.paths["o"], "-o", tmp_path / "net.so", "-lm")
    config = Config.in_dll(ctypes.CDLL(str(tmp_path / "net.so")), "net_config")
    assert (config.constants, config.mutables, config.activations, config.alignment) == (
        files.constants, files.mutables, files.activations, 64,
    )  # fmt: skip
    table = [(e.name.decode(), e.offset, e.size, ord(e.kind)) for e in config.table[: config.count]]
    assert table[:2] == [("gpu_0/data", 0, 9 * 7 * 3, 1), ("output_0", 768, 7 * 5 * 6, 1)]
    assert all(kind == 0 for _, _, _, kind in table[2:])
    assert len({name for name, *_ in table}) == len(table)
    (bias,) = (row for row in table if row[0] == "conv/b")
    weights = files.paths["weights"].read_bytes()
    stored = np.frombuffer(weights, np.float32, bias[2], bias[1])
    data = toys.network().model.primary.operands[2].data
    assert data is not None
    assert stored.tolist() == data.array.tolist()


def test_exports_only_its_own_symbols_and_needs_only_the_c_library(tmp_path: Path) -> None:
    files = onert.bundle(toys.network(), tmp_path)
    assert defined(HOST, files.paths["o"]) == {"net", "net_config", "net_content_id", "net_version"}
    assert undefined(HOST, files.paths["o"]) <= {"floorf", "ceilf", "rintf"}


def test_a_c_program_can_run_a_bundle_with_only_its_macros(tmp_path: Path) -> None:
    package = toys.network()
    onert.bundle(package, tmp_path, api="static")
    source = tmp_path / "main.c"
    source.write_text(
        "#include <stdio.h>\n"
        "static GLOW_MEM_ALIGN(NET_MEM_ALIGN) uint8_t constants[NET_CONSTANT_MEM_SIZE] = {\n"
        '#include "net.weights.txt"\n'
        "};\n"
        "static GLOW_MEM_ALIGN(NET_MEM_ALIGN) uint8_t mutables[NET_MUTABLE_MEM_SIZE];\n"
        "static GLOW_MEM_ALIGN(NET_MEM_ALIGN) uint8_t activations[NET_ACTIVATIONS_MEM_SIZE];\n"
        "int main(void) {\n"
        "  static const int shape[NET_output_0_RANK] = NET_output_0_SHAPE;\n"
        "  NET_gpu_0_data_TYPE *data = (NET_gpu_0_data_TYPE *)GLOW_GET_ADDR(mutables, NET_gpu_0_data);\n"
        "  int i;\n"
        "  for (i = 0; i < NET_gpu_0_data_SIZE; ++i) data[i] = (float)i / NET_gpu_0_data_SIZE;\n"
        "  if (net(constants, mutables, activations) != GLOW_SUCCESS || shape[3] != 6) return 1;\n"
        "  for (i = 0; i < NET_output_0_SIZE; ++i)\n"
        '    printf("%.9g\\n", ((float *)GLOW_GET_ADDR(mutables, NET_output_0))[i]);\n'
        "  return 0;\n"
        "}\n"
    )
    compile_program(HOST, tmp_path, "net", source, tmp_path / "main")
    found = np.array(call(tmp_path / "main").split(), np.float32)
    given = (np.arange(9 * 7 * 3, dtype=np.float32) / np.float32(9 * 7 * 3)).reshape(1, 9, 7, 3)
    (wanted,) = toys.reference(package, [given])
    toys.require_close(found, wanted.reshape(-1))


def test_symbols_are_looked_up_by_their_full_names(tmp_path: Path) -> None:
    onert.bundle(toys.network(), tmp_path)
    source = tmp_path / "main.c"
    source.write_text(
        "int main(void) {\n"
        '  const SymbolTableEntry *data = bundle_find_symbol(&CONFIG, "gpu_0/data");\n'
        "  if (data == 0 || data->kind != 1 || data->size != 189) return 1;\n"
        '  return bundle_find_symbol(&CONFIG, "gpu_0") != 0 || bundle_find_symbol(&CONFIG, "gpu_0/data1") != 0;\n'
        "}\n"
    )
    compile_program(HOST, tmp_path, "net", source, tmp_path / "main")
    call(tmp_path / "main")


def test_two_bundles_link_into_one_program(tmp_path: Path) -> None:
    for name, seed in (("one", 0), ("two", 1)):
        onert.bundle(toys.network(name, seed), tmp_path)
    source = tmp_path / "main.c"
    source.write_text(
        '#include "one.h"\n#include "two.h"\n'
        "int main(void) { return (void *)one == (void *)two || one_config.numSymbols != two_config.numSymbols; }\n"
    )
    call("gcc", "-Wall", "-Werror", source, tmp_path / "one.o", tmp_path / "two.o", "-o", tmp_path / "main", "-lm")
    call(tmp_path / "main")
    for name, seed in (("one", 0), ("two", 1)):
        loaded = onert.load_bundle(tmp_path, name)
        inputs = toys.random_inputs(loaded.inputs())
        toys.require_close(*loaded.run(inputs).values(), *toys.reference(toys.network(name, seed), inputs))


def test_an_index_out_of_range_returns_an_error_code(tmp_path: Path) -> None:
    onert.bundle(toys.lookup(), tmp_path)
    loaded = onert.load_bundle(tmp_path)
    with pytest.raises(onert.ExecutionError, match=r"returned error code 1: .*Gather"):
        loaded.run([np.array([0, 5, 1, 1], np.int32)])
    assert loaded.run([np.array([0, 1, 2, 3], np.int32)])
    assert run(HOST, tmp_path, [np.array([-1, 0, 0, 0], np.int32)])[0] == 1


def test_state_is_stored_in_mutables_and_cleared_by_reset(tmp_path: Path) -> None:
    onert.bundle(toys.counter(), tmp_path)
    loaded = onert.load_bundle(tmp_path)
    ones = np.ones(3, np.float32)
    for _ in range(2):
        totals = [next(iter(loaded.run([ones]).values())).tolist() for _ in range(3)]
        assert totals == [[1, 1, 1], [2, 2, 2], [3, 3, 3]]
        assert loaded.array("total").tolist() == [3, 3, 3]
        loaded.reset()
    assert "counter_reset" in (tmp_path / "counter.h").read_text()


def test_calls_with_separate_memory_run_concurrently(tmp_path: Path) -> None:
    package = toys.network()
    onert.bundle(package, tmp_path)
    first = onert.load_bundle(tmp_path)
    bundles = [first, *(first.another() for _ in range(3))]
    wanted = [toys.reference(package, toys.random_inputs(first.inputs(), seed)) for seed in range(4)]
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(200):
            (found,) = bundles[number].run(toys.random_inputs(first.inputs(), number)).values()
            if not np.allclose(found, wanted[number][0], atol=1e-4):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_worker_threads_share_a_run_and_exit_on_stop(tmp_path: Path) -> None:
    package = toys.network()
    files = onert.bundle(package, tmp_path, threads=3)
    assert defined(HOST, files.paths["o"]) == {"net", "net_config", "net_content_id", "net_stop", "net_version"}
    inputs = toys.random_inputs(onert.compile(package, num_threads=1).inputs)
    (wanted,) = toys.reference(package, inputs)
    for _ in range(3):
        code, (found,) = run(HOST, tmp_path, inputs)
        assert code == 0
        toys.require_close(found, wanted)
    script = (
        "import os, sys; sys.path[:0] = eval(sys.argv[2]); import onert; from bundle import toys;"
        "b = onert.load_bundle(sys.argv[1]); x = toys.random_inputs(b.inputs());"
        "tasks = lambda: len(os.listdir('/proc/self/task'));"
        "before = tasks(); first, = b.run(x).values(); assert tasks() == before + 2;"
        "child = os.fork(); again, = b.run(x).values(); assert (again == first).all();"
        "child or os._exit(0); assert os.waitpid(child, 0)[1] == 0;"
        "b.stop(); assert tasks() == before; again, = b.run(x).values(); assert (again == first).all()"
    )
    command = [sys.executable, "-c", script, str(tmp_path), repr([*sys.path, str(Path(__file__).parents[1])])]
    subprocess.run(command, check=True, timeout=PATIENCE, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})


def test_the_same_model_produces_identical_files(tmp_path: Path) -> None:
    script = (
        "import sys, pathlib; sys.path[:0] = eval(sys.argv[2]); import onert; from bundle import toys;"
        "onert.bundle(toys.network(), sys.argv[1], api='both', save_ir=True)"
    )
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [
            sys.executable,
            "-c",
            script,
            str(tmp_path / seed),
            repr([*sys.path, str(Path(__file__).parents[1])]),
        ]
        subprocess.run(command, check=True, env=environment, cwd=tmp_path)
    names = sorted(path.name for path in (tmp_path / "1").iterdir())
    assert len(names) == 6
    for name in names:
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes(), name


def test_dynamic_input_shapes_must_be_fixed_when_bundling(tmp_path: Path) -> None:
    package = toys.network(batch=None)
    with pytest.raises(onert.CompileError, match="known before the run: give it one"):
        onert.bundle(package, tmp_path)
    for source in (package, onert.compile(package, num_threads=1)):
        onert.bundle(source, tmp_path, shapes={"gpu_0/data": (2, 9, 7, 3)})
        loaded = onert.load_bundle(tmp_path)
        inputs = toys.random_inputs(loaded.inputs())
        assert inputs[0].shape == (2, 9, 7, 3)
        shapes = {"input_shapes": {0: (2, 9, 7, 3)}}
        toys.require_close(*loaded.run(inputs).values(), *toys.reference(package, inputs, **shapes))


def test_several_entry_points_share_constants(tmp_path: Path) -> None:
    one = onert.bundle(toys.network(), tmp_path / "one")
    both = onert.bundle({"first": toys.network(), "second": toys.network()}, tmp_path / "both", name="pair")
    assert both.constants == one.constants
    assert both.mutables == 2 * one.mutables
    assert defined(HOST, both.paths["o"]) == {"first", "second", "pair_config", "pair_content_id", "pair_version"}
    loaded = onert.load_bundle(tmp_path / "both")
    for entry in loaded.entries:
        assert loaded.inputs(entry)[0].name == f"{entry}/gpu_0/data"
        inputs = toys.random_inputs(loaded.inputs(entry))
        toys.require_close(*loaded.run(inputs, entry).values(), *toys.reference(toys.network(), inputs))


@pytest.mark.parametrize("order", [("small", "large"), ("large", "small")])
def test_entry_points_share_an_arena_as_large_as_the_largest_needs(tmp_path: Path, order: tuple[str, str]) -> None:
    b = onert.ir.builder.Builder()
    x = b.input(onert.ir.TensorType(onert.ir.DType.FLOAT32, (4,)), "x")
    chain = b.add(Unary(UnaryKind.TANH), b.add(Softmax(), b.add(Softmax(), x)))
    models = {"small": Package((b.model([chain]),)), "large": toys.network()}
    needed = [onert.bundle(models[name], tmp_path / name, cpu="native").activations for name in order]
    both = onert.bundle({name: models[name] for name in order}, tmp_path / "both", name="pair", cpu="native")
    assert both.activations == max(needed) > min(needed)


def test_signatures_become_entry_points(tmp_path: Path) -> None:
    package = toys.halves()
    alone = onert.bundle(package, tmp_path / "one", signatures=["encode"])
    files = onert.bundle(package, tmp_path / "both", signatures=["encode", "decode:0"])
    assert files.constants == alone.constants
    loaded = onert.load_bundle(tmp_path / "both")
    assert loaded.entries == ("halves_encode", "halves_decode_0")
    for entry, key in zip(loaded.entries, ("encode", "decode:0"), strict=True):
        assert [info.name for info in loaded.inputs(entry)] == [f"{entry}/x"]
        inputs = toys.random_inputs(loaded.inputs(entry))
        toys.require_close(*loaded.run(inputs, entry).values(), *toys.reference(package, inputs, signature=key))


BAD: list[tuple[str, Callable[[Path], Any]]] = [
    ("is for none of the architectures", lambda p: onert.bundle(toys.network(), p, target="pdp11")),
    ("for the system 'haiku'", lambda p: onert.bundle(toys.network(), p, target="x86_64-pc-haiku")),
    ("expected gnu or msvc at its end", lambda p: onert.bundle(toys.network(), p, target="x86_64-pc-windows")),
    ("needs x86_64 or aarch64", lambda p: onert.bundle(toys.network(), p, target="riscv64-apple-darwin")),
    ("several threads need Linux", lambda p: onert.bundle(toys.network(), p, target="x86_64-w64-mingw32", threads=2)),
    ("the processor 'pentium' is not known", lambda p: onert.bundle(toys.network(), p, target="x86_64", cpu="pentium")),
    ("the feature 'avx2' is not known", lambda p: onert.bundle(toys.network(), p, target="x86_64", features="avx2")),
    ("cannot be taken from", lambda p: onert.bundle(toys.network(), p, target="x86-64-v3", features="-avx2")),
    ("relocation is 'rwpi'", lambda p: onert.bundle(toys.network(), p, relocation="rwpi")),
    ("api is 'fancy'", lambda p: onert.bundle(toys.network(), p, api="fancy")),
    ("threads is 0", lambda p: onert.bundle(toys.network(), p, threads=0)),
    ("threads is 100000, expected 1 to 1024", lambda p: onert.bundle(toys.network(), p, threads=100_000)),
    ("name is 'a-b', expected a C identifier", lambda p: onert.bundle(toys.network(), p, name="a-b")),
    ("entry is 'int'", lambda p: onert.bundle(toys.network(), p, entry="int")),
    ("no program is given", lambda p: onert.bundle({}, p)),
    ("there is no signature 'serve'", lambda p: onert.bundle(toys.network(), p, signatures=["serve"])),
    ("there is no input 'y'", lambda p: onert.bundle(toys.network(), p, shapes={"y": (1,)})),
]


@pytest.mark.parametrize(("sentence", "bad"), BAD, ids=[sentence for sentence, _ in BAD])
def test_invalid_arguments_raise_a_one_line_error_and_write_no_file(
    tmp_path: Path, sentence: str, bad: Callable[[Path], Any]
) -> None:
    with pytest.raises(onert.OnertError) as raised:
        bad(tmp_path / "out")
    assert sentence in str(raised.value)
    assert "\n" not in str(raised.value)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_the_directory_unchanged(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("here")
    with pytest.raises(onert.CompileError, match=r"cannot be written to .*Not a directory"):
        onert.bundle(toys.network(), tmp_path / "file" / "out")
    (tmp_path / "net.h").mkdir()
    with pytest.raises(onert.CompileError, match="cannot be written"):
        onert.bundle(toys.network(), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "net.h"]


def test_loading_rejects_incomplete_foreign_and_corrupt_bundles(tmp_path: Path) -> None:
    with pytest.raises(onert.ExecutionError, match="holds the bundles none"):
        onert.load_bundle(tmp_path)
    (tmp_path / "net.h").write_text("#define X")
    with pytest.raises(onert.ExecutionError, match="is not the header of a bundle"):
        onert.load_bundle(tmp_path)
    files = onert.bundle(toys.network(), tmp_path, target="riscv64-linux-gnu")
    with pytest.raises(onert.ExecutionError, match="cannot be linked for this machine"):
        onert.load_bundle(tmp_path)
    files = onert.bundle(toys.network(), tmp_path)
    for content in (b"short", files.paths["weights"].read_bytes() + b"\0"):
        files.paths["weights"].write_bytes(content)
        with pytest.raises(onert.ExecutionError, match=f"has {len(content)} bytes, expected"):
            onert.load_bundle(tmp_path)
