"""Optional parts of a bundle: embedded weights, steps, hooks, shared variables, content ids, reports."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve
from shared_material import REPOSITORY

import onert
from onert.ir import DType, Package, Subgraphs, TensorType
from onert.ir.builder import Builder
from onert.ir.ops.elementwise.binary import Binary, BinaryKind
from onert.ir.ops.elementwise.unary import Unary, UnaryKind
from onert.ir.ops.reduction.softmax import Softmax
from onert.tools.bundle import main

from . import toys
from .machines import HOST, call, compile_program, defined, needs_compiler

pytestmark = needs_compiler
DIGITS = REPOSITORY / "nnpackage" / "examples" / "digits_int8"

AREAS = """
static GLOW_MEM_ALIGN(64) uint8_t mutables[UPPER_MUTABLE_MEM_SIZE];
static GLOW_MEM_ALIGN(64) uint8_t activations[UPPER_ACTIVATIONS_MEM_SIZE + 1];
"""
AGAIN = "static GLOW_MEM_ALIGN(64) uint8_t again[UPPER_MUTABLE_MEM_SIZE];"
FILL = "  size_t i; for (i = 0; i < sizeof mutables; ++i) again[i] = mutables[i] = (uint8_t)(i * 37 % 11);\n"


def _runs(folder: Path, name: str, body: str, before: str = "") -> None:
    """Require that a C program with this main function returns 0."""
    source = folder / "main.c"
    text = f"#include <string.h>\n{AREAS}{before}\nint main(void) {{\n{body}\n}}\n"
    source.write_text(text.replace("UPPER", name.upper()))
    compile_program(HOST, folder, name, source, folder / "main")
    call(folder / "main")


@pytest.mark.parametrize("threads", [1, 2])
def test_embedded_weights_equal_those_of_the_weights_file(tmp_path: Path, threads: int) -> None:
    beside = onert.bundle(toys.network(), tmp_path / "beside")
    onert.bundle(toys.network(), tmp_path, embed_weights=True, api="both", threads=threads)
    assert sorted(path.name for path in tmp_path.glob("*.*")) == ["net.h", "net.o"]
    loaded = onert.load_bundle(tmp_path)
    inputs = toys.random_inputs(loaded.inputs())
    toys.require_close(*loaded.run(inputs).values(), *toys.reference(toys.network(), inputs))
    if threads == 1:
        weights = ", ".join(map(str, beside.paths["weights"].read_bytes()))
        body = (
            f"  static const uint8_t beside[] = {{{weights}}};\n"
            "  if (sizeof beside != sizeof net_weights || (uintptr_t)net_weights % 64 != 0) return 1;\n"
            "  if (memcmp(beside, net_weights, sizeof beside - 16) != 0) return 2;\n"
            "  if (net_verify(net_weights) != GLOW_SUCCESS) return 3;\n"
            "  return net(net_weights, mutables, activations);"
        )
        _runs(tmp_path, "net", body)


def test_weights_of_another_bundle_return_an_error_code(tmp_path: Path) -> None:
    onert.bundle(toys.network(), tmp_path, api="both")
    body = (
        "  static GLOW_MEM_ALIGN(64) uint8_t weights[] = {\n"
        '#include "net.weights.txt"\n'
        "  };\n"
        "  size_t i;\n"
        "  if (net_verify(weights) != GLOW_SUCCESS || net(weights, mutables, activations) != GLOW_SUCCESS) return 1;\n"
        "  for (i = sizeof weights - 16; i < sizeof weights; ++i) {\n"
        "    weights[i] ^= 1;\n"
        "    if (net(weights, mutables, activations) != NET_ERROR_CONTENT) return 2;\n"
        "    if (net_verify(weights) != NET_ERROR_CONTENT) return 3;\n"
        "    weights[i] ^= 1;\n"
        "  }\n"
        "  return net(weights, mutables, activations);"
    )
    _runs(tmp_path, "net", body)


def test_files_of_different_bundles_are_not_loaded_together(tmp_path: Path) -> None:
    one = onert.bundle(toys.network(seed=0), tmp_path / "one")
    other = onert.bundle(toys.network(seed=1), tmp_path / "other")
    again = onert.bundle(toys.network(seed=0), tmp_path / "again")
    assert again.paths["weights"].read_bytes() == one.paths["weights"].read_bytes()
    content = one.paths["weights"].read_bytes()
    one.paths["weights"].write_bytes(other.paths["weights"].read_bytes())
    with pytest.raises(onert.ExecutionError, match=r"net\.weights and net\.o were not made together"):
        onert.load_bundle(tmp_path / "one")
    one.paths["weights"].write_bytes(content)
    one.paths["o"].write_bytes(other.paths["o"].read_bytes())
    with pytest.raises(onert.ExecutionError, match=r"net\.o and net\.h were not made together"):
        onert.load_bundle(tmp_path / "one")


@pytest.mark.parametrize("threads", [1, 2])
def test_running_layer_by_layer_equals_a_whole_run(tmp_path: Path, threads: int) -> None:
    onert.bundle(onert.load(DIGITS), tmp_path, name="net", steps=True, embed_weights=True, threads=threads)
    body = FILL + (
        "  uint32_t layer = 0, steps = 0; int code;\n"
        "  const char *const names[NET_LAYERS] = NET_LAYER_NAMES;\n"
        "  if (net(net_weights, mutables, activations) != GLOW_SUCCESS) return 1;\n"
        "  memset(activations, 0xAA, sizeof activations);\n"
        "  do {\n"
        "    if (layer != steps % NET_LAYERS || names[layer][0] == 0) return 2;\n"
        "    code = net_step(net_weights, again, activations, &layer), ++steps;\n"
        "  } while (code == NET_MORE);\n"
        "  if (code != GLOW_SUCCESS || layer != 0 || steps != NET_LAYERS || steps < 4) return 3;\n"
        "  layer = NET_LAYERS;\n"
        "  if (net_step(net_weights, again, activations, &layer) != NET_ERROR_NO_LAYER || layer != 0) return 4;\n"
        "  return memcmp(mutables, again, sizeof mutables) != 0;"
    )
    _runs(tmp_path, "net", body, AGAIN)


def _failing() -> Package:
    """The running sum of all inputs, updated only if the index is valid, followed by a softmax."""
    b = Builder()
    x, index = b.input(TensorType(DType.FLOAT32, (3,)), "x"), b.input(TensorType(DType.INT32, (1,)), "index")
    total = b.variable(TensorType(DType.FLOAT32, (3,)), "total")
    added = b.add(Binary(BinaryKind.ADD), x, total)
    b.update(total, added)
    row = b.add(toys.Gather(0), added, index)
    return Package((b.model([b.add(Softmax(), row), added]),), "sum")


@pytest.mark.parametrize("steps", [False, True], ids=["run", "steps"])
def test_state_advances_only_when_a_run_succeeds(tmp_path: Path, steps: bool) -> None:
    onert.bundle(_failing(), tmp_path, steps=steps, embed_weights=True)
    once = "sum(sum_weights, mutables, activations)"
    one = once if not steps else "steps()"
    before = (
        "static int steps(void) {\n"
        "  uint32_t layer = 0; int code;\n"
        "  do code = sum_step(sum_weights, mutables, activations, &layer); while (code == SUM_MORE);\n"
        "  return code;\n"
        "}\n"
    )
    body = (
        "  float *x = (float *)(mutables + SUM_x), *total = (float *)(mutables + SUM_total); int i, *index;\n"
        "  index = (int *)(mutables + SUM_index);\n"
        "  sum_reset(mutables);\n"
        "  for (i = 0; i < 3; ++i) x[i] = 1;\n"
        f"  *index = 7; if ({one} != SUM_ERROR_OPERATION_1_GATHER || total[0] != 0) return 1;\n"
        f"  *index = 2; if ({one} != GLOW_SUCCESS || total[2] != 1) return 2;\n"
        f"  *index = -9; if ({one} != SUM_ERROR_OPERATION_1_GATHER || total[1] != 1) return 3;\n"
        f"  *index = 0; if ({one} != GLOW_SUCCESS || total[0] != 2 || total[1] != 2 || total[2] != 2) return 4;\n"
        "  sum_reset(mutables);\n"
        "  return total[0] != 0 || SUM_HAS_RESET != 1 || SUM_ERROR_COUNT != 1;"
    )
    _runs(tmp_path, "sum", body, before if steps else "")


@pytest.mark.parametrize("threads", [1, 2])
def test_a_hook_is_called_around_every_layer(tmp_path: Path, threads: int) -> None:
    options = {"instrument": True, "embed_weights": True, "cpu": "native"}
    onert.bundle(onert.load(DIGITS), tmp_path, name="net", threads=threads, **options)  # type: ignore[arg-type]
    before = (
        "static uint32_t called, wrong;\n"
        "void net_hook(uint32_t layer, uint32_t ended) {\n"
        "  wrong += layer != called / 2 || ended != called % 2;\n"
        "  ++called;\n"
        "}\n"
    )
    body = "  return net(net_weights, mutables, activations) != 0 || wrong != 0 || called != 2 * NET_LAYERS;"
    _runs(tmp_path, "net", body, before)
    assert "net_hook" in defined(HOST, tmp_path / "net.o")
    _runs(tmp_path, "net", "  return net(net_weights, mutables, activations);")


def _coder(key: str, kind: UnaryKind, given: str, made: str) -> Package:
    b = Builder(key)
    x = b.input(TensorType(DType.FLOAT32, (5,)), given)
    y = b.add(Unary(kind), x)
    graph = b.model([y]).primary
    operands = tuple(evolve(o, name=made) if at == y else o for at, o in enumerate(graph.operands))
    return Package((Subgraphs((evolve(graph, operands=operands),)),), key)


def test_entries_share_variables_of_the_same_name_on_request(tmp_path: Path) -> None:
    models = {
        "encode": _coder("encode", UnaryKind.ABS, "x", "code"),
        "decode": _coder("decode", UnaryKind.NEG, "code", "y"),
    }
    apart = onert.bundle(models, tmp_path / "apart", name="coder")
    shared = onert.bundle(models, tmp_path / "shared", name="coder", share=True)
    assert (apart.mutables, shared.mutables) == (256, 192)
    loaded = onert.load_bundle(tmp_path / "shared")
    loaded.run([np.array([1, -2, 3, -4, 5], np.float32)], "encode")
    loaded.call("decode")
    assert loaded.array("y").tolist() == [-1, -2, -3, -4, -5]
    text = (tmp_path / "shared" / "coder.h").read_text()
    assert text.count("#define CODER_code ") == 1
    assert "CODER_encode_code" not in text


EVERYWHERE = (
    None,
    "i386-linux-gnu",
    "aarch64-none-elf",
    "armv7-linux-gnueabihf",
    "riscv64-linux-gnu",
    "riscv32-none-elf",
    "wasm32",
)


@pytest.mark.parametrize("target", EVERYWHERE)
def test_a_report_lists_operations_flash_and_stack(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], target: str | None
) -> None:
    more = [] if target is None else ["--target", target]
    assert main([str(DIGITS), "-o", str(tmp_path), "--report", "--json", *more]) == 0
    said = json.loads(capsys.readouterr().out)
    operations = {layer["operation"]: layer for layer in said["layers"]}
    assert {"Conv2D", "DepthwiseConv2D", "FullyConnected", "Softmax"} <= set(operations)
    dense = operations["FullyConnected"]
    assert dense["multiply_adds"] <= dense["constants"] <= 2 * dense["multiply_adds"]
    assert said["multiply_adds"] == sum(layer["multiply_adds"] for layer in said["layers"])
    assert said["flash"]["constants"] == (tmp_path / "digits_int8.weights").stat().st_size
    assert 4_000 < said["flash"]["code"] <= (tmp_path / "digits_int8.o").stat().st_size
    assert 100 < said["stack"] < 16_000


def test_the_text_report_matches_the_json_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = ["--target", "thumbv7em-none-eabihf"]
    assert main([str(DIGITS), "-o", str(tmp_path), "--report", *more]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert main([str(DIGITS), "-o", str(tmp_path), "--report", "--json", *more]) == 0
    said = json.loads(capsys.readouterr().out)
    (total,) = (line for line in lines if "flash:" in line)
    assert re.search(r"\d+", total)[0] == str(sum(said["flash"].values()))  # type: ignore[index]
    rows = [line.split()[-4:] for line in lines[-len(said["layers"]) :]]
    assert [(row[0], int(row[1])) for row in rows] == [(x["operation"], x["multiply_adds"]) for x in said["layers"]]


def test_the_stack_used_is_at_most_that_reported(tmp_path: Path) -> None:
    files = onert.bundle(onert.load(DIGITS), tmp_path, name="net", embed_weights=True, report=True)
    assert files.footprint is not None
    before = (
        "#include <pthread.h>\n"
        "static GLOW_MEM_ALIGN(4096) uint8_t stack[1 << 16];\n"
        "static void *idle(void *x) { return x; }\n"
        "static void *work(void *x) { (void)net(net_weights, mutables, activations); return x; }\n"
        "static size_t taken(void *(*f)(void *)) {\n"
        "  pthread_t thread; pthread_attr_t attributes; size_t i;\n"
        "  memset(stack, 0xA5, sizeof stack);\n"
        "  pthread_attr_init(&attributes); pthread_attr_setstack(&attributes, stack, sizeof stack);\n"
        "  pthread_create(&thread, &attributes, f, 0); pthread_join(thread, 0);\n"
        "  for (i = 0; stack[i] == 0xA5; ++i) {}\n"
        "  return sizeof stack - i;\n"
        "}\n"
    )
    reported = files.footprint.stack
    body = f"  size_t least = taken(idle), most = taken(work);\n  return most > least + {reported} + 256;"
    _runs(tmp_path, "net", body, before)
