"""Builds and runs the C++ unit tests beside this file."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "native-tests"


def tool(name: str) -> str:
    """The program `name` beside the interpreter or on PATH; skips where there is none."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.mark.slow
def test_the_cpp_unit_tests_pass() -> None:
    cmake = tool("cmake")
    run(
        cmake, "-S", str(ROOT), "-B", str(BUILD), "-DPLACEMENT_NATIVE_TESTS=ON", "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
        "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1", f"-DPython_EXECUTABLE={sys.executable}",
    )  # fmt: skip
    run(cmake, "--build", str(BUILD), "--target", "native_tests", "--parallel", "2")
    assert "tests passed" in run(str(BUILD / "native_tests"))
