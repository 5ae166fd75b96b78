"""The documentation names existing things: paths, links, settings, columns of `metrics.csv`, entries of the run
folder.
"""

from __future__ import annotations

import csv
import dataclasses
import importlib.util
import re
from pathlib import Path

import pytest

import placement
from placement.cli.help import listed
from placement.config import TrainConfig, build
from placement.engine.observation import MAPS, Observation
from placement.engine.pool import EnvironmentPool
from placement.runtimes import local

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(
    [*DOCS.rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "netlists/README.md"],
)
OF_THE_REPOSITORY = r"(?:placement|configs|docs|benchmarks|examples|tests|netlists|\.ci)/"
COLUMN = re.compile(r"^\| `([a-z0-9_]+)` \|", re.MULTILINE)


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


def named_paths(text: str) -> set[str]:
    """Returns paths below the repository's folders that a page names in code spans, links and commands."""
    found = re.findall(rf"(?<![\w/.…-])({OF_THE_REPOSITORY}[\w./-]*\w/?|train\.py|evaluate\.py)(?![\w*])", text)
    return {path for path in found if "*" not in path}


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_paths_that_a_page_names_exist(page):
    text = re.sub(r"^```diff\n.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    missing = [path for path in sorted(named_paths(text)) if not (ROOT / path).exists()]
    assert not missing, f"{page_id(page)} names what does not exist: {missing}"


def test_files_named_in_a_table_of_a_folder_exist():
    """Tables headed "file in `folder`" or "folder in `folder`" list names below that folder."""
    checked = 0
    for page in PAGES:
        for folder, table in re.findall(
            r"^\| (?:file|folder) in `([^`]+)`[^\n]*\n\|[-|]+\n((?:\|[^\n]*\n)+)", page.read_text(), flags=re.MULTILINE
        ):
            for row in table.splitlines():
                for name in re.findall(r"`([^`]+)`", row.split("|")[1]):
                    assert (ROOT / folder / name).exists(), f"{page_id(page)}: no {name} in {folder}"
                    checked += 1
    assert checked > 15


def test_the_walks_through_the_package_count_the_files_that_they_name():
    """ "One training iteration" and "one import": numbered files below `placement/`, as many as the text says."""
    _, *walks = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").split("## One ")
    for walk in walks:
        files = re.findall(r"(\d+) `([\w/]+\.py)`", walk)
        assert [int(number) for number, _ in files] == list(range(1, len(files) + 1)) and len(files) >= 20
        assert f" {len(files)} files" in walk
        assert not [name for _, name in files if not (ROOT / "placement" / name).exists()]


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_lead_to_files(page):
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if not target.startswith(("http://", "https://", "../../actions/")):  # the last is GitHub's, beside the files
            assert (page.parent / target).exists(), f"{page_id(page)} links to {target}, which does not exist"


def test_code_that_names_a_page_names_one_that_exists():
    files = [*ROOT.glob("placement/**/*.py"), *ROOT.glob("configs/**/*.yaml"), *ROOT.glob("benchmarks/*.py")]
    for file in files:
        for page in re.findall(r"docs/[\w/.-]+\.(?:md|yaml)", file.read_text(encoding="utf-8")):
            assert (ROOT / page).exists(), f"{file.relative_to(ROOT)} names {page}, which does not exist"


def test_the_page_of_the_python_interface_has_every_public_name():
    shown = re.findall(r"^::: (placement\.\S+)$", (DOCS / "reference/api.md").read_text(), flags=re.MULTILINE)
    assert {name.rpartition(".")[2] for name in shown} >= set(placement.__all__)
    assert len(shown) == len(set(shown))


@pytest.mark.parametrize("method", ["async_reset", "send", "recv", "step", "snapshot", "restore", "observe", "xla"])
def test_the_page_of_the_python_interface_shows_the_methods_of_the_pool(method):
    page = (DOCS / "reference/api.md").read_text()
    assert "::: placement.engine.pool.EnvironmentPool" in page
    assert getattr(EnvironmentPool, method).__doc__


def test_the_page_of_the_python_interface_has_every_key_of_an_observation_and_every_map():
    table = (DOCS / "reference/api.md").read_text().partition("## Observations and actions")[2].partition("\n## ")[0]
    keys = re.findall(r"^\| (?:`(\w+)`, )?`(\w+)(?:\[:, \d\])?`", table, flags=re.MULTILINE)
    assert {key for row in keys for key in row if key} == set(Observation._fields)
    for number, name in enumerate(MAPS):
        assert re.search(rf"^\| `maps\[:, {number}\]` \[?{name.replace('_', ' ')}", table, flags=re.MULTILINE)


def test_every_page_is_in_the_navigation():
    listed = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]))
    assert listed == {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}


def settings_generator():
    spec = importlib.util.spec_from_file_location("settings", DOCS / "settings.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_of_settings_is_up_to_date():
    generator = settings_generator()
    written = generator.PAGE.read_text(encoding="utf-8")
    assert written == generator.page(), "docs/reference/settings.md is out of date: run `make reference`"


def test_the_page_of_settings_has_at_most_190():
    page = (DOCS / "reference/settings.md").read_text(encoding="utf-8")
    assert len(re.findall(r"^\| `", page, flags=re.MULTILINE)) <= 190


def test_a_setting_without_a_meaning_is_rejected():
    @dataclasses.dataclass
    class Documented:
        """Settings.

        Attributes:
            alpha: the first
        """

        alpha: int = 1

    @dataclasses.dataclass
    class Undocumented(Documented):
        beta: int = 2

    assert [tuple(one)[:3] for one in listed(Documented)] == [("alpha", "1", "the first")]
    with pytest.raises(ValueError, match="beta: its docstring needs to say"):
        listed(Undocumented)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Returns the settings and the folder of a run of one iteration."""
    folder = tmp_path_factory.mktemp("run")
    values = {
        "design": ["toy6"],
        "run_dir": str(folder),
        "policy": {"node_width": 8, "grid_width": 8, "rounds": 1},
        "ppo": {"iterations": 1, "episodes_per_iteration": 8, "minibatch_size": 16},
        "replay": {"name": "memory"},
        "runtime": {"envs_per_actor": 4},
    }
    config = build(TrainConfig, values)
    local.run(config)
    return config, folder


def test_the_page_of_metrics_lists_just_the_columns_of_a_run(run):
    with (run[1] / "metrics.csv").open(newline="") as stream:
        columns = next(csv.reader(stream))
    page = (DOCS / "reference/metrics.md").read_text(encoding="utf-8")
    listed = COLUMN.findall(page.partition("## Every run")[2].partition("\n## ")[0])
    assert sorted(listed) == sorted(columns)


def test_the_page_of_metrics_lists_the_columns_of_the_ray_runtime():
    telemetry = pytest.importorskip("placement.runtimes.ray.telemetry")
    from placement.replay.shard_reader import ShardStatistics

    shard = ShardStatistics(
        number=0, address="", connected=True, waiting=1, ready=0, taken=3, rejected=0, duplicates=0, failures=0,
        rate=1.0, wait=0.0, skew=1.0, error="",
    )  # fmt: skip
    page = (DOCS / "reference/metrics.md").read_text(encoding="utf-8")
    for column in telemetry.replay([shard]):
        assert f"`{column.replace('replay0', 'replay<n>')}`" in page


def test_the_page_of_the_run_folder_lists_what_a_run_writes(run):
    page = (DOCS / "reference/run-folder.md").read_text(encoding="utf-8")
    written = {path.name + ("/" if path.is_dir() else "") for path in run[1].iterdir()}
    assert {name for name in written if f"`{name}" not in page} == set()
