"""A connection to Ray: either this run's own on this machine, on loopback with a token, or a running one.

It also finds and ends the processes below this one.
"""

import contextlib
import importlib.util
import logging
import os
import secrets
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from placement.config import ConfigError, RuntimeConfig
from placement.replay.in_process import INSTALL_REVERB
from placement.runtimes.ray.messages import processes_of
from placement.transport.addresses import accepts, is_host_port
from placement.transport.event_loop import within
from placement.utils.worker_threads import WorkerFailed

_log = logging.getLogger(__name__)
LOCAL = "local"
OBJECT_STORE_BYTES = 80 * 1024 * 1024  # next to nothing uses it; Ray requires at least 75 MiB
END_SECONDS = 0.5  # seconds for Ray to disconnect before its processes are killed
HEAD = "gcs_server"
"""Ray's process that a driver must not outlive while it disconnects: Ray would end the driver after seconds."""
HANG_SECONDS = 60.0
"""Seconds for Ray to disconnect on a busy machine before its head is killed, too, and Ray ends this process."""
LEAVE_SECONDS = 10.0  # timeout for leaving an existing cluster, in seconds
CONNECT_SECONDS = 10.0  # timeout for an existing cluster to accept a connection, in seconds
POLL_SECONDS = 0.05
SPARE_CPUS = 1.0
STARTS = 3  # number of attempts to start a Ray that is not ready in time, as on a busy machine
NOT_READY = "timed out during startup"  # Ray's message in that case
TOKEN_HINT = "if it has a token, set RAY_AUTH_TOKEN; if it has none, RAY_AUTH_MODE=disabled"
"""Advice if a cluster does not let this process join."""
FOLDER_FILE = ".ray-session"
FOLDER_PREFIX = "placement-ray-"

_ALWAYS = {
    "RAY_USAGE_STATS_ENABLED": "0",  # no usage statistics
    "RAY_DISABLE_IMPORT_WARNING": "1",
    "RAY_DISABLE_FAILURE_SIGNAL_HANDLER": "1",  # otherwise it prints native stack traces at SIGTERM and aborts
    "TF_CPP_MIN_LOG_LEVEL": "2",
}
_OWN = {  # environment variables of a run's own Ray
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),  # Ray reads it once
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # Ray's only switch between its public and its loopback address
    "RAY_gcs_rpc_server_reconnect_timeout_s": "5",  # otherwise some of its processes outlive a killed run by a minute
}


def import_ray(*, with_reverb: bool = True) -> Any:
    """The module `ray`; raises ConfigError with installation advice for it and for Reverb, which training needs."""
    try:
        import ray
    except ImportError as error:
        raise ConfigError(
            f"runtime.name='ray': Ray cannot be imported ({error}); install the `ray` extra, or use runtime=local"
        ) from error
    if with_reverb and importlib.util.find_spec("reverb") is None:
        raise ConfigError(
            "runtime.name='ray': Reverb, which carries the episodes, is not installed; use "
            f"runtime=local, or install it: {INSTALL_REVERB}"
        )
    return ray


@contextlib.contextmanager
def opened(
    config: RuntimeConfig,
    run_dir: Path,
    *,
    cpus: float | None = None,
    with_reverb: bool = True,
    breakable: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext,
) -> Iterator[Any]:
    """Connects the module `ray` with the settings `config`; at the end it is disconnected.

    No process of the run's own Ray remains after the block. `run_dir` records where Ray's own files are, so that those
    of a killed run are removed; `breakable` is a block in which Ray may be interrupted while it starts. The run's own
    Ray has `cpus` processors; None: the sum that all roles reserve. `with_reverb` is that of `import_ray`.

    Raises:
        ConfigError: Ray is not installed, there is no cluster at the address, or it requires another token.
        WorkerFailed: the run's own Ray was not ready in time.
    """
    with _environment(config.address):
        ray = import_ray(with_reverb=with_reverb)
        if config.address != LOCAL:
            with breakable():
                _join(ray, config.address)
            try:
                yield ray
            finally:
                with contextlib.suppress(TimeoutError):  # The cluster is gone.
                    within(LEAVE_SECONDS, ray.shutdown, name="leaves Ray")
            return
        note = run_dir / FOLDER_FILE
        remove_files(note)
        others = descendants(os.getpid())
        try:
            with breakable():
                _start_or_retry(ray, round(cpus if cpus is not None else _reserved(config)), note, others)
            yield ray
        finally:
            _stop(ray, others)
            remove_files(note)


@contextlib.contextmanager
def _environment(address: str) -> Iterator[None]:
    """Sets the environment that Ray's processes inherit, and restores it afterwards.

    The run's own Ray binds to loopback and has its own token, regardless of the user's settings.
    """
    mode = {"RAY_AUTH_MODE": os.environ.get("RAY_AUTH_MODE", "token")}
    values = _ALWAYS | (_OWN if address == LOCAL else mode)
    before: Mapping[str, str | None] = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _reserved(config: RuntimeConfig) -> float:
    """The sum of all roles' processors; on one machine they share its processors, and none waits for its own."""
    counts = processes_of(config)
    return sum(getattr(config.roles, role.value).cpus * count for role, count in counts.items()) + SPARE_CPUS


