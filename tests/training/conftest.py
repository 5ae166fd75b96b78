"""One S3 server for the tests of run folders in object storage."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.support.object_server import ObjectServer, object_server

_NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def _server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectServer]:
    with object_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def server(_server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> ObjectServer:
    """Returns the server, which this process's libraries use."""
    for name, value in _server.environment.items():
        monkeypatch.setenv(name, value)
    return _server


@pytest.fixture
def address(server: ObjectServer) -> str:
    """Returns an address that does not exist yet."""
    return f"s3://bucket/runs/{next(_NUMBERS)}"
