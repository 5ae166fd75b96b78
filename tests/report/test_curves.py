from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from placement.netlist.errors import DesignError
from placement.report import curves, style
from placement.report.run_watch import best_so_far, read_metrics

HEADER = (
    "iteration,episodes,steps,seconds,cost_mean,cost_best,cost_std,"
    "wirelength_cost_mean,density_cost_mean,congestion_cost_mean,learner_entropy,learner_approx_kl"
)


def _write(path, rows: int, *, offset: float = 0.0) -> str:
    lines = [HEADER]
    for i in range(1, rows + 1):
        mean = 1.0 / i + offset
        lines.append(
            f"{i},{8 * i},{64 * i},{0.5 * i},{mean},{mean - 0.1 * (i % 2)},0.05,0.1,{0.4 / i},{0.5 / i},{4.0 / i},0.01"
        )
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def _image(figure) -> np.ndarray:
    return np.array(Image.open(io.BytesIO(style.png_bytes(figure))).convert("RGB"))


def test_columns_are_read(tmp_path):
    path = tmp_path / "metrics.csv"
    _write(path, 3)
    path.write_text(path.read_text() + "4,32,256,2.0,,,,,,,,\n")
    columns = read_metrics(path)
    assert columns["episodes"].tolist() == [8, 16, 24, 32]
    assert columns["cost_mean"][1] == 0.5
    assert np.isnan(columns["cost_mean"][3])
    assert best_so_far(columns).tolist() == pytest.approx([0.9, 0.5, 1 / 3 - 0.1, 1 / 3 - 0.1])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read"),
        ("iteration,episodes\n1,2\n", ":1: the columns cost_mean, cost_best are missing"),
        (HEADER + "\n", "no iteration"),
        (HEADER + "\n1,8,64,x,1,1,0,1,1,1,1,1\n", ":2: seconds is 'x'"),
    ],
)
def test_what_cannot_be_drawn_is_rejected(tmp_path, text, message):
    path = tmp_path / "metrics.csv"
    if text is not None:
        path.write_text(text)
    with pytest.raises(DesignError, match=message):
        read_metrics(path)


def test_training_curves_hold_the_numbers(tmp_path):
    columns = read_metrics(_write(tmp_path / "metrics.csv", 10))
    figure = curves.plot_training(columns, title="run", baselines={"annealer": 0.674})
    total, density, congestion, entropy = figure.axes
    assert total.get_title("left") == "chip cost"
    lines = {line.get_label(): line for line in total.get_lines()}
    assert np.array_equal(lines["best so far"].get_ydata(), best_so_far(columns))
    mean = lines["mean of the iteration"]
    assert np.array_equal(mean.get_xdata(), columns["iteration"])
    assert entropy.get_xlabel() == congestion.get_xlabel() == "iteration, of 8 episodes"
    assert np.array_equal(mean.get_ydata(), columns["cost_mean"])
    assert any("annealer 0.6740" in text.get_text() for text in total.texts)
    shown = {density: "density_cost_mean", congestion: "congestion_cost_mean", entropy: "learner_entropy"}
    for axes, name in shown.items():
        assert np.array_equal(axes.get_lines()[0].get_ydata(), columns[name])
    assert figure.texts[1].get_text().endswith("; constant: wirelength cost 0.1, approximate KL divergence 0.01"), (
        "what does not change has no panel"
    )
    pixels = _image(figure)
    blue = np.array([0x00, 0x72, 0xB2])
    assert (np.abs(pixels.astype(int) - blue).max(axis=-1) < 8).sum() > 1000


def test_greedy_evaluations_are_marked(tmp_path):
    path = tmp_path / "metrics.csv"
    _write(path, 3)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0] + ",greedy_cost", lines[1] + ",", lines[2] + ",0.75", lines[3] + ","]))
    figure = curves.plot_training(read_metrics(path))
    greedy = next(line for line in figure.axes[0].get_lines() if line.get_label() == "greedy policy")
    assert (greedy.get_xdata().tolist(), greedy.get_ydata().tolist()) == ([2], [0.75])
    summary = "3 iterations, 24 episodes; mean chip cost 1.0000 → 0.3333, best 0.2333"
    assert any(text.get_text().startswith(summary) for text in figure.texts)


def test_one_iteration_is_visible(tmp_path):
    figure = curves.plot_training(read_metrics(_write(tmp_path / "metrics.csv", 1)))
    assert figure.axes[0].get_lines()[0].get_marker() == "o"
    _image(figure)
