#!/usr/bin/env bash
# Builds the wheel, installs it into a fresh environment, and runs its commands from another folder. Nothing is downloaded:
# the fresh environment sees the packages of the Python that built the wheel. Python 3.11 is that of .venv; newer ones are
# tried where they are on the PATH with all packages.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset PYTHONPATH PLACEMENT_PATH

# check PYTHON: builds with it, installs, runs every command.
check() {
  local python=$1 version env
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  env=$work/env$version
  echo "wheel: building with Python $version"
  "$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir "$work/dist$version" .
  "$python" -m venv --without-pip "$env"
  "$python" -m pip --python "$env/bin/python" install --quiet --disable-pip-version-check --no-deps --no-index "$work/dist$version"/*.whl
  # The packages of PYTHON, after the fresh environment's own. Their .pth files, such as an editable install's, do nothing there.
  "$python" -c 'import sys; print("\n".join(path for path in sys.path if path.endswith("site-packages")))' \
    >"$env/lib/python$version/site-packages/zz_pinned.pth"
  mkdir "$work/elsewhere$version"
  (cd "$work/elsewhere$version" && PATH="$env/bin:$PATH" commands)
  echo "wheel: all commands ran on Python $version"
}

commands() {
  local run
  for run in \
    "--help" \
    "compare --help" \
    "train preset=test ppo.iterations=1 run_dir=run" \
    "train -m preset=test ppo.iterations=1 seed=1" \
    "evaluate design=toy6 placement=run/best.plc json=true" \
    "sample checkpoint=run samples=2 plots=false" \
    "sample checkpoint=base design=toy6 samples=2 plots=false" \
    "search toy6 --moves 10000" \
    "legalise design=toy6 spacing=1" \
    "compare design=toy6 placers=random,anneal time=0.2 seeds=1" \
    "describe toy6" \
    "view toy6 --out viewed.plc" \
    "generate clustered mine hard=4 soft=20" \
    "describe design=mine" \
    "generate flat chip --cells 400 --macros 4" \
    "search design=chip method=mixed_size moves=1000 candidates=2 plots=false" \
    "plan actors=4"; do
    echo "macro-placement $run"
    # shellcheck disable=SC2086
    macro-placement $run >log 2>&1 || { cat log; echo "wheel: failed: macro-placement $run" >&2; return 1; }
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
assert placement.load_policy("base").place(design, samples=2, settled=0).costs.total < placement.cost(design).total
assert gymnasium.make("MacroPlacement-v0", design="toy6").reset()[0]["step"] == 0
assert "main.js" in [entry.name for entry in files("placement.report.view").joinpath("static").iterdir()], "the window's page"
assert len(list(Path("runs/toy6").glob("*/best.plc"))) == 1, "the sweep's job"
PYTHON
}

check "$root/.venv/bin/python"
for newer in python3.12 python3.13 python3.14; do
  if "$newer" -c 'import pip, scikit_build_core, nanobind, jax, flax, optax, orbax.checkpoint, hydra, gymnasium, scipy' 2>/dev/null; then
    check "$newer"
  else
    echo "wheel: skipped $newer: it is not installed, or lacks the packages"
  fi
done
