"""Training from Python with the command's settings, by dotted keys. The example of `placement.train` itself trains."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from placement.config import ConfigError, TrainConfig
from placement.runtimes import local, public
from placement.training.run_folder import Run


def test_settings_are_the_commands_with_dotted_keys_groups_and_mappings() -> None:
    given = {"design": ["toy6"], "seed": 3, "runtime": "accelerator", "runtime.actors": 2, "ppo": {"epochs": 4}}
    config = public.compose(given)
    assert (config.design, config.seed, config.runtime.envs_per_actor, config.runtime.actors) == (("toy6",), 3, 1024, 2)
    assert config.ppo == dataclasses.replace(TrainConfig(("any",), "any").ppo, epochs=4)
    assert config.run_dir.startswith("runs/toy6/seed3-")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ppo.iteration": 3}, r"ppo\.iteration: unknown setting"),
        ({"ppo.iterations": "many"}, r"ppo\.iterations='many': must be of type int"),
        ({"runtime": "slurm"}, r"runtime=slurm"),
    ],
)
def test_wrong_settings_are_rejected_by_name(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        public.compose({"design": ["toy6"], **settings})


def test_the_report_of_a_complete_run_is_not_drawn_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Path] = []
    monkeypatch.setattr("placement.report.run_report.write_report", lambda folder, *rest, **more: drawn.append(folder))
    monkeypatch.setattr(local, "run", lambda config, progress: Run(tmp_path, already_complete=True))
    config = TrainConfig(("toy6",), str(tmp_path))
    public.run(config)
    (tmp_path / public.REPORT_NAME).touch()
    assert public.run(config).already_complete and drawn == [tmp_path]
