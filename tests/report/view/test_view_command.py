"""`macro-placement view` before it serves: what it refuses, in one line."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from placement.cli.main import main

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["clustered40", "toy6.plc"], "toy6.plc:"),
        (["toy6", "toy6.plc", "none.plc"], "placement=none.plc: there is no such file"),
        (["gone"], "gone"),
        (["toy6", "--port", "70000"], "port=70000"),
        (["toy6", "one", "two"], "a window looks at one run folder"),
    ],
)
def test_what_cannot_be_opened_ends_in_one_line(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "netlists" / "toy6" / "initial.plc", "toy6.plc")
    for run in ("one", "two"):
        Path(run).mkdir()
        shutil.copy("toy6.plc", f"{run}/best.plc")
    assert main(["view", *words, "--browser", "false"]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1
