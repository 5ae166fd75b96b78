"""`macro-placement judge data`: by processes of this machine, or of a Ray cluster's hosts."""

from __future__ import annotations

from rich.console import Console

from placement.judge import generation
from placement.judge.settings import DataConfig


def make_data(config: DataConfig, console: Console) -> None:
    """As `placement.judge.generation.make_data`; with `config.address` on the hosts of a cluster.

    Raises:
        ConfigError: no cluster can be used there.
        DesignError: a given design cannot be used, or no design could be made.
        OSError: a file cannot be written.
        KeyboardInterrupt: on Ctrl-C.
    """
    if config.address is None:
        generation.make_data(config, console)
        return
    from placement.runtimes.ray.judge_data import make_data_on_hosts

    make_data_on_hosts(config, console)
