"""The learner in a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from placement.distributed.cluster.role import Role, keep_off_accelerators

if TYPE_CHECKING:
    from placement.distributed.cluster.learning import Learning
    from placement.distributed.local import RunResult

LOCK_NAME = ".learner.lock"
LOCK_SECONDS = 30.0
"""That a learner waits for one of before, whose run was killed, to be gone."""


class LearnerProcess(Role):
    """The learner: from the newest checkpoint on, until done or told to stop."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._learning: Learning | None = None

    def run(self) -> RunResult:
        """Trains.

        Raises:
            ConfigError: the run folder holds another run.
            CheckpointError: its checkpoints cannot be used.
            ReplayTimeout: no episodes came.
        """
        if not self.resources().gpus and self.config.runtime.address == "local":
            keep_off_accelerators()
        link = self.connect()
        from placement.distributed import record
        from placement.distributed.cluster.learning import Around, Learning
        from placement.distributed.compilation import keep_compilations
        from placement.distributed.saving import Saver
        from placement.netlist.load import load

        keep_compilations()
        folder = Path(self.config.run_dir)
        around = Around(self.config, link, self.bind(), self.makers, self._stop)
        try:
            with record.locked(folder, name=LOCK_NAME, timeout=LOCK_SECONDS):
                designs = [load(name) for name in self.config.design]
                saver = Saver(folder, self.config, designs)
                try:
                    saver.refuse_if_other()
                    with Learning(around, designs, saver) as self._learning:
                        return self._learning.run()
                finally:
                    saver.close()
        finally:
            link.close()

    def stop(self) -> RunResult | None:
        """Ends the loop's waits and saves at once; how far the run is, None if it has not begun."""
        super().stop()
        return None if self._learning is None else self._learning.save()
