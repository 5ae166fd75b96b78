"""The sweep's table, from run folders as training leaves them."""

from __future__ import annotations

from rich.console import Console

from placement.cli import sweep


def test_rows_come_from_the_metrics_of_each_run(tmp_path):
    (tmp_path / "metrics.csv").write_text(
        "iteration,episodes,seconds,proxy_cost_mean,best_so_far\n1,8,1.5,0.9,0.7\n2,16,3.0,0.8,0.7\n"
    )
    row = sweep._row(["design=toy6", "seed=1"], str(tmp_path), 0)
    assert (row["best"], row["mean"], row["episodes"], row["seconds"]) == (0.7, 0.8, 16, 3.0)
    (tmp_path / "best.json").write_text('{"toy6": {"proxy_cost": 0.5}, "other": {"proxy_cost": 0.7}}')
    row = sweep._row(["design=toy6", "seed=1"], str(tmp_path), 0)
    assert row["best"] == 0.6, "what the evaluation at the end found, the mean of several designs"
    (tmp_path / "dead").mkdir()
    (tmp_path / "dead" / "metrics.csv").write_text(
        "iteration,episodes,seconds,proxy_cost_mean,best_so_far\n1,8,1.5,,\n"
    )
    dead = sweep._row(["seed=3"], str(tmp_path / "dead"), 0)
    failed = sweep._row(["seed=2"], str(tmp_path), 2)
    console = Console(width=150, record=True)
    console.print(sweep.table([row, dead, failed]))
    text = console.export_text()
    assert "design=toy6 seed=1" in text and "0.6000" in text and "0.8000" in text
    assert "–" in text, "a run of dead ends only has no cost"
    assert "failed (exit code 2)" in text
