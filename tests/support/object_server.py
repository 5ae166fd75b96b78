"""A real S3 server in a process of its own on this machine, with one empty bucket: moto's."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.waiting import wait_until


class ObjectServer:
    """The server; `environment` makes S3's own tools and libraries use it."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self._process = process
        self.environment = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ACCESS_KEY_ID": "somebody",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
        }

    def hang(self) -> None:
        """It takes connections, and says nothing."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)


@contextlib.contextmanager
def object_server(folder: Path) -> Iterator[ObjectServer]:
    """Runs the server and makes `s3://bucket`; skips where it is not installed."""
    pytest.importorskip("moto.server", reason="needs moto's S3 server")
    pytest.importorskip("s3fs", reason="needs the extra s3")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with (folder / "s3.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        wait_until(lambda: process.poll() is not None or _listens(port))
        assert process.poll() is None, (folder / "s3.log").read_text()
        server = ObjectServer(process, port)
        make = "import s3fs; s3fs.S3FileSystem().mkdir('bucket')"
        subprocess.run([sys.executable, "-c", make], env={**os.environ, **server.environment}, check=True, timeout=60)
        yield server
    finally:
        process.send_signal(signal.SIGCONT)
        process.terminate()
        process.wait(timeout=30)


def _listens(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False
