#!/usr/bin/env bash
# Builds the sdist, the wheel from it, installs the wheel into a fresh environment, and runs its commands from another folder.
# Nothing is downloaded: the fresh environment sees the packages of .venv, whose Python builds the wheel.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset PYTHONPATH PLACEMENT_PATH

python=$root/.venv/bin/python
env=$work/env
"$python" -c 'import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])' "$work/sdist" >/dev/null
echo "wheel: building from the sdist"
# Compiling without optimisation takes a third of the time, and only the package is tested here.
"$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir "$work/dist" \
  --config-settings=cmake.build-type=Debug "$work/sdist"/*.tar.gz
"$python" -m venv --without-pip "$env"
"$python" -m pip --python "$env/bin/python" install --quiet --disable-pip-version-check --no-deps --no-index "$work/dist"/*.whl
# The packages of .venv come after the new environment's. Their .pth files, such as an editable install's, have no effect there.
"$python" -c 'import sys; print("\n".join(path for path in sys.path if path.endswith("site-packages")))' \
  >"$(echo "$env"/lib/python*/site-packages)/zz_pinned.pth"
PATH="$env/bin:$PATH" .ci/wheel-commands.sh "$root"
echo "wheel: the commands ran"
