"""The folder of compiled programs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import jax
import pytest

from placement.utils.compilation import keep_compilations


@pytest.fixture(autouse=True)
def _unchanged(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    before = jax.config.jax_compilation_cache_dir
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    jax.config.update("jax_compilation_cache_dir", None)
    yield
    jax.config.update("jax_compilation_cache_dir", before)


def test_a_folder_for_this_processor_under_the_users_cache(tmp_path: Path) -> None:
    folder = keep_compilations()
    assert folder is not None and folder.is_dir() and folder.parent == tmp_path / "macro-placement"
    assert jax.config.jax_compilation_cache_dir == str(folder)


def test_the_users_own_choice_is_kept(tmp_path: Path) -> None:
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / "mine"))
    assert keep_compilations() is None
    assert jax.config.jax_compilation_cache_dir == str(tmp_path / "mine")


def test_no_cache_where_it_cannot_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert keep_compilations() is None
    assert jax.config.jax_compilation_cache_dir is None
