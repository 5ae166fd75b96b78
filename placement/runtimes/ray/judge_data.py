"""`judge data address=ADDRESS`: processes on a Ray cluster's hosts make the designs of a data set and their samples.

Each design is a task. It writes to the data set's folder, which all hosts share, what is missing of it; so a task that
died with its process or its host is begun again, and goes on where that one was.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import secrets
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from placement.config import ConfigError
from placement.judge.generation import POLL_SECONDS, Task, make_data, named_files, tell, work
from placement.judge.settings import DataConfig
from placement.netlist.errors import DesignError
from placement.netlist.files import check_output_folder, write_whole
from placement.netlist.load import find
from placement.runtimes.ray import session
from placement.transport.addresses import accepts

RETRIES = 3
"""Of a task whose process or host died."""
CANCEL_SECONDS = 10.0
"""That tasks may take to end once the command is stopped."""
LOST_SECONDS = 15.0
"""A cluster that has taken no connections for so long is gone."""
ANSWER_SECONDS = 3.0


class Done(NamedTuple):
    """What a task returns: the samples that it made, or why it could not go on."""

    made: int
    error: str = ""


def make_data_on_hosts(config: DataConfig, console: Console) -> None:
    """See `placement.runtimes.judge_data.make_data`; `config.workers` tasks at once, each with one processor."""
    address = config.address
    assert address is not None
    check_output_folder("out", config.out)
    config = _as_hosts_see(config)
    with session.joined(address) as ray:
        if ray.cluster_resources().get("CPU", 0) < 1:
            raise ConfigError(f"address={address!r}: the cluster has no processor")
        make_data(config, console, share=functools.partial(_share, ray, config))


def _as_hosts_see(config: DataConfig) -> DataConfig:
    """The settings with whole paths: a host's processes work in another folder."""
    given = tuple(str(Path(path).resolve()) for _, path in named_files(config.given))
    designs = tuple(str(find(design).parent.resolve()) for design in config.designs)
    return dataclasses.replace(config, out=str(Path(config.out).resolve()), designs=designs, given=given)


def _share(ray: Any, config: DataConfig, todo: list[Task], stopped: Callable[[], bool], console: Console) -> None:
    """Has the tasks done, so many at once as there are workers."""
    with _sign(Path(config.out)) as sign:
        remote = ray.remote(num_cpus=1, max_retries=RETRIES)(_work_there)
        waiting, running = collections.deque(todo), dict[Any, Task]()
        cluster, answered = ray.get_runtime_context().gcs_address, time.monotonic()
        try:
            while (waiting or running) and not stopped():
                while waiting and len(running) < config.workers:
                    task = waiting.popleft()
                    running[remote.remote(task, *sign)] = task
                ended, _ = ray.wait(list(running), timeout=POLL_SECONDS)
                for reference in ended:
                    task = running.pop(reference)
                    done = len(todo) - len(waiting) - len(running) - 1
                    tell(console, done, len(todo), task, _result(ray, reference, task, config))
                if ended or accepts(cluster, timeout=ANSWER_SECONDS):
                    answered = time.monotonic()
                elif time.monotonic() > answered + LOST_SECONDS:
                    raise ConfigError(
                        f"address={config.address!r}: the cluster is gone; the same command goes on later"
                    )
        finally:
            _cancel(ray, running)


def _result(ray: Any, reference: Any, task: Task, config: DataConfig) -> int:
    """The samples that a task made; raises DesignError where it failed."""
    try:
        done: Done = ray.get(reference)
    except ray.exceptions.RayTaskError:
        raise  # a fault of the program
    except ray.exceptions.RayError as error:
        reason = str(error).strip().splitlines()[0]
        raise DesignError(
            f"address={config.address!r}: the process that makes {task.folder.name} died {RETRIES + 1} times, as for "
            f"want of memory ({reason}); the same command goes on from here"
        ) from None
    if done.error:
        raise DesignError(done.error)
    return done.made


def _gone(config: DataConfig) -> ConfigError:
    return ConfigError(f"address={config.address!r}: the cluster is gone; once it is back, the same command goes on")


def _cancel(ray: Any, running: Iterable[Any]) -> None:
    """Ends tasks; what they were writing is whole or not there."""
    left = list(running)
    for reference in left:
        ray.cancel(reference)
    if left:
        ray.wait(left, num_returns=len(left), timeout=CANCEL_SECONDS)


@contextmanager
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
