"""Published placements, made by other tools with halos of 5 µm, meet the constraints of their own DEF files."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from placement.engine.costs import legality, violations
from placement.netlist.canvas import canvas_of
from placement.netlist.design import Design
from placement.netlist.feasibility import check_constraints
from placement.netlist.formats.protobuf_design import read_protobuf_def
from placement.netlist.import_constraints import ConstraintSettings, constraints_of

LEFS = ("NangateOpenCellLibrary.tech.lef.gz", "fakeram45_256x16.lef.gz", "NangateOpenCellLibrary.macro.mod.lef.gz")


@pytest.mark.parametrize("placer", ["SA", "CT_AC"])
def test_published_placements_break_nothing(placer: str, real: Callable[[str], Path]) -> None:
    lefs = [real(f"ng45_lef/{name}") for name in LEFS]
    netlist = real("ariane133_ng45_flat/netlist.pb.txt.gz")
    flat, _ = read_protobuf_def(netlist, real(f"ariane133_ng45_68/placed/{placer}.def.gz"), lefs=list(lefs))
    canvas, _ = canvas_of(flat)
    core, there = flat.floorplan.core, flat.placement
    initial = dataclasses.replace(
        there, x=there.x - core.x_low, y=there.y - core.y_low, placed=np.ones_like(there.placed)
    )
    for halo in (5.0, 6.0):
        constraints, _ = constraints_of(flat, ConstraintSettings(halo=(halo, halo), snap="manufacturing"))
        assert constraints.grid.pitch_x == 0.005
        design = Design(flat.name, flat.netlist, canvas, initial, constraints=constraints)
        assert check_constraints(design) == ()
        assert legality(design) == (0, 0)
        broken = violations(design)
        assert not any(broken[1:])
        assert (broken.halos == 0) == (halo == 5.0), "they are exactly 10 µm apart"
    own, _ = constraints_of(flat)
    assert own.halo[flat.netlist.hard].min() == own.halo[flat.netlist.hard].max() == 5.0, "from HALO in the file"