def _start_or_retry(ray: Any, cpus: int, note: Path, others: Sequence[psutil.Process]) -> None:
    """Starts the run's own Ray; raises WorkerFailed if several starts take more than the half minute of Ray's wait."""
    for _ in range(STARTS):
        folder = tempfile.mkdtemp(prefix=FOLDER_PREFIX)  # short: socket paths may have 107 characters
        note.write_text(folder, encoding="utf-8")
        try:
            _start(ray, cpus, folder)
        except Exception as error:  # Ray has no separate class for it.
            if NOT_READY not in str(error):
                raise
            _log.warning("Ray was not ready in time; it is restarted")
            _stop(ray, others)
            remove_files(note)
        else:
            return
    raise WorkerFailed(
        f"runtime.name='ray': Ray was not ready in time, {STARTS} times; this machine is too busy or has too little "
        "memory: end other work, or use runtime=local"
    )


def _start(ray: Any, cpus: int, folder: str) -> None:
    with _sigterm_kept_from_children():
        ray.init(
            address=LOCAL,
            num_cpus=cpus,
            include_dashboard=False,
            object_store_memory=OBJECT_STORE_BYTES,
            log_to_driver=False,
            logging_level=logging.ERROR,
            _node_ip_address="127.0.0.1",
            _temp_dir=str(Path(folder) / "ray"),  # Ray opens it to all users; the folder above it stays closed
        )
    address = ray.util.get_node_ip_address()
    if address != "127.0.0.1":  # Ray was imported before this run could set it.
        _log.warning("Ray listens on %s, not on loopback: it was imported before the run began", address)


@contextlib.contextmanager
def _sigterm_kept_from_children() -> Iterator[None]:
    """Hides SIGTERM, which `timeout` and Slurm send to the whole group, from processes that start in this block.

    This process ends them once the learner has saved. Until then, its own signals arrive through other threads.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _join(ray: Any, address: str) -> None:
    unusable = f"runtime.address={address!r}: no usable Ray cluster at this address"
    # Ray itself would try for many minutes.
    if is_host_port(address) and not accepts(address, timeout=CONNECT_SECONDS):
        raise ConfigError(f"{unusable} (nothing accepts connections)")
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        reason = "; ".join([*str(error).strip().splitlines()[:1], TOKEN_HINT])
        raise ConfigError(f"{unusable} ({reason})") from error


def _stop(ray: Any, others: Sequence[psutil.Process]) -> None:
    """Ends Ray; kills its remaining processes after a moment, its head once it has disconnected, but none of `others`.

    Ray alone would wait a second for each of its processes, which do not receive its SIGTERM.
    """
    ours = [process for process in descendants(os.getpid()) if process not in others]
    without_head = [process for process in ours if program(process) != HEAD]
    killing = threading.Timer(END_SECONDS, end_all, [without_head], {"timeout": 0.0})
    hanging = threading.Timer(HANG_SECONDS, end_all, [ours], {"timeout": 0.0})
    killing.start()
    hanging.start()
    try:
        ray.shutdown()
    finally:
        hanging.cancel()
        killing.join()
        end_all(ours, timeout=END_SECONDS)


def remove_files(note: Path) -> None:
    """Removes the folder that the file `note` names, if it is one of Ray's, and the file."""
    try:
        folder = Path(note.read_text(encoding="utf-8").strip())
    except OSError:
        return
    if folder.name.startswith(FOLDER_PREFIX) and folder.parent == Path(tempfile.gettempdir()):
        shutil.rmtree(folder, ignore_errors=True)
    note.unlink(missing_ok=True)


def descendants(pid: int) -> list[psutil.Process]:
    """Children of `pid`, their children and so on; empty if there is no such process."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).children(recursive=True)
    return []


def alive(process: psutil.Process) -> bool:
    """Whether a process still runs; a zombie does not."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    return False


def program(process: psutil.Process) -> str:
    """The name of a process's program; empty if it has ended."""
    with contextlib.suppress(psutil.Error):
        return process.name()
    return ""


def end_all(processes: Iterable[psutil.Process], *, timeout: float) -> list[psutil.Process]:
    """Waits up to `timeout` seconds for all to end, then kills the rest; returns those that had to be killed."""
    left = wait_for_end(processes, timeout=timeout)
    for process in left:
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            process.kill()
    wait_for_end(left, timeout=timeout)
    return left


def wait_for_end(processes: Iterable[psutil.Process], *, timeout: float) -> list[psutil.Process]:
    """Waits up to `timeout` seconds; returns the processes that have not ended."""
    deadline = time.monotonic() + timeout
    left = [process for process in processes if alive(process)]
    while left and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
        left = [process for process in left if alive(process)]
    return left
