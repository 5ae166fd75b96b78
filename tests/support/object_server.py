"""A real S3 server (moto's) in its own process on this machine, with one empty bucket."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.support.waiting import wait_until


class ObjectServer:
    """The server; `environment` makes S3's own tools and libraries use it."""

    def __init__(self, process: subprocess.Popen[bytes], address: str) -> None:
        self._process = process
        self.environment = {
            "AWS_ENDPOINT_URL": f"http://{address}",
            "AWS_ACCESS_KEY_ID": "somebody",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
        }

    def hang(self) -> None:
        """Makes it accept connections without answering."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)


@contextlib.contextmanager
def object_server(folder: Path, *, host: str = "127.0.0.1", prefix: Sequence[str] = ()) -> Iterator[ObjectServer]:
    """Runs the server and creates `s3://bucket`; skips the test if it is not installed.

    Args:
        folder: for what it says.
        host: the address that it listens on.
        prefix: of commands, such as one that runs them where that address is.
    """
    pytest.importorskip("moto.server", reason="needs moto's S3 server")
    pytest.importorskip("s3fs", reason="needs the extra s3")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [*prefix, sys.executable, "-m", "moto.server", "-H", host, "-p", str(port)]
    log_file = folder / "s3.log"
    with log_file.open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        wait_until(lambda: process.poll() is not None or "Running on" in log_file.read_text())
        assert process.poll() is None, log_file.read_text()
        server = ObjectServer(process, f"{host}:{port}")
        make = [*prefix, sys.executable, "-c", "import s3fs; s3fs.S3FileSystem().mkdir('bucket')"]
        subprocess.run(make, env={**os.environ, **server.environment}, check=True, timeout=60)
        yield server
    finally:
        process.send_signal(signal.SIGCONT)
        process.terminate()
        process.wait(timeout=30)
