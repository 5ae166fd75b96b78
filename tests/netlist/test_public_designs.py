"""Public designs, downloaded from a local HTTP server: complete, verified, resumed, and within a deadline."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import itertools
import os
import threading
from pathlib import Path

import pytest

import placement
from placement.cli.main import main
from placement.netlist import public_designs
from placement.netlist.load import data_folder
from placement.netlist.public_designs import PUBLIC_DESIGNS, PublicDesign, PublicFile, fetch

TOY = data_folder("netlists") / "toy6"


class Server(http.server.ThreadingHTTPServer):
    """Serves `pages` by path; a page is its bytes, and the number of bytes announced but not sent."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.pages: dict[str, tuple[bytes, int]] = {}
        self.requested: list[str] = []
        self.stalls = False
        self.ended = threading.Event()

    @property
    def source(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/copy/{{ref}}"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.requested.append(self.path)
        if self.path not in self.server.pages:
            self.send_error(404)
            return
        data, missing = self.server.pages[self.path]
        self.send_response(200)
        self.send_header("Content-Length", str(len(data) + missing))
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()
        if self.server.stalls:
            self.server.ended.wait(60)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server():
    served = Server()
    thread = threading.Thread(target=served.serve_forever, daemon=True)
    thread.start()
    yield served
    served.ended.set()
    served.shutdown()
    served.server_close()
    thread.join(10)


@pytest.fixture
def toy(server, monkeypatch, tmp_path):
    """Returns a public design `mine` of two files, and the server's page of each."""
    files, pages = [], {}
    for name in ("initial.plc", "netlist.pb.txt.gz"):
        data = (TOY / name).read_bytes()
        files.append(PublicFile(name, f"flows/{name}", len(data), hashlib.sha256(data).hexdigest(), "v1"))
        pages[name] = f"/copy/v1/flows/{name}"
        server.pages[pages[name]] = (data, 0)
    monkeypatch.setitem(PUBLIC_DESIGNS, "mine", PublicDesign("six macros", tuple(files)))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("PLACEMENT_PATH", raising=False)
    return pages


def test_a_fetched_design_is_found_by_its_name(server, toy, tmp_path, capsys):
    with pytest.raises(placement.DesignError, match="`macro-placement fetch` lists"):
        placement.load("mine")
    assert main(["fetch", "mine", "--source", server.source]) == 0
    text = capsys.readouterr().out
    folder = tmp_path / "data/macro-placement/designs/mine"
    assert f"2 files, 0.0 MB, verified: {folder}" in text and "next: macro-placement search design=mine" in text
    assert placement.load("mine").netlist.num_nodes == placement.load("toy6").netlist.num_nodes
    assert {path.name for path in folder.iterdir()} == {"initial.plc", "netlist.pb.txt.gz"}


def test_what_is_there_and_intact_is_not_fetched_again(server, toy, tmp_path):
    fetch("mine", tmp_path / "out", source=server.source)
    (tmp_path / "out/initial.plc").write_text("damaged")
    server.requested.clear()
    fetch("mine", tmp_path / "out", source=server.source)
    assert server.requested == [toy["initial.plc"]]
    assert (tmp_path / "out/initial.plc").read_bytes() == (TOY / "initial.plc").read_bytes()


def test_a_connection_that_breaks_leaves_no_part_of_a_file_and_the_next_call_completes(server, toy, tmp_path):
    data, _ = server.pages[toy["netlist.pb.txt.gz"]]
    server.pages[toy["netlist.pb.txt.gz"]] = (data[:100], len(data) - 100)
    with pytest.raises(OSError, match=rf"closed after 100 of {len(data):,} bytes"):
        fetch("mine", tmp_path / "out", source=server.source)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["initial.plc"]
    server.pages[toy["netlist.pb.txt.gz"]] = (data, 0)
    server.requested.clear()
    seen = []
    fetch("mine", tmp_path / "out", source=server.source, progress=lambda file, done: seen.append((file.name, done)))
    assert server.requested == [toy["netlist.pb.txt.gz"]]
    assert seen[-1] == ("netlist.pb.txt.gz", len(data))
    assert (tmp_path / "out/netlist.pb.txt.gz").read_bytes() == data


@pytest.mark.parametrize("other", [b"<html>log in</html>", None])
def test_other_bytes_are_rejected(other, server, toy, tmp_path):
    data, _ = server.pages[toy["initial.plc"]]
    server.pages[toy["initial.plc"]] = (other or data + b" more of it", 0)
    with pytest.raises(placement.DesignError, match="is not the expected file: SHA-256"):
        fetch("mine", tmp_path / "out", source=server.source)
    assert list((tmp_path / "out").iterdir()) == []


def test_a_server_that_falls_silent_is_not_waited_for_longer_than_given(server, toy, tmp_path):
    data, _ = server.pages[toy["initial.plc"]]
    server.pages[toy["initial.plc"]] = (data[:10], len(data) - 10)
    server.stalls = True
    with pytest.raises(OSError, match=r"takes too long .*; run the same command again"):
        fetch("mine", tmp_path / "out", source=server.source, seconds=0.5)
    assert list((tmp_path / "out").iterdir()) == []


def test_a_server_that_sends_byte_by_byte_is_not_waited_for_longer_than_given(server, toy, tmp_path, monkeypatch):
    monkeypatch.setattr(public_designs, "CHUNK", 1)
    seconds = itertools.count()
    monkeypatch.setattr(public_designs, "monotonic", lambda: float(next(seconds)))  # a second for each byte
    with pytest.raises(OSError, match=r"takes too long \(\d+ of [\d,]+ bytes arrived in time\)"):
        fetch("mine", tmp_path / "out", source=server.source, seconds=20.0)


def test_without_a_network_the_message_says_what_to_do(toy, tmp_path, capsys):
    reserved = Server()
    source = reserved.source
    reserved.server_close()  # nothing listens at the address now
    assert main(["fetch", "mine", "--out", str(tmp_path / "out"), "--source", source]) == 2
    text = capsys.readouterr().err
    assert "initial.plc: cannot be downloaded:" in text and "check the network and the proxy" in text
    assert text.count("\n") == 1


def test_a_missing_file_is_reported_with_the_servers_answer(server, toy, tmp_path):
    del server.pages[toy["netlist.pb.txt.gz"]]
    with pytest.raises(OSError, match=r"netlist.pb.txt.gz: cannot be downloaded: the server answered 404 Not Found"):
        fetch("mine", tmp_path / "out", source=server.source)


def test_a_checkout_on_this_machine_is_a_source(toy, tmp_path):
    (tmp_path / "checkout/flows").mkdir(parents=True)
    for name in toy:
        (tmp_path / "checkout/flows" / name).write_bytes((TOY / name).read_bytes())
    fetch("mine", tmp_path / "out", source=f"file://{tmp_path}/checkout")
    assert {path.name for path in (tmp_path / "out").iterdir()} == set(toy)


@pytest.mark.parametrize("source", ["ftp://example.org", "/a/folder", ""])
def test_another_kind_of_source_is_rejected(source, tmp_path):
    with pytest.raises(placement.DesignError, match="must begin with https://, http://, file://"):
        fetch("ct_ariane", tmp_path, source=source)


def test_the_list_names_every_design_and_a_misspelt_name_gets_a_suggestion(capsys, tmp_path):
    assert main(["fetch"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in PUBLIC_DESIGNS)
    assert main(["fetch", "ariane133_ng4"]) == 2
    assert "did you mean ariane133_ng45?" in capsys.readouterr().err


def test_the_catalogue_is_consistent():
    for name, design in PUBLIC_DESIGNS.items():
        assert len({file.name for file in design.files}) == len(design.files), name
        for file in design.files:
            assert len(file.sha256) == 64 and file.size > 0, file
        named = {file for files in design.importing.values() for file in files}
        assert named <= {file.name for file in design.files}, name


def test_the_arguments_of_an_import() -> None:
    assert PUBLIC_DESIGNS["ariane133_ng45_51"].import_arguments(Path("my chips")) == (
        "--protobuf 'my chips/ariane.pb.txt.gz' --lef 'my chips/NangateOpenCellLibrary.tech.lef' "
        "'my chips/fakeram45_256x16.lef' --def 'my chips/floorplan.def' --halo 5"
    )


DATA = [Path(folder) for folder in os.environ.get("PLACEMENT_PATH", "").split(os.pathsep) if folder]


@pytest.mark.parametrize(
    ("design", "name", "copy"),
    [
        ("ariane133_ng45", "netlist.pb.txt", "ariane133_ng45/netlist.pb.txt.gz"),
        ("ariane133_ng45", "initial.plc", "ariane133_ng45/initial.plc"),
        ("ariane133_ng45_51", "floorplan.def", "ariane133_ng45_51/floorplan.def.gz"),
        ("ariane133_ng45_68", "SA.def", "ariane133_ng45_68/placed/SA.def.gz"),
        ("ariane133_ng45_68", "ariane.pb.txt.gz", "ariane133_ng45_flat/netlist.pb.txt.gz"),
        ("ct_ariane", "ariane.lef", "ct_ariane_lefdef/ariane.lef.gz"),
        ("ct_ariane", "ariane.def.gz", "ct_ariane_lefdef/ariane.def.gz"),
        ("ct_ariane_x2", "ariane_X2_xflip.def.gz", "ct_ariane_x2/ariane_x2.def.gz"),
    ],
)
def test_the_checksums_are_those_of_copies_on_this_machine(design, name, copy):
    found = next((folder / copy for folder in DATA if (folder / copy).is_file()), None)
    if found is None:
        pytest.skip(f"no copy of {copy} on PLACEMENT_PATH")
    (file,) = [file for file in PUBLIC_DESIGNS[design].files if file.name == name]
    data = found.read_bytes()
    unpacked = gzip.decompress(data) if copy.endswith(".gz") and not name.endswith(".gz") else data
    assert (len(unpacked), hashlib.sha256(unpacked).hexdigest()) == (file.size, file.sha256)
