"""`make figures`: every picture of the documentation is listed, and a missing prerequisite is reported."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Returns the program as it runs from the folder of the documentation."""
    monkeypatch.syspath_prepend(str(DOCS))
    import figures

    yield figures
    for name in ("figures", "window_pictures"):
        sys.modules.pop(name, None)


def test_every_picture_is_listed(made: ModuleType) -> None:
    listed = {Path(figure.path).name for figure in made.figures() if figure.path.startswith("images/")}
    assert listed | set(made.KEPT) == {path.name for path in (DOCS / "images").iterdir()}
    assert not listed & set(made.KEPT)


def test_figures_of_absent_designs_are_skipped_with_their_files_named(
    made: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("PLACEMENT_PATH", str(tmp_path))
    monkeypatch.setattr(made, "WORK", tmp_path / "work")
    monkeypatch.setattr(sys, "argv", ["figures.py", "import_ibm01.png", "ariane.gif"])
    assert made.main() == 0
    assert capsys.readouterr().out.splitlines() == [
        "skipped: docs/images/import_ibm01.png: PLACEMENT_PATH has no ibm01/ibm01.aux",
        "skipped: docs/images/ariane.gif: PLACEMENT_PATH has no ariane133_ng45",
    ]


def test_an_unknown_name_is_rejected(made: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["figures.py", "nothing.png"])
    with pytest.raises(SystemExit, match="2"):
        made.main()
