#!/usr/bin/env bash
# Builds the sdist, the wheel from it, installs the wheel into a fresh environment, and runs its commands from another folder.
# Nothing is downloaded: the fresh environment sees the packages of the Python that built the wheel. That is the one of .venv,
# and that of .venv-newer where .ci/run made it.
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
  "$python" -c 'import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])' "$work/sdist$version" >/dev/null
  "$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir "$work/dist$version" \
    "$work/sdist$version"/*.tar.gz
  "$python" -m venv --without-pip "$env"
  "$python" -m pip --python "$env/bin/python" install --quiet --disable-pip-version-check --no-deps --no-index "$work/dist$version"/*.whl
  # The packages of PYTHON, after the fresh environment's own. Their .pth files, such as an editable install's, do nothing there.
  "$python" -c 'import sys; print("\n".join(path for path in sys.path if path.endswith("site-packages")))' \
    >"$env/lib/python$version/site-packages/zz_pinned.pth"
  PATH="$env/bin:$PATH" .ci/wheel-commands.sh "$root"
  echo "wheel: all commands ran on Python $version"
}

check "$root/.venv/bin/python"
if [ -f .venv-newer/.engine ]; then
  check "$root/.venv-newer/bin/python"
else
  echo "wheel: there is no .venv-newer; tried with one Python alone"
fi
