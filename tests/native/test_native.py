"""Builds and runs the C++ unit tests beside this file."""

from __future__ import annotations

import pytest

from tests.native.conftest import NativeBuild, run


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_cpp_unit_tests_pass(native_build: NativeBuild, monkeypatch: pytest.MonkeyPatch) -> None:
    """Uses sanitizers if the compiler has them; `make sanitize` runs the thread sanitizer, too."""
    monkeypatch.setenv("UBSAN_OPTIONS", "halt_on_error=1")
    native_build.target("native_tests")
    assert "tests passed" in run(str(native_build.folder / "native_tests"))
