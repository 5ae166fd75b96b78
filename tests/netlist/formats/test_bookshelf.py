"""Bookshelf designs: one by hand, missing files, rejections, and statistics of a real one."""

from __future__ import annotations

import dataclasses
import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from placement.netlist.clustering.cluster import ClusteringSettings
from placement.netlist.design import NodeKind, Orientation
from placement.netlist.errors import DesignError
from placement.netlist.formats.bookshelf import read_bookshelf
from placement.netlist.geometry import Rectangle
from placement.netlist.importing import ImportSettings, import_flat

FILES = {
    "nodes": (
        "UCLA nodes 1.0\n# note\nNumNodes : 5\nNumTerminals : 2\n"
        "m 20 30\na 4 10\nb 6 10\np 1 1 terminal\nf 40 20 terminal\n"
    ),
    "nets": (
        "UCLA nets 1.0\nNumNets : 3\nNumPins : 6\nNetDegree : 3 one\n a I\n m O : -5 2.5\n p B\n"
        "NetDegree : 2\n b I : 1 1\n a O\nNetDegree : 1 lone\n b B\n"
    ),
    "pl": "UCLA pl 1.0\nm 0 0 : N\na 0 0 : N\nb 0 0 : N\np -1 50 : N\nf 60 80 : FS /FIXED\n",
    "scl": (
        "UCLA scl 1.0\nNumrows : 2\nCoreRow Horizontal\n Coordinate : 0\n Height : 10\n Sitewidth : 1\n"
        " Sitespacing : 2\n Siteorient : N\n SubrowOrigin : 0 NumSites : 50\nEnd\n"
        "CoreRow Horizontal\n Coordinate : 10\n Height : 10\n Sitespacing : 2\n Siteorient : FS\n"
        " SubrowOrigin : 0 NumSites : 20\n SubrowOrigin : 60 NumSites : 20\nEnd\n"
    ),
    "wts": "UCLA wts 1.0\none 3\na 7\n",
}


def write(folder: Path, files: dict[str, str]) -> Path:
    for suffix, text in files.items():
        (folder / f"d.{suffix}").write_text(text)
    (folder / "d.aux").write_text("RowBasedPlacement : " + " ".join(f"d.{suffix}" for suffix in files))
    return folder / "d.aux"


def test_counts_in_odd_places_are_passed(tmp_path: Path) -> None:
    plain = read_bookshelf(write(tmp_path, FILES))[0]
    for count in ("NumTerminals : 2\n", "NumTerminals 2\nNumNodes : 5\n"):
        counted = FILES | {"pl": FILES["pl"].replace("UCLA pl 1.0\n", f"UCLA pl 1.0\n{count}")}
        found = read_bookshelf(write(tmp_path, counted))[0]
        assert found.placement.x.tolist() == plain.placement.x.tolist() and found.notices == plain.notices
    # If all nodes and all pins of each net are there, a wrong sum does not mean truncation.
    wrong = FILES["nodes"].replace("Terminals : 2", "Terminals : 9"), FILES["nets"].replace("Pins : 6", "Pins : 7")
    notices = read_bookshelf(write(tmp_path, FILES | {"nodes": wrong[0], "nets": wrong[1]}))[0].notices
    assert [notice.partition(": ")[2] for notice in notices if "the file says" in notice] == [
        "the file says numterminals : 9, but it contains 2", "the file says numpins : 7, but it contains 6",
    ]  # fmt: skip


def test_terminals_above_all_rows_are_ports(tmp_path: Path) -> None:
    for suffix, old, new in (
        ("nodes", "f 40 20 terminal", "f 40 20 terminal_NI"), ("pl", "60 80 : FS /FIXED", "60 80 : FS /FIXED_NI"),
    ):  # fmt: skip
        flat = read_bookshelf(write(tmp_path, FILES | {suffix: FILES[suffix].replace(old, new)}))[0]
        port = flat.netlist.names.index("f")
        assert flat.netlist.kind[port] == NodeKind.PORT and flat.netlist.width[port] == 0
        assert (flat.placement.x[port], flat.placement.y[port]) == (80, 90)


