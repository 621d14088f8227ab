"""The test case of a package: arrays from its own files, or one sentence."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from zips import Entry, write_zip

from onert.frontend.nnpackage.test_case import test_case as read_test_case
from onert.ir import ModelError

FLOATS = np.float32([[1, 2, 3]])


def _package(folder: Path, suffix: str, content: bytes) -> Path:
    """A package with nothing but a test case, whose inputs and outputs are the same file."""
    (folder / "metadata/tc").mkdir(parents=True)
    (folder / "metadata/MANIFEST").write_text(json.dumps({"models": ["m.tflite"]}))
    for side in ("input", "expected"):
        (folder / f"metadata/tc/{side}{suffix}").write_bytes(content)
    return folder


def _npy(header: str, elements: bytes = b"", version: bytes = b"\1\0") -> bytes:
    return b"\x93NUMPY" + version + struct.pack("<H", len(header)) + header.encode() + elements


def _npz(array: bytes) -> bytes:
    return write_zip(Entry("0.npy", array, 8))


def _header(descr: str = "<f4", shape: str = "(1, 3)") -> str:
    return f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}}}"


def _hdf5(fill: Callable[[Any], object]) -> bytes:
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        fill(file)
    return buffer.getvalue()


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize(
    "array", [FLOATS, np.asfortranarray(np.arange(6).reshape(2, 3)), np.bool_(True), FLOATS[:, :0]]
)
def test_reads_arrays_saved_by_numpy(tmp_path: Path, save: Callable[..., None], array: Any) -> None:
    buffer = io.BytesIO()
    save(buffer, **{"0": array})
    case = read_test_case(_package(tmp_path / "p", ".npz", buffer.getvalue()))
    assert case is not None
    np.testing.assert_array_equal(case.inputs[0], array)


def _pickled() -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **{"0": np.array([FLOATS, None], object)})
    return buffer.getvalue()


BAD_NPZ: dict[str, tuple[bytes, str]] = {
    "no archive": (b"text", "no directory at its end"),
    "pickled objects": (_pickled(), "elements or dimensions that a tensor cannot have"),
    "no array": (_npz(b"text"), "is not a NumPy array"),
    "a header cut short": (_npz(_npy(_header())[:20]), "is not a NumPy array"),
    "a header that is no literal": (_npz(_npy("__import__('os').abort()")), "is not a NumPy array"),
    "a header nested deeply": (_npz(_npy("(" * 9000)), "is not a NumPy array"),
    "a header of another form": (_npz(_npy("[1]")), "is not a NumPy array"),
    "an element type of no form": (_npz(_npy(_header("whatever"))), "is not a NumPy array"),
    "elements that are missing": (_npz(_npy(_header())), "0 bytes of elements"),
    "a terabyte": (_npz(_npy(_header(shape="(1 << 40,)".replace("1 << 40", str(1 << 40))))), "0 bytes of elements"),
    "a negative dimension": (_npz(_npy(_header(shape="(-1, -3)"), FLOATS.tobytes())), "a tensor cannot have"),
    "a damaged member": (write_zip(Entry("0.npy", b"x" * 99, 8, packed=b"\xff" * 9)), "cannot be unpacked"),
    "another name": (write_zip(Entry("x.npy", b"")), "0.npy is not in the archive"),
}


@pytest.mark.parametrize(("content", "says"), BAD_NPZ.values(), ids=BAD_NPZ.keys())
def test_a_malformed_npz_is_refused(tmp_path: Path, content: bytes, says: str) -> None:
    with pytest.raises(ModelError, match=says) as caught:
        read_test_case(_package(tmp_path / "p", ".npz", content))
    assert "\n" not in str(caught.value)


def _external(file: Any) -> None:
    file.create_group("value").create_dataset("0", (4,), "u1", external=[("/etc/passwd", 0, 4)])


def _virtual(file: Any) -> None:
    layout = h5py.VirtualLayout((4,), "u1")
    layout[:] = h5py.VirtualSource("/etc/passwd", "x", (4,))
    file.create_group("value").create_virtual_dataset("0", layout)


def _linked_group(file: Any) -> None:
    file["value"] = h5py.ExternalLink("/etc/passwd", "/")


def _linked(file: Any) -> None:
    file.create_group("value")["0"] = h5py.ExternalLink("/etc/passwd", "/x")


BAD_HDF5: dict[str, tuple[bytes, str]] = {
    "no HDF5": (b"text", "it is not HDF5"),
    "cut short": (_hdf5(lambda f: f.create_group("value").create_dataset("0", data=FLOATS))[:700], "it is not HDF5"),
    "no group": (_hdf5(lambda f: f.create_dataset("value", data=FLOATS)), "not a group in the file itself"),
    "nothing": (_hdf5(lambda f: f.create_group("other")), "not a group in the file itself"),
    "another name": (_hdf5(lambda f: f.create_group("value").create_group("x")), "'0' is not a dataset"),
    "a group for a dataset": (_hdf5(lambda f: f.create_group("value").create_group("0")), "'0' is not a dataset"),
    "elements in another file": (_hdf5(_external), "has its elements in another file"),
    "elements of another file's dataset": (_hdf5(_virtual), "has its elements in another file"),
    "a group in another file": (_hdf5(_linked_group), "'value' is not a group in the file itself"),
    "a dataset in another file": (_hdf5(_linked), "'0' is not a dataset in the file itself"),
    "a terabyte": (
        _hdf5(lambda f: f.create_group("value").create_dataset("0", (1 << 40,), "u1", chunks=(1 << 20,))),
        "more than a file of",
    ),
    "text of any length": (
        _hdf5(lambda f: f.create_group("value").create_dataset("0", data=["a"], dtype=h5py.string_dtype())),
        "elements that a tensor cannot have",
    ),
}


@pytest.mark.parametrize(("content", "says"), BAD_HDF5.values(), ids=BAD_HDF5.keys())
def test_hdf5_data_must_come_from_the_file_itself(tmp_path: Path, content: bytes, says: str) -> None:
    with pytest.raises(ModelError, match=says):
        read_test_case(_package(tmp_path / "p", ".h5", content))
