"""The Python code of README and of the page of the Python interface runs, on a smaller design."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"


SMALLER = {"clustered40": "toy6", 'settings={"ppo.iterations": 2}': 'preset="test"', "seconds=5": "moves=2000"}


@pytest.mark.parametrize("page", ["README.md", "docs/reference/api.md"])
def test_the_python_examples_run(page, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for code in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL):
        for printed, run in SMALLER.items():
            code = code.replace(printed, run)
        exec(compile(code, page, "exec"), {})
    assert "total=" in capsys.readouterr().out


def test_the_readme_is_read_in_a_few_minutes():
    assert len(README.read_text().split()) <= 900
