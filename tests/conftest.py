"""Shared test set-up: eight virtual CPU devices, and the public Ariane design if available."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import hypothesis
import pytest

CACHE = Path(__file__).resolve().parents[1] / ".pytest_cache"

# If no bytecode may be written next to the sources, it is written here. Otherwise every process would compile what it
# imports.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
    sys.pycache_prefix = os.environ.setdefault("PYTHONPYCACHEPREFIX", str(CACHE / "bytecode"))
    sys.dont_write_bytecode = False

# Before JAX is imported anywhere: every test runs with several (virtual) devices.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Unoptimised code compiles five times as fast, and the tests compile much more than they compute.
if "xla_backend_optimization_level" not in os.environ.get("XLA_FLAGS", ""):
    quick = " --xla_backend_optimization_level=0"
    if tuple(map(int, version("jaxlib").split(".")[:2])) < (0, 11):  # with both flags, JAX 0.11.2 exited at once
        quick += " --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + quick
if "xla_force_host_platform_device_count" not in os.environ.get("XLA_FLAGS", ""):
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
# Ray starts its processes with a niceness of 15, with which they would get hardly any CPU time next to other tests.
os.environ.setdefault("RAY_worker_niceness", "0")
# Compiled programs are shared by all tests, including those in separate processes.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(CACHE / "xla"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.05")


# Property tests have no deadline, because a loaded machine would exceed it.
hypothesis.settings.register_profile("placement", deadline=None)
hypothesis.settings.load_profile("placement")

# A shell starts background jobs with SIGINT ignored, and children inherit this: tests of Ctrl-C would wait forever.
signal.signal(signal.SIGINT, signal.default_int_handler)


# The longest tests start first, so that no worker is left with one at the end.
LONG_FIRST = (
    "tests/native", "tests/cli", "tests/annealing", "tests/replay", "tests/training", "tests/runtimes", "tests/test_",
    "tests/policy", "tests/ppo", "tests/evaluation", "tests/benchmark/", "tests/integration", "tests/interop",
    "tests/flat",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Starts the longest files first."""
    turns = [*LONG_FIRST, ""]
    items.sort(key=lambda item: next(at for at, folder in enumerate(turns) if item.nodeid.startswith(folder)))


def pytest_collection_finish() -> None:
    """Excludes imported objects from garbage collection, which also runs less often (tracing makes many objects)."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@pytest.fixture(scope="session")
def real() -> Callable[[str], Path]:
    """Finds a file `folder/name` below a folder of PLACEMENT_PATH; skips the test if there is none."""

    def find(name: str) -> Path:
        for folder in os.environ.get("PLACEMENT_PATH", "").split(os.pathsep):
            if folder and (Path(folder) / name).exists():
                return Path(folder) / name
        pytest.skip(f"{name} is not on PLACEMENT_PATH (see netlists/README.md)")

    return find


@pytest.fixture(scope="session")
def ariane_folder(real: Callable[[str], Path]) -> Path:
    """Returns the folder of the design `ariane133_ng45` on PLACEMENT_PATH; skips the test if it is absent."""
    return real("ariane133_ng45/netlist.pb.txt.gz").parent
