#!/usr/bin/env bash
# Tests what a new machine installs, with the newest Python found: requirements-newer.lock in .venv-newer, the newest JAX,
# replay in memory. Runs `make train`, a sweep, a sample of the shipped policy, and the tests that depend on the packages'
# versions. If no newer Python is found, it prints a line and ends.
set -euo pipefail
cd "$(dirname "$0")/.."
newest=
for name in python3.14 python3.13 python3.12; do
  # pyenv's commands on the PATH fail for versions that are installed but not chosen.
  for python in "$name" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/"$name"; do
    if [ -z "$newest" ] && "$python" -c 'import ensurepip' 2>/dev/null; then newest=$python; fi
  done
done
if [ -z "$newest" ]; then
  echo "newer Python: none found; requirements-newer.lock is not tested"
  exit 0
fi
# Compiling without optimisation takes a third of the time, and only the packages are tested here.
export SKBUILD_CMAKE_BUILD_TYPE=Debug
newer=(VENV=.venv-newer PYTHON="$newest")
run=$(mktemp -d)
trap 'rm -rf "$run"' EXIT
make train "${newer[@]}" ARGS="preset=test run_dir=$run/first"
command=$PWD/.venv-newer/bin/macro-placement
(cd "$run" && "$command" train -m preset=test ppo.iterations=1 seed=1 && "$command" sample checkpoint=base design=toy6 samples=2 plots=false)
# On one line, because make would run the text after a newline as another command.
tests="tests/env tests/replay"
make test "${newer[@]}" TEST_ARGS="-q -m 'not cluster and not browser and not slow' --numprocesses 2 --dist loadfile $tests"
