"""The LeNet example works as its README says, built by one `make`."""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from shared_material import REPOSITORY, SHARED, needs_shared

import onert

from . import toys
from .machines import call, needs_compiler

LENET = REPOSITORY / "docs" / "examples" / "lenet"
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "backends")])}
TOOL = f"{sys.executable} -m onert.tools.bundle"

pytestmark = needs_compiler
needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The build folder, which also contains make's output."""
    folder = tmp_path_factory.mktemp("lenet")
    command = ["make", "-C", str(LENET), f"BUILD={folder}", f"ONERT_BUNDLE={TOOL}"]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (folder / "printed").write_text(done.stdout)
    return folder


@needs_make
def test_make_builds_a_program_that_classifies_the_images(build: Path) -> None:
    found = re.findall(r"images/(\d)\.png\nResult: (\d)\nConfidence: (\d\.\d+)\n", (build / "printed").read_text())
    assert len(found) == 10
    for digit, result, confidence in found:
        assert digit == result
        assert float(confidence) > 0.9


@needs_make
@pytest.mark.skipif(shutil.which("aarch64-linux-gnu-gcc") is None, reason="aarch64-linux-gnu-gcc is not installed")
@pytest.mark.skipif(shutil.which("qemu-aarch64") is None, reason="qemu-aarch64 is not installed")
def test_the_readme_s_command_for_another_machine_works(tmp_path: Path) -> None:
    (line,) = (line for line in (LENET / "README.md").read_text().splitlines() if line.startswith("make run "))
    given = [f"BUILD={tmp_path}", f"ONERT_BUNDLE={TOOL}", f"IMAGES={LENET / 'images' / '4.png'}"]
    command = ["make", "-C", str(LENET), *shlex.split(line)[1:], *given]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Result: 4" in done.stdout


@needs_make
def test_memory_sizes_are_those_of_caffe_s_lenet(build: Path) -> None:
    macros = dict(re.findall(r"#define LENET_MNIST_(\w+) +(\d+)$", (build / "lenet_mnist.h").read_text(), re.MULTILINE))
    assert macros["MUTABLE_MEM_SIZE"] == "3200"
    assert int(macros["ACTIVATIONS_MEM_SIZE"]) <= 57600
    assert abs(int(macros["CONSTANT_MEM_SIZE"]) - 3 * 1724672) <= 0.02 * 1724672 or platform.machine() != "x86_64"
    assert macros["MEM_ALIGN"] == "64"
    assert (macros["data"], macros["softmax"]) == ("0", "3136")


@needs_make
@needs_shared
def test_the_program_recognises_mnist_digits(build: Path) -> None:
    images = sorted((SHARED / "data" / "mnist").glob("*.png"))
    printed = call(build / "lenet_mnist_standalone", build / "lenet_mnist.weights", *images)
    found = re.findall(r"/(\d)_\d+\.png\nResult: (\d)", printed)
    assert len(found) == 10
    # The model was trained on digits from another country, where sevens look different.
    assert sum(digit == result for digit, result in found) >= 9


@needs_make
def test_a_file_that_is_not_an_image_is_reported_in_one_line(build: Path, tmp_path: Path) -> None:
    (tmp_path / "cut.png").write_bytes((LENET / "images" / "3.png").read_bytes()[:60])
    (tmp_path / "text").write_text("no image")
    files = [tmp_path / "cut.png", tmp_path / "text", tmp_path / "nothing", LENET / "images" / "3.png"]
    command = [build / "lenet_mnist_standalone", build / "lenet_mnist.weights", *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 3
    assert "Result: 3" in done.stdout


def test_the_bundle_computes_the_model_s_results(tmp_path: Path) -> None:
    package = onert.load(LENET / "lenet_mnist.tflite")
    onert.bundle(package, tmp_path, signatures=["serving_default"])
    loaded = onert.load_bundle(tmp_path)
    assert [info.name for info in (*loaded.inputs(), *loaded.outputs())] == ["data", "softmax"]
    classes = set()
    for seed in range(10):
        inputs = [array * 4 for array in toys.random_inputs(loaded.inputs(), seed)]
        (found,) = loaded.run(inputs).values()
        (wanted,) = toys.reference(package, inputs, signature="serving_default")
        toys.require_close(found, wanted)
        classes.add(int(found.argmax()))
    assert len(classes) > 1
