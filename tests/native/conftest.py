"""The engine without its bindings, compiled once for the unit tests and the worked examples."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
SANITIZERS = "address,undefined"


class NativeBuild(NamedTuple):
    """A CMake build folder with the engine's library, and the sanitizers that it was built with, or ""."""

    folder: Path
    sanitizers: str

    @property
    def library(self) -> Path:
        return self.folder / "libnative_engine.a"

    def target(self, name: str) -> None:
        """Builds a target of CMakeLists.txt."""
        with alone():
            run(tool("cmake"), "--build", str(self.folder), "--target", name, "--parallel", "2")


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """A critical section among the workers that run the tests."""
    (ROOT / "build").mkdir(exist_ok=True)
    with (ROOT / "build" / "native-tests.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def tool(name: str) -> str:
    """Returns the program `name` beside the interpreter or on PATH; skips the test if there is none."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def links(sanitizers: str, folder: Path) -> bool:
    """Returns whether the compiler can build with these sanitizers."""
    (folder / "main.cpp").write_text("int main() {}")
    command = [tool("c++"), f"-fsanitize={sanitizers}", str(folder / "main.cpp"), "-o", str(folder / "main")]
    return subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0


@pytest.fixture(scope="session")
def native_build(tmp_path_factory: pytest.TempPathFactory) -> NativeBuild:
    """Builds without optimisation; with sanitizers if the compiler has them, through ccache if it is installed."""
    sanitizers = SANITIZERS if links(SANITIZERS, tmp_path_factory.mktemp("sanitizers")) else ""
    build = NativeBuild(ROOT / "build" / "native-tests", sanitizers)
    ccache = shutil.which("ccache") or ""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, "CCACHE_BASEDIR", str(ROOT))
        patch.setitem(os.environ, "CCACHE_NOHASHDIR", "1")
        with alone():
            run(
                tool("cmake"), "-S", str(ROOT), "-B", str(build.folder), "-DPLACEMENT_NATIVE_TESTS=ON",
                "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O0",
                f"-DPLACEMENT_SANITIZE={sanitizers}", f"-DPython_EXECUTABLE={sys.executable}",
                f"-DCMAKE_CXX_COMPILER_LAUNCHER={ccache}",
            )  # fmt: skip
        build.target("native_engine")
    return build
