#!/usr/bin/env bash
# Runs the commands of the macro-placement installed for the Python on the PATH, in a separate folder, and checks that it
# is the wheel and not the checkout: .ci/wheel-commands.sh CHECKOUT. cibuildwheel calls it for each wheel (pyproject.toml).
set -euo pipefail
root=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
unset PYTHONPATH PLACEMENT_PATH

for run in \
  "train preset=test ppo.iterations=1 run_dir=run" \
  "train -m preset=test ppo.iterations=1 seed=1" \
  "search toy6 --moves 10000" \
  "--help" \
  "dataset --help" \
  "benchmark --help" \
  "evaluate design=toy6 placement=run/best.plc json=true" \
  "sample checkpoint=run samples=2 plots=false" \
  "sample checkpoint=base design=toy6 samples=2 plots=false" \
  "legalise design=toy6 spacing=1" \
  "benchmark design=toy6 placers=random,search time=5 seeds=1" \
  "benchmark smoke designs=toy6 placers=greedy@1 seeds=1 plots=false" \
  "describe toy6" \
  "view --help" \
  "generate clustered mine hard=4 soft=20" \
  "describe design=mine" \
  "generate flat chip --cells 400 --macros 4" \
  "search design=chip method=mixed_size moves=1000 candidates=2 plots=false" \
  "plan actors=4"; do
  echo "macro-placement $run"
  # shellcheck disable=SC2086
  macro-placement $run >log 2>&1 || { cat log; echo "wheel: failed: macro-placement $run" >&2; exit 1; }
done
python - "$root" <<'PYTHON'
import sys
from importlib.resources import files
from pathlib import Path

import gymnasium
import placement
from placement.engine.cost_terms import include_folder

assert not Path(placement.__file__).is_relative_to(sys.argv[1]), f"{placement.__file__} is the checkout, not the wheel"
assert (include_folder() / "placement_cost_term.hpp").is_file(), "the header for users' cost terms"
design = placement.load("toy6")
assert len(design.placing_order) == 6
assert placement.load_policy("base").place(design, samples=8, annealed=0).costs.total < placement.cost(design).total
assert gymnasium.make("MacroPlacement-v0", design="toy6").reset()[0]["step"] == 0
assert "main.js" in [entry.name for entry in files("placement.report.view").joinpath("static").iterdir()], "the window's page"
assert len(list(Path("runs/toy6").glob("*/best.plc"))) == 1, "the sweep's job"
PYTHON
