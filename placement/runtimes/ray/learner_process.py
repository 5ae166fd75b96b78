"""A learner host in a process of its own: the first one leads, the others follow."""

from __future__ import annotations

import logging
import os
import re
from typing import TYPE_CHECKING, Any

from placement.runtimes.ray.coordinator_client import CoordinatorClient
from placement.runtimes.ray.role_process import RoleProcess, keep_off_accelerators

if TYPE_CHECKING:
    from placement.training.learner_loop import LearnerLoop
    from placement.training.run_result import RunResult

_log = logging.getLogger(__name__)
ALONE = 76
"""Exit code of a learner host that lost the others; all are restarted."""


def _from_jax(error: Exception) -> bool:
    """Whether JAX's runtime failed: as its own error, or as a plain ValueError that begins with a status code."""
    from jax.errors import JaxRuntimeError

    status = type(error) is ValueError and re.match(r"[A-Z_]+: ", str(error)) is not None
    return status or isinstance(error, JaxRuntimeError)


class LearnerProcess(RoleProcess):
    """A learner: from the newest checkpoint on, until done or told to stop."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._loop: LearnerLoop | None = None
        self._rendezvous: int | None = None

    def leave(self, rendezvous: int) -> None:
        """Ends the process if it takes part in an earlier rendezvous of the learner hosts."""
        if self._rendezvous is not None and self._rendezvous < rendezvous:
            os._exit(ALONE)

    def run(self, rendezvous: int = 0) -> RunResult | None:
        """Trains; the result is the first host's. Raises what `primary_learner.opened` and `LearnerLoop.run` raise.

        Args:
            rendezvous: at which the learner hosts find each other; a higher number at each start of theirs.
        """
        self._rendezvous = rendezvous
        if not self.resources().gpus and self.config.runtime.address == "local":
            keep_off_accelerators()
        coordinator = self.connect()
        from jax.errors import JaxRuntimeError

        try:
            return self._learn(coordinator, rendezvous)
        except (JaxRuntimeError, ValueError) as error:
            if self.config.runtime.learners == 1 or not _from_jax(error):
                raise
            # Most likely another host died. JAX cannot join anew, and would wait for the others at the process's end.
            _log.exception("%s cannot go on with the others", self.who)
            os._exit(ALONE)
        finally:
            coordinator.close()

    def _learn(self, coordinator: CoordinatorClient, rendezvous: int) -> RunResult | None:
        from placement.runtimes.ray.rendezvous import join

        index, network = self.who.number, self.network()
        hosts = join(coordinator, self.config.runtime, index=index, rendezvous=rendezvous, network=network)
        from placement.runtimes.ray import primary_learner
        from placement.runtimes.ray.learner_host import LearnerHost
        from placement.runtimes.ray.secondary_learner import learn_along
        from placement.training.run import complete
        from placement.utils.compilation import keep_compilations

        keep_compilations()
        host = LearnerHost(self.config, coordinator, network, self.makers, self._stop, hosts)
        if index:
            learn_along(host)
            return None
        with primary_learner.opened(host) as self._loop:
            return complete(self._loop, flips=self.config.flips)

    def stop(self) -> RunResult | None:
        """Ends the loop's waits and saves at once; how far the run is, None if it has not begun."""
        super().stop()
        if self._loop is None:
            return None
        from placement.training.run import result

        self._loop.save()
        return result(self._loop, interrupted=True)
