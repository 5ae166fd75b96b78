"""Built-in placers, called in this process."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Any

import pytest

from placement.benchmark.built_in import BUILT_IN, Request, place
from placement.benchmark.scoring import broken_rules, costs_of
from placement.config import ConfigError
from placement.netlist.errors import DesignError
from placement.netlist.load import data_folder, load, save
from placement.runtimes import public
from tests.benchmark.stand_ins import heap

TOY = str(data_folder("netlists") / "toy6")


def request_for(placer: str, **more: object) -> Request:
    """Returns a request with less time than this process has used, so that a tenth of it is left."""
    return Request(**{"design": TOY, "placer": placer, "seed": 1, "seconds": 1.0, **more})  # type: ignore[arg-type]


def test_a_placer_is_given_what_is_left_of_its_time() -> None:
    assert request_for("random", seconds=1e-3).left() == pytest.approx(1e-4)
    assert 0.9e6 < request_for("random", seconds=1e6).left() < 1e6


@pytest.mark.parametrize("name", ["supplied", "random", "greedy", "search", "search_proxy"])
def test_a_placer_places_legally(name: str, tmp_path: Path) -> None:
    found = place(request_for(name), tmp_path)
    assert broken_rules(found.design, found.placement) == {}
    if name in ("random", "greedy", "search"):
        assert found.curve[-1][1] == pytest.approx(costs_of(found.design, found.placement)["chip_cost"])
    else:
        assert found.curve == (), "a curve is of the chip cost"


def test_the_search_on_the_proxy_cost_lowers_that_one(tmp_path: Path) -> None:
    chip, proxy = (costs_of(*place(request_for(name), tmp_path)[:2]) for name in ("search", "search_proxy"))
    assert proxy["proxy_cost"] < chip["proxy_cost"]


def test_a_design_without_places_supplies_none(tmp_path: Path) -> None:
    folder, design = tmp_path / "made", load("toy6")
    save(folder, dataclasses.replace(design, initial=heap(design, 0, 1.0)))
    with pytest.raises(DesignError, match="made: has no supplied placement of its macros"):
        place(request_for("supplied", design=str(folder)), tmp_path)


def test_a_callable_must_return_a_placement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_placers.py").write_text("def nothing(design, seed, seconds):\n    pass\n\n\nnumber = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(DesignError, match=r"my_placers:nothing: returned NoneType, instead of a placement\.Placement"):
        place(request_for("my_placers:nothing"), tmp_path)
    with pytest.raises(ConfigError, match="my_placers:number: is int, instead of a callable"):
        place(request_for("my_placers:number"), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["zero_shot", "sample"])
def test_a_placer_that_learns_places_legally(name: str, tmp_path: Path) -> None:
    assert name in BUILT_IN
    found = place(request_for(name, seconds=time.process_time() + 25.0), tmp_path)
    assert broken_rules(found.design, found.placement) == {}


@pytest.mark.slow
def test_a_training_places_legally(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = public.train

    def short(design: str, **arguments: Any) -> Any:
        assert arguments["settings"]["runtime.minutes"] > 0
        return real(design, **{**arguments, "preset": "test", "settings": {"ppo.iterations": 1}})

    monkeypatch.setattr(public, "train", short)
    found = place(request_for("ppo", seconds=time.process_time() + 3600.0), tmp_path)
    assert broken_rules(found.design, found.placement) == {}