def test_variants_of_other_tools(tmp_path: Path) -> None:
    plain = read_bookshelf(write(tmp_path, FILES))[0]
    other = FILES | {
        "scl": FILES["scl"].replace(" Sitewidth : 1\n", " Sitewidth : 1\n Sitesymmetry : X Y\n Sitesymmetry :\n"),
        "nodes": FILES["nodes"].replace("NumNodes : 5", "NumNodes : 4"),
        "route": "route 1.0\n",
    }
    found = read_bookshelf(write(tmp_path, other))[0]
    assert found.floorplan.rows.width.tolist() == plain.floorplan.rows.width.tolist()
    assert found.netlist.names == plain.netlist.names
    new = [notice.partition(": ")[2] for notice in found.notices if notice not in plain.notices]
    assert new == [
        "d.route contain no positions and are ignored", "the file says numnodes : 4, but it contains 5",
    ]  # fmt: skip


def test_by_hand(tmp_path: Path) -> None:
    design = read_bookshelf(write(tmp_path, FILES))[0]
    netlist, placement, plan = design.netlist, design.placement, design.floorplan
    assert netlist.names == ("m", "a", "b", "p", "f")
    assert netlist.kind.tolist() == [NodeKind.HARD, NodeKind.CELL, NodeKind.CELL, NodeKind.PORT, NodeKind.HARD]
    # Drivers come first; the net of one pin is ignored.
    assert netlist.pin_node.tolist() == [0, 1, 3, 1, 2]
    assert netlist.net_start.tolist() == [0, 3, 5]
    assert netlist.net_weight.tolist() == [3, 1]
    assert (netlist.pin_dx.tolist(), netlist.pin_dy.tolist()) == ([-5, 0, 0, 0, 1], [2.5, 0, 0, 0, 1])
    # Movable nodes are at (0, 0) in the file, which means unplaced.
    assert placement.placed.tolist() == [False, False, False, True, True]
    assert placement.fixed.tolist() == [False, False, False, True, True]
    assert (placement.x[3:].tolist(), placement.y[3:].tolist()) == ([-0.5, 80], [50.5, 90])
    assert placement.orientation[4] == Orientation.FS
    assert plan.core == Rectangle(0, 0, 100, 20)
    assert plan.die == Rectangle(-1, 0, 100, 100)
    assert plan.rows.x.tolist() == [0, 0, 60]
    assert plan.rows.width.tolist() == [100, 40, 40]
    assert any("1 weights are not for nets" in notice for notice in design.notices)


def test_large_terminals_may_be_freed(tmp_path: Path) -> None:
    design = read_bookshelf(write(tmp_path, FILES), free_blocks=True)[0]
    assert design.placement.fixed.tolist() == [False, False, False, True, False]


def test_missing_rows_are_derived_and_reported(tmp_path: Path) -> None:
    files = {suffix: FILES[suffix] for suffix in ("nodes", "nets", "pl")}
    design = read_bookshelf(write(tmp_path, files))[0]
    # The box around the fixed nodes, in whole rows of the cells' height.
    assert design.floorplan.core == Rectangle(-1, 50, 100, 100)
    assert (len(design.floorplan.rows), design.floorplan.rows.row_height) == (5, 10)
    assert sum(word in " ".join(design.notices) for word in ("no .scl", "10 high", "box around the fixed")) == 3


def test_the_core_is_around_fixed_nodes_as_they_are_turned(tmp_path: Path) -> None:
    """Two terminals of 40 × 20 µm far apart, the second turned: 20 across, 40 up."""
    files = {name: text for name, text in FILES.items() if name != "scl"}
    files["nodes"] = files["nodes"].replace("p 1 1 terminal", "p 40 20 terminal")
    files["pl"] = "UCLA pl 1.0\nm 0 0 : N\na 0 0 : N\nb 0 0 : N\np 0 0 : N /FIXED\nf 160 80 : E /FIXED\n"
    design = read_bookshelf(write(tmp_path, files))[0]
    assert design.floorplan.die == Rectangle(0.0, 0.0, 180.0, 120.0)


