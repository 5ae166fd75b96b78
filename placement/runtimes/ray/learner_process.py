"""A learner host in its own process; the first one leads, the others follow."""

from __future__ import annotations

import logging
import os
import re
from typing import TYPE_CHECKING, Any

from placement.runtimes.ray.coordinator import CoordinatorClient
from placement.runtimes.ray.role_process import RoleProcess, keep_off_accelerators
from placement.training.run_folder import Run

if TYPE_CHECKING:
    from placement.training.learner_loop import LearnerLoop

_log = logging.getLogger(__name__)
ALONE = 76  # exit code of a learner host that lost the others; all are restarted


class LearnerProcess(RoleProcess):
    """A learner, which starts from the newest checkpoint and ends when done or stopped."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._loop: LearnerLoop | None = None
        self._rendezvous: int | None = None

    def leave(self, rendezvous: int) -> None:
        """Ends the process if it takes part in an earlier rendezvous of the learner hosts."""
        if self._rendezvous is not None and self._rendezvous < rendezvous:
            os._exit(ALONE)

    def run(self, rendezvous: int = 0) -> Run | None:
        """Trains; returns the first host's result. Raises the errors of `learner_host.opened` and `LearnerLoop.run`.

        Args:
            rendezvous: number of the learner hosts' meeting, which rises with each of their starts.
        """
        self._rendezvous = rendezvous
        if not self.config.runtime.roles.learner.gpus and self.config.runtime.address == "local":
            keep_off_accelerators()
        coordinator = self.connect()
        from jax.errors import JaxRuntimeError

        try:
            return self._learn(coordinator, rendezvous)
        except (JaxRuntimeError, ValueError) as error:
            # JAX's runtime also raises a plain ValueError that begins with a status code.
            status = type(error) is ValueError and re.match(r"[A-Z_]+: ", str(error)) is not None
            if self.config.runtime.learners == 1 or not (status or isinstance(error, JaxRuntimeError)):
                raise
            # Most likely another host died. JAX cannot rejoin, and would wait for the others at the process's end.
            _log.exception("%s cannot continue with the others", self.who)
            os._exit(ALONE)
        finally:
            coordinator.close()

    def _learn(self, coordinator: CoordinatorClient, rendezvous: int) -> Run | None:
        from placement.runtimes.ray.rendezvous import join

        index, network = self.who.number, self.network()
        count, timeout = self.config.runtime.learners, self.timing.start
        hosts = join(coordinator, network, index=index, count=count, rendezvous=rendezvous, timeout=timeout)
        from placement.runtimes.ray.learner_host import LearnerHost, follow, opened
        from placement.training.learner_loop import complete
        from placement.utils.compilation import keep_compilations

        keep_compilations()
        host = LearnerHost(self.config, coordinator, network, self.factories, self._stop, hosts)
        if index:
            follow(host)
            return None
        with opened(host) as self._loop:
            return complete(self._loop, flips=self.config.flips)

    def stop(self) -> Run | None:
        """Ends the loop's waits and saves at once; returns the run's state, or None if it has not begun."""
        super().stop()
        if self._loop is None:
            return None
        self._loop.save()
        return self._loop.result(interrupted=True)
