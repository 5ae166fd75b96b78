"""The window in a real browser: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import os
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
START_SECONDS, END_SECONDS = 60.0, 20.0


class Server:
    """`macro-placement view` in its own process."""

    def __init__(self, folder: Path, *words: str) -> None:
        program = "import sys; from placement.cli.main import main; sys.exit(main())"
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, "view", *words, "--browser", "false"],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1", "XDG_STATE_HOME": str(folder / "state")},
        )
        self.address = self._address()

    def _address(self) -> str:
        assert self.process.stdout is not None
        until, output = time.monotonic() + START_SECONDS, ""
        while time.monotonic() < until:
            if select.select([self.process.stdout], [], [], 1.0)[0]:
                line = self.process.stdout.readline()
                output += line
                found = re.search(r"http://\S+", line)
                if found:
                    return found[0]
                if not line:
                    break
        self.end()
        raise AssertionError(f"the window has not started: {output}")

    def end(self, *, kill: bool = False) -> None:
        """Ends it as Ctrl-C does, or kills it."""
        if self.process.poll() is None:
            self.process.kill() if kill else self.process.terminate()
        self.process.wait(END_SECONDS)
        if self.process.stdout is not None:
            self.process.stdout.close()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Starts `macro-placement view` with the given arguments, in the test's folder."""
    started: list[Server] = []

    def start(*words: str) -> Server:
        started.append(Server(tmp_path, *words))
        return started[-1]

    yield start
    for server in started:
        server.end()


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Returns Chromium; skips the test if it or Playwright is not installed."""
    playwright = pytest.importorskip("playwright.sync_api", reason="the browser tests need Playwright")
    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is installed")
    with playwright.sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield made
        made.close()
