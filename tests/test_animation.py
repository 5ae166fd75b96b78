"""The animation on the documentation's first page."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
from matplotlib.colors import to_rgb
from PIL import Image, ImageSequence

from placement.report import drawing
from tests.support.designs import four_macros, random_design

_spec = importlib.util.spec_from_file_location("animation", Path(__file__).parents[1] / "docs/animation.py")
assert _spec is not None and _spec.loader is not None
animation = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(animation)

MOST_BYTES = 3_000_000


def _frames(path) -> list[np.ndarray]:
    with Image.open(path) as image:
        return [np.array(frame.convert("RGB")) for frame in ImageSequence.Iterator(image)]


def _share(frame: np.ndarray, colour: str) -> float:
    """Returns the share of the frame's pixels that have `colour`."""
    return float((np.abs(frame / 255 - np.array(to_rgb(colour))).max(axis=-1) < 0.03).mean())


def test_macros_appear_one_at_a_time(tmp_path):
    design = four_macros()
    frames = _frames(animation.save_episode(tmp_path / "episode.gif", design, design.initial))
    assert len(frames) == 1 + len(design.placing_order) + 1
    settled = [_share(frame, drawing.MOVABLE.face) for frame in frames]
    newest = [_share(frame, animation.NEWEST.face) for frame in frames]
    # The first frame has only the legend's key; from the second on, all but the newest have settled.
    assert settled[0] < settled[2] < settled[3] < settled[4]
    assert newest[0] < 0.002 < min(newest[1:4])
    assert newest[4] < 0.002
    assert newest[1] > newest[2] > newest[3], "by falling area"
    assert (frames[4] != frames[3]).any(axis=-1).mean() > 0.02, "soft macros appear at the end"
    assert tuple(frames[0][3, 3]) == (255, 255, 255)


def test_large_designs_place_several_macros_per_frame(tmp_path, monkeypatch):
    monkeypatch.setattr(animation, "MOST_STEPS", 5)
    design = random_design(2, hard=17)
    path = animation.save_episode(tmp_path / "episode.gif", design, design.initial)
    assert len(_frames(path)) == 1 + 5 + 1


def test_the_searchs_changes_follow(tmp_path):
    design = four_macros()
    moved = design.initial.moved(np.array([2]), np.array([35.0]), np.array([15.0]))
    improved = [("search, 1 s", moved), ("search, 2 s", design.initial)]
    plain = _frames(animation.save_episode(tmp_path / "plain.gif", design, design.initial))
    frames = _frames(animation.save_episode(tmp_path / "search.gif", design, design.initial, improved=improved))
    assert len(frames) == len(plain) + 2
    canvas = (slice(66, -150), slice(100, None))  # without the caption
    assert (frames[-2][canvas] != frames[-3][canvas]).any(axis=-1).mean() > 0.02, "the macro has moved"
    assert (frames[-1][canvas] == frames[-3][canvas]).all(), "nothing of the first search is left"
    path = animation.save_episode(tmp_path / "turned.gif", design, design.initial, improved=improved, last_first=True)
    turned = _frames(path)
    assert len(turned) == len(frames)
    difference = np.abs(turned[0][canvas].astype(int) - frames[-1][canvas]).max(axis=-1)  # another palette
    assert (difference > 40).mean() < 0.005 < (np.abs(turned[1][canvas].astype(int) - frames[-1][canvas]) > 40).mean()


def test_ariane_is_small(ariane_folder, tmp_path):
    from placement.netlist.load import load

    design = load(ariane_folder, ariane_folder / "legalized.plc")
    path = animation.save_episode(tmp_path / "episode.gif", design, design.initial)
    assert path.stat().st_size < MOST_BYTES
    with Image.open(path) as image:
        assert image.n_frames == 135
