"""A learner host in a process of its own: the first one leads, the others follow."""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placement.distributed.cluster.role import Role, keep_off_accelerators

if TYPE_CHECKING:
    from placement.distributed.cluster.around import Around
    from placement.distributed.cluster.learning import Learning
    from placement.distributed.local import RunResult

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


class LearnerProcess(Role):
    """A learner: from the newest checkpoint on, until done or told to stop."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._learning: Learning | None = None
        self._meeting: int | None = None

    def leave(self, meeting: int) -> None:
        """Ends the process if it takes part in an earlier meeting of the learner hosts."""
        if self._meeting is not None and self._meeting < meeting:
            os._exit(ALONE)

    def run(self, meeting: int = 0) -> RunResult | None:
        """Trains; the result is the first host's.

        Args:
            meeting: at which the learner hosts find each other; a higher number at each start of theirs.

        Raises:
            ConfigError: the run folder holds another run, or the devices cannot share the work evenly.
            CheckpointError: its checkpoints cannot be used.
            ReplayTimeout: no episodes came.
        """
        self._meeting = meeting
        if not self.resources().gpus and self.config.runtime.address == "local":
            keep_off_accelerators()
        link = self.connect()
        from jax.errors import JaxRuntimeError

        try:
            return self._run(link, meeting)
        except (JaxRuntimeError, ValueError) as error:
            if self.config.runtime.learners == 1 or not _from_jax(error):
                raise
            # Most likely another host died. JAX cannot join anew, and would wait for the others at the process's end.
            _log.exception("%s cannot go on with the others", self.who)
            os._exit(ALONE)
        finally:
            link.close()

    def _run(self, link: Any, meeting: int) -> RunResult | None:
        from placement.distributed.cluster.joining import join

        index, bind = self.who.number, self.bind()
        hosts = join(link, self.config.runtime, index=index, meeting=meeting, bind=bind)
        from placement.distributed.cluster.around import Around
        from placement.distributed.compilation import keep_compilations

        keep_compilations()
        around = Around(self.config, link, bind, self.makers, self._stop, hosts)
        if index == 0:
            return self._lead(around)
        self._follow(around)
        return None

    def _lead(self, around: Around) -> RunResult:
        from placement.distributed import record
        from placement.distributed.cluster.learning import Learning
        from placement.distributed.saving import Saver
        from placement.netlist.load import load
        from placement.policy.order import ordered

        folder = Path(self.config.run_dir)
        with record.locked(folder, name=LOCK_NAME, timeout=LOCK_SECONDS):
            designs = [ordered(load(name), self.config.env.order) for name in self.config.design]
            saver = Saver(folder, self.config, designs)
            try:
                saver.refuse_if_other()
                with Learning(around, designs, saver) as self._learning:
                    return self._learning.run()
            finally:
                saver.close()

    def _follow(self, around: Around) -> None:
        from placement.distributed.cluster.following import follow
        from placement.netlist.load import load
        from placement.policy.order import ordered

        follow(around, [ordered(load(name), self.config.env.order) for name in self.config.design])

    def stop(self) -> RunResult | None:
        """Ends the loop's waits and saves at once; how far the run is, None if it has not begun."""
        super().stop()
        return None if self._learning is None else self._learning.save()
