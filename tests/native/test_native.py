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
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


SANITIZERS = "address,undefined"


def links(sanitizers: str, folder: Path) -> bool:
    """Whether the compiler here can build with these sanitizers."""
    (folder / "main.cpp").write_text("int main() {}")
    command = [tool("c++"), f"-fsanitize={sanitizers}", str(folder / "main.cpp"), "-o", str(folder / "main")]
    return subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_cpp_unit_tests_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under sanitizers, where the compiler has them; `make sanitize` runs the thread sanitizer, too."""
    cmake = tool("cmake")
    sanitizers = SANITIZERS if links(SANITIZERS, tmp_path) else ""
    monkeypatch.setenv("UBSAN_OPTIONS", "halt_on_error=1")
    run(
        cmake, "-S", str(ROOT), "-B", str(BUILD), "-DPLACEMENT_NATIVE_TESTS=ON", "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
        "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O0", f"-DPLACEMENT_SANITIZE={sanitizers}",
        f"-DPython_EXECUTABLE={sys.executable}",
    )  # fmt: skip
    run(cmake, "--build", str(BUILD), "--target", "native_tests", "--parallel", "2")
    assert "tests passed" in run(str(BUILD / "native_tests"))