def test_missing_positions_are_derived_and_reported(tmp_path: Path) -> None:
    files = {suffix: FILES[suffix] for suffix in ("nodes", "nets")}
    design = read_bookshelf(write(tmp_path, files))[0]
    # 600 + 40 + 60 + 1 + 800 at 70%: a square of 46.3, in rows of 10.
    assert design.floorplan.core == Rectangle(0, 0, 50, 50)
    port = design.netlist.ports[0]
    assert (design.placement.x[port], design.placement.y[port]) == (50, 50)
    assert design.placement.placed.tolist() == [False, False, False, True, False]
    assert any("1 of 1 ports have no position" in notice for notice in design.notices)


def test_gzipped_files_next_to_the_aux_are_found(tmp_path: Path) -> None:
    aux = write(tmp_path, FILES)
    for suffix in FILES:
        plain = tmp_path / f"d.{suffix}"
        (tmp_path / f"d.{suffix}.gz").write_bytes(gzip.compress(plain.read_bytes()))
        plain.unlink()
    assert read_bookshelf(aux)[0].netlist.num_nets == 2


VARIANTS = {
    "marks and letters": {
        "nodes": "\ufeff# © 2005\n" + FILES["nodes"].replace("Num", "NUM"),
        "pl": "\ufeff" + FILES["pl"],
    },
    "small letters": {suffix: text.lower() for suffix, text in FILES.items() if suffix != "nets"},
    "no colons": {
        "nets": FILES["nets"].replace("NetDegree :", "netdegree").replace(" :", ""),
        "pl": FILES["pl"].replace(" :", ""),
    },
    "rows without sites": {
        "scl": FILES["scl"].replace("NumSites : 50\n", "NumSites : 50\n SubrowOrigin : 60 NumSites : 0\n")
    },
    "more words": {
        "nodes": FILES["nodes"].replace("m 20 30", "m 20 30 movable"),
        "nets": FILES["nets"].replace("NetDegree : 3 one", "NetDegree : 3 one x").replace(": -5 2.5", ": -5 2.5 : 1 1"),
        "pl": FILES["pl"]
        .replace("m 0 0 :", "m 0 0 0 :")
        .replace("f 60 80 : FS /FIXED", "f 60 80 DIMS = (40, 20) : FS FIXED"),
    },
}


@pytest.mark.parametrize("name", VARIANTS)
def test_variants_that_mean_the_same(tmp_path: Path, name: str) -> None:
    plain = read_bookshelf(write(tmp_path, FILES))[0]
    other = read_bookshelf(write(tmp_path, FILES | VARIANTS[name]))[0]
    assert other.placement == plain.placement and other.netlist.names == plain.netlist.names
    for field in ("kind", "width", "pin_node", "pin_dx", "pin_dy", "net_weight", "net_start"):
        assert getattr(other.netlist, field).tolist() == getattr(plain.netlist, field).tolist(), field
    assert other.floorplan.rows.width.tolist() == plain.floorplan.rows.width.tolist()
    noted = [notice for notice in other.notices if "unknown words, which are ignored" in notice]
    assert len(noted) == {"rows without sites": 1, "more words": 3}.get(name, 0)


def test_names_may_contain_a_hash(tmp_path: Path) -> None:
    files = {suffix: text.replace("m ", "u#m ").replace("m\n", "u#m\n") for suffix, text in FILES.items()}
    assert "u#m" in read_bookshelf(write(tmp_path, files))[0].netlist.names


