"""A learner host in a process of its own: the first one leads, the others follow."""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placement.runtimes.ray.role_process import RoleProcess, keep_off_accelerators

if TYPE_CHECKING:
    from placement.runtimes.local import RunResult
    from placement.runtimes.ray.learner_host import LearnerHost
    from placement.runtimes.ray.primary_learner import PrimaryLearner

_log = logging.getLogger(__name__)
LOCK_NAME = ".learner.lock"
LOCK_SECONDS = 30.0
"""That a learner waits for one of before, whose run was killed, to be gone."""
ALONE = 76
"""Exit code of a learner host that lost the others; all are started anew."""


def _from_jax(error: Exception) -> bool:
    """Whether JAX's runtime failed: as its own error, or as a plain ValueError that begins with a status code."""
    from jax.errors import JaxRuntimeError

    status = type(error) is ValueError and re.match(r"[A-Z_]+: ", str(error)) is not None
    return status or isinstance(error, JaxRuntimeError)


class LearnerProcess(RoleProcess):
    """A learner: from the newest checkpoint on, until done or told to stop."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._primary: PrimaryLearner | None = None
        self._rendezvous: int | None = None

    def leave(self, rendezvous: int) -> None:
        """Ends the process if it takes part in an earlier rendezvous of the learner hosts."""
        if self._rendezvous is not None and self._rendezvous < rendezvous:
            os._exit(ALONE)

    def run(self, rendezvous: int = 0) -> RunResult | None:
        """Trains; the result is the first host's.

        Args:
            rendezvous: at which the learner hosts find each other; a higher number at each start of theirs.

        Raises:
            ConfigError: the run folder holds another run, or the devices cannot share the work evenly.
            CheckpointError: its checkpoints cannot be used.
            ReplayTimeout: no episodes came.
        """
        self._rendezvous = rendezvous
        if not self.resources().gpus and self.config.runtime.address == "local":
            keep_off_accelerators()
        coordinator = self.connect()
        from jax.errors import JaxRuntimeError

        try:
            return self._run(coordinator, rendezvous)
        except (JaxRuntimeError, ValueError) as error:
            if self.config.runtime.learners == 1 or not _from_jax(error):
                raise
            # Most likely another host died. JAX cannot join anew, and would wait for the others at the process's end.
            _log.exception("%s cannot go on with the others", self.who)
            os._exit(ALONE)
        finally:
            coordinator.close()

    def _run(self, coordinator: Any, rendezvous: int) -> RunResult | None:
        from placement.runtimes.ray.rendezvous import join

        index, bind = self.who.number, self.bind()
        hosts = join(coordinator, self.config.runtime, index=index, rendezvous=rendezvous, bind=bind)
        from placement.runtimes.ray.learner_host import LearnerHost
        from placement.training.compilation import keep_compilations

        keep_compilations()
        learner_host = LearnerHost(self.config, coordinator, bind, self.makers, self._stop, hosts)
        if index == 0:
            return self._run_primary(learner_host)
        self._run_secondary(learner_host)
        return None

    def _run_primary(self, learner_host: LearnerHost) -> RunResult:
        from placement.netlist.load import load
        from placement.policy.order import ordered
        from placement.runtimes.ray.primary_learner import PrimaryLearner
        from placement.training import run_record
        from placement.training.saving import Saver

        folder = Path(self.config.run_dir)
        with run_record.locked(folder, name=LOCK_NAME, timeout=LOCK_SECONDS):
            designs = [ordered(load(name), self.config.env.order) for name in self.config.design]
            saver = Saver(folder, self.config, designs)
            try:
                saver.refuse_if_other()
                with PrimaryLearner(learner_host, designs, saver) as self._primary:
                    return self._primary.run()
            finally:
                saver.close()

    def _run_secondary(self, learner_host: LearnerHost) -> None:
        from placement.netlist.load import load
        from placement.policy.order import ordered
        from placement.runtimes.ray.secondary_learner import learn_along

        learn_along(learner_host, [ordered(load(name), self.config.env.order) for name in self.config.design])

    def stop(self) -> RunResult | None:
        """Ends the loop's waits and saves at once; how far the run is, None if it has not begun."""
        super().stop()
        return None if self._primary is None else self._primary.save()
