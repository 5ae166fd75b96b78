"""The programs of the command line, run within this process, because a new one spends seconds on imports.

A few tests of each program start a separate process, because they test what only a whole process does.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from subprocess import CompletedProcess
from unittest import mock

from placement.cli.main import main
from placement.cli.train import FULL_ERROR

PROGRAMS: dict[str, Callable[[Sequence[str]], int]] = {
    "evaluate.py": lambda words: main(["evaluate", *words]),
    "train.py": lambda words: main(["train", *words]),
    "macro-placement": main,
}


def run_here(program: str, *arguments: str, folder: Path) -> CompletedProcess[str]:
    """Runs `program` with `arguments` in `folder`; returns its exit status and output."""
    out, err = io.StringIO(), io.StringIO()
    with _environment(), contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = PROGRAMS[program](list(arguments))
    return CompletedProcess([program, *arguments], status, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def _environment() -> Iterator[None]:
    """Provides a user's environment; changes by the program are undone."""
    with mock.patch.dict(os.environ):
        os.environ.pop(FULL_ERROR, None)
        yield