FAULTS = {
    "fewer nodes": (
        {"nodes": FILES["nodes"].replace("NumNodes : 5", "NumNodes : 6")},
        r"d\.nodes:\d+: .* numnodes : 6, but it contains 5",
    ),
    "same node": ({"nodes": FILES["nodes"].replace("b 6 10", "a 6 10")}, r"1 duplicate node names: a"),
    "no number": ({"nodes": FILES["nodes"].replace("m 20 30", "m 20 x")}, r"d\.nodes:5: expected the height, a number"),
    "negative": ({"nodes": FILES["nodes"].replace("m 20 30", "m 20 -30")}, "must be at least 0"),
    "unknown pin": (
        {"nets": FILES["nets"].replace(" a I\n", " z I\n")},
        r"d\.nets:5: 1 pins on nodes that do not exist: z",
    ),
    "another degree": (
        {"nets": FILES["nets"].replace("NetDegree : 3", "NetDegree : 4")},
        r"d\.nets:4: net 'one' says 4 pins, but has 3",
    ),
    "cut nets": ({"nets": FILES["nets"][:-6]}, r"says 1 pins, but has 0"),
    "pin before a net": ({"nets": " a I\n"}, "expected NetDegree"),
    "unknown position": ({"pl": FILES["pl"] + "z 1 1 : N\n"}, "1 positions of nodes that do not exist: z"),
    "two positions": ({"pl": FILES["pl"] + "a 1 1 : N\n"}, "node 'a' already has a position"),
    "odd orientation": (
        {"pl": FILES["pl"].replace("f 60 80 : FS", "f 60 80 : UP")},
        "expected an orientation or /FIXED, found 'UP'",
    ),
    "flat rows": ({"scl": FILES["scl"].replace("Height : 10", "Height : 0")}, "must be above 0"),
    "cut rows": ({"scl": FILES["scl"][:-4]}, "the file ends within a row"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_rejected(tmp_path: Path, name: str) -> None:
    change, reason = FAULTS[name]
    with pytest.raises(DesignError, match=reason):
        read_bookshelf(write(tmp_path, {**FILES, **change}))[0]


def test_files_outside_of_the_folder_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "d.aux").write_text("RowBasedPlacement : ../d.nodes d.nets")
    with pytest.raises(DesignError, match=r"must be in the folder of the \.aux file"):
        read_bookshelf(tmp_path / "d.aux")[0]


def test_ibm01_has_its_counts(real: Callable[[str], Path]) -> None:
    design = read_bookshelf(real("ibm01/ibm01.aux"))[0]
    netlist = design.netlist
    counts = (len(design.cells), len(netlist.hard), len(netlist.ports), netlist.num_nets, netlist.num_pins)
    assert counts == (12260, 246, 246, 14111, 50566)
    assert (design.floorplan.core.width, design.floorplan.core.height, len(design.floorplan.rows)) == (2295, 2304, 144)


def test_an_aux_that_names_packed_files(tmp_path: Path) -> None:
    aux = write(tmp_path, FILES)
    (tmp_path / "nodes.gz").write_bytes(b"none of the design's")
    for suffix in FILES:
        plain = tmp_path / f"d.{suffix}"
        (tmp_path / f"d.{suffix}.gz").write_bytes(gzip.compress(plain.read_bytes()))
        plain.unlink()
    aux.write_text("RowBasedPlacement : " + " ".join(f"d.{suffix}.gz" for suffix in FILES))
    assert read_bookshelf(aux)[0].netlist.num_nets == 2
    # a name without a suffix of its own
    aux.write_text(aux.read_text() + " nodes.gz")
    assert read_bookshelf(aux)[0].netlist.num_nets == 2


def test_nets_that_join_the_same_pads_are_counted(tmp_path: Path) -> None:
    """The format has one net per driving pin, and a pad is one pin: of three nets between two pads one is omitted."""
    pads = "".join("NetDegree : 2\n p O\n q I\n" for _ in range(3))
    nodes = FILES["nodes"].replace("NumNodes : 5", "NumNodes : 6").replace("NumTerminals : 2", "NumTerminals : 3")
    nets = FILES["nets"].replace("NumNets : 3", "NumNets : 6").replace("NumPins : 6", "NumPins : 12") + pads
    positions = FILES["pl"] + "q -1 70 : N\n"
    files = {**FILES, "nodes": nodes + "q 1 1 terminal\n", "nets": nets, "pl": positions}
    flat = read_bookshelf(write(tmp_path, files), free_blocks=True)[0]
    core = Rectangle(0, 0, 100, 100)
    flat = dataclasses.replace(flat, floorplan=dataclasses.replace(flat.floorplan, core=core, die=core))
    imported = import_flat(flat, ImportSettings(columns=4, rows=4, clustering=ClusteringSettings(clusters=2)))
    assert [notice for notice in imported.notices if notice.startswith("1 nets are ignored: all of their pins")]
    netlist = imported.design.netlist
    ports = set(netlist.ports.tolist())
    between = [
        net
        for net in range(netlist.num_nets)
        if set(netlist.pin_node[netlist.net_pins[netlist.net_start[net] : netlist.net_start[net + 1]]].tolist())
        <= ports
    ]
    assert len(between) == 2
    assert any(
        notice == "no LEF file gives the SYMMETRY of macros: any orientation is allowed" for notice in imported.notices
    )
