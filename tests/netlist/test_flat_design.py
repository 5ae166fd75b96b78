"""The compact form of a flat design: exact round trips, and rejection of other files."""

from __future__ import annotations

import dataclasses
import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from placement.netlist.errors import DesignError
from placement.netlist.flat_design import FlatDesign, read_flat, write_flat
from placement.netlist.formats.def_design import read_lef_def
from placement.netlist.load import CLUSTERS_NAME, read_clusters
from tests.support.small_lef_def import DEF, LEF


@pytest.fixture
def chip(tmp_path: Path) -> FlatDesign:
    (tmp_path / "cells.lef").write_text(LEF)
    (tmp_path / "chip.def").write_text(DEF)
    return read_lef_def([tmp_path / "cells.lef"], tmp_path / "chip.def")[0]


def assert_same(one: object, other: object, path: str = "design") -> None:
    """Compares field by field; masters' pins and standard cells' shapes are not stored."""
    assert type(one) is type(other), path
    if dataclasses.is_dataclass(one):
        for field in dataclasses.fields(one):
            if field.name not in ("pins", "obstructions", "pin_shapes"):
                assert_same(getattr(one, field.name), getattr(other, field.name), f"{path}.{field.name}")
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype, path  # type: ignore[attr-defined]
        np.testing.assert_array_equal(one, other, path)
    elif isinstance(one, tuple) and one and dataclasses.is_dataclass(one[0]):
        assert len(one) == len(other), path  # type: ignore[arg-type]
        for index, pair in enumerate(zip(one, other, strict=True)):  # type: ignore[call-overload]
            assert_same(*pair, f"{path}[{index}]")
    elif hasattr(one, "items") and path.endswith(("masters", "sites")):
        assert list(one) == list(other), path  # type: ignore[call-overload]
        for name, value in one.items():
            assert_same(value, other[name], f"{path}[{name}]")  # type: ignore[index]
    else:
        assert one == other, path


def test_reads_back_equal(tmp_path: Path, chip: FlatDesign) -> None:
    write_flat(tmp_path / "flat.npz", chip)
    again = read_flat(tmp_path / "flat.npz")
    assert_same(chip, again)
    block, same = chip.technology.masters["RAM"], again.technology.masters["RAM"]
    for layer, boxes in block.obstructions.items():
        np.testing.assert_array_equal(same.obstructions[layer], boxes)
    assert again.technology.masters["INV"].pins == ()


def test_other_files_are_rejected(tmp_path: Path, chip: FlatDesign) -> None:
    path = tmp_path / "flat.npz"
    with pytest.raises(DesignError, match="cannot be read"):
        read_flat(path)
    path.write_bytes(b"hello")
    with pytest.raises(DesignError, match="not a valid flat design"):
        read_flat(path)
    write_flat(path, chip)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(DesignError, match="not a valid flat design"):
        read_flat(path)
    np.savez(path, header=np.array([object()], dtype=object))
    with pytest.raises(DesignError, match="not a valid flat design"):
        read_flat(path)


def test_line_breaks_in_names_are_rejected(tmp_path: Path, chip: FlatDesign) -> None:
    names = ("a\nb", *chip.netlist.names[1:])
    broken = dataclasses.replace(chip, netlist=dataclasses.replace(chip.netlist, names=names))
    with pytest.raises(DesignError, match="must not contain a line break"):
        write_flat(tmp_path / "flat.npz", broken)


def entry(path: Path) -> tuple[int, int]:
    """Returns start and end of the packed bytes of the archive's first entry."""
    with zipfile.ZipFile(path) as file:
        first = file.infolist()[0]
    head = path.read_bytes()[first.header_offset : first.header_offset + 30]
    begin = first.header_offset + 30 + int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little")
    return begin, begin + first.compress_size


def npz(**members: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name, data in members.items():
            file.writestr(f"{name}.npy", data)
    return out.getvalue()


def npy(head: str) -> bytes:
    """Returns a file of NumPy's format 1 with any header."""
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode()


def test_damaged_archives_are_rejected(tmp_path: Path, chip: FlatDesign) -> None:
    path = tmp_path / "flat.npz"
    write_flat(path, chip)
    whole = path.read_bytes()
    begin, end = entry(path)
    unpacked = whole[:begin] + b"\xff" * (end - begin) + whole[end:]
    header = io.BytesIO()
    np.save(header, np.frombuffer(b"[1, 2]", dtype=np.uint8))
    for data in (unpacked, npz(header=npy("{'descr': (((\n")), npz(header=header.getvalue())):
        path.write_bytes(data)
        with pytest.raises(DesignError, match="not a valid flat design"):
            read_flat(path)
    (tmp_path / CLUSTERS_NAME).write_bytes(npz(cluster=npy("{'descr': (((\n")))
    with pytest.raises(DesignError, match="not a valid clusters file"):
        read_clusters(tmp_path)


def test_headers_of_another_shape_are_rejected(tmp_path: Path, chip: FlatDesign) -> None:
    path = tmp_path / "flat.npz"
    write_flat(path, chip)
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    for change in ({"sites": [[]]}, {"written_names": ["a"]}, {"sites": {"a": 1}, "layers": [1]}):
        header = json.loads(arrays["header"].tobytes()) | change
        np.savez(path, **(arrays | {"header": np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)}))
        with pytest.raises(DesignError, match="not a valid flat design"):
            read_flat(path)
