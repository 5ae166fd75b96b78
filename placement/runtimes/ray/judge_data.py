"""`judge data address=ADDRESS`: processes on a Ray cluster's hosts make the designs of a data set and their samples.

Each design is a task. It writes to the data set's folder, which all hosts share, what is missing of it; so a task that
died with its process or its host is begun again, and goes on with the samples that are there.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import os
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from placement.config import ConfigError
from placement.judge.generation import POLL_SECONDS, Task, given_placements, make_data, named_files, tasks, tell, work
from placement.judge.settings import DataConfig
from placement.netlist.errors import DesignError
from placement.netlist.files import check_output_folder, write_whole
from placement.netlist.load import find
from placement.runtimes.ray import session
from placement.transport.addresses import accepts

RETRIES = 3
"""Of a task whose process or host died."""
LOOK_SECONDS = 1.0
"""Between two looks at the cluster."""
CANCEL_SECONDS = 10.0
"""That tasks may take to end once the command is stopped."""
LOST_SECONDS = 15.0
"""A cluster that has taken no connections for so long is gone."""
ANSWER_SECONDS = 3.0
ONE_PROCESSOR = {
    "JAX_PLATFORMS": "cpu",
    "CUDA_VISIBLE_DEVICES": "",
    "NPROC": "1",  # the size of XLA's thread pool
}
"""Environment of a task's process: others' accelerators and processors stay theirs."""


class Done(NamedTuple):
    """What a task returns: the samples that it made, or why it could not go on."""

    made: int
    error: str = ""


class _Died(Exception):
    """A task's process or host did, and it may be begun again."""


def make_data_on_hosts(config: DataConfig, console: Console) -> None:
    """See `placement.runtimes.judge_data.make_data`; `config.workers` tasks at once, each with one processor."""
    address = config.address
    assert address is not None
    check_output_folder("out", config.out)
    config = _as_hosts_see(config)
    with session.joined(address) as ray:
        processors = ray.cluster_resources().get("CPU", 0)
        if processors < 1:
            raise ConfigError(
                f"address={address!r}: the cluster has no processor; start a node with --num-cpus=1 or more"
            )
        free = ray.available_resources().get("CPU", 0)
        console.print(
            f"{config.workers} designs at once, on a cluster of {processors:.0f} processors, {free:.0f} of them free",
            soft_wrap=True,
        )
        make_data(config, console, share=_Sharing(ray, config).share)


def _as_hosts_see(config: DataConfig) -> DataConfig:
    """The settings with whole paths: a host's processes work in another folder.

    Raises:
        DesignError: a given design or placement cannot be used.
    """
    for task in tasks(config) if config.given else ():
        given_placements(task)
    given = tuple(os.path.abspath(path) for _, path in named_files(config.given))
    designs = tuple(os.path.abspath(find(design).parent) for design in config.designs)
    return dataclasses.replace(config, out=os.path.abspath(config.out), designs=designs, given=given)


class _Sharing:
    """Has tasks done, so many at once as there are workers.

    Args:
        ray: the module, connected.
        config: of the command, with whole paths.
    """

    def __init__(self, ray: Any, config: DataConfig) -> None:
        self._ray, self._config = ray, config
        self._cluster = ray.get_runtime_context().gcs_address
        self._answered = self._looked = time.monotonic()
        self._running: dict[Any, Task] = {}
        self._deaths: collections.Counter[Path] = collections.Counter()

    def share(self, todo: list[Task], stopped: Callable[[], bool], console: Console) -> None:
        """Does them; a line for each."""
        ray, waiting, done = self._ray, collections.deque(todo), 0
        with _sign(Path(self._config.out)) as sign:
            # No retries of Ray's own: what its memory monitor kills, it would begin again without end.
            remote = ray.remote(num_cpus=1, max_retries=0, runtime_env={"env_vars": ONE_PROCESSOR})(_work_there)
            try:
                while (waiting or self._running) and not stopped():
                    while waiting and len(self._running) < self._config.workers:
                        task = waiting.popleft()
                        self._running[remote.remote(task, *sign)] = task
                    ended, _ = ray.wait(list(self._running), timeout=POLL_SECONDS)
                    for reference in ended:
                        task = self._running.pop(reference)
                        try:
                            made = self._result(reference, task)
                        except _Died:
                            waiting.appendleft(task)
                            continue
                        tell(console, done, len(todo), task, made)
                        done += 1
                    self._look()
            finally:
                self._cancel()

    def _result(self, reference: Any, task: Task) -> int:
        """The samples that a task made.

        Raises:
            DesignError: it failed.
            _Died: its process or host did, and not too often.
        """
        failures = self._ray.exceptions
        died = (
            *(failures.WorkerCrashedError, failures.NodeDiedError),
            *(failures.LocalRayletDiedError, failures.OutOfMemoryError),
        )
        where = f"address={self._config.address!r}: {task.folder.name}"
        try:
            done: Done = self._ray.get(reference)
        except died as error:
            self._deaths[task.folder] += 1
            if self._deaths[task.folder] <= RETRIES:
                raise _Died from None
            raise DesignError(
                f"{where}: the process that makes it died {RETRIES + 1} times, as for want of memory "
                f"({_first_line(error)}); the same command goes on from here"
            ) from None
        except failures.RayTaskError as error:
            if "failed to import" not in str(error):
                raise  # a fault of the program
            raise DesignError(f"{where}: a host has no placement package, or another version of it") from None
        except failures.RayError as error:
            raise DesignError(f"{where}: Ray did not have it made: {_first_line(error)}") from None
        if done.error:
            raise DesignError(done.error)
        return done.made

    def _look(self) -> None:
        """Raises ConfigError once the cluster has taken no connections for `LOST_SECONDS`."""
        now = time.monotonic()
        if now < self._looked + LOOK_SECONDS:
            return
        self._looked = now
        if accepts(self._cluster, timeout=ANSWER_SECONDS):
            self._answered = time.monotonic()
        elif time.monotonic() > self._answered + LOST_SECONDS:
            self._running.clear()  # nobody is there who could cancel them
            raise ConfigError(
                f"address={self._config.address!r}: the cluster is gone; once it is back, the same command goes on"
            )

    def _cancel(self) -> None:
        """Ends what runs; samples that it was writing are whole or not there."""
        left = list(self._running)
        with contextlib.suppress(self._ray.exceptions.RayError):  # the cluster is going, too
            for reference in left:
                self._ray.cancel(reference)
            if left:
                self._ray.wait(left, num_returns=len(left), timeout=CANCEL_SECONDS)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


@contextlib.contextmanager
def _sign(out: Path) -> Iterator[tuple[str, str]]:
    """A file in the data set's folder, and what is in it: a host that does not read that there has another folder."""
    word = secrets.token_hex(8)
    path = out / f".judge-data-{word}"
    write_whole(path, word.encode())
    try:
        yield str(path), word
    finally:
        path.unlink(missing_ok=True)


def _work_there(task: Task, sign: str, word: str) -> Done:
    """On a host: does a task."""
    host = socket.gethostname()
    path = Path(sign)
    try:
        if not path.is_file() or path.read_text(encoding="utf-8") != word:
            raise DesignError(f"out={path.parent}: is not the same folder there; it must be one that all hosts share")
        return Done(work(task, lambda: False, lambda line: None))
    except (ConfigError, DesignError, OSError) as error:
        return Done(0, f"host {host}: {error}")
