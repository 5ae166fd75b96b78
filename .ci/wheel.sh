#!/usr/bin/env bash
# Builds the sdist, the wheel from it, installs the wheel into a fresh environment, and runs its commands from another folder.
# Nothing is downloaded: the fresh environment sees the packages of the Python that built the wheel. That is the one of .venv.
# Where .ci/newer.sh made .venv-newer, the same for its Python, with a wheel of this tree, whose objects are compiled already.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset PYTHONPATH PLACEMENT_PATH

# check PYTHON SOURCE [COUNT]: builds with it from an sdist or the tree, installs, runs the commands, or so many of them.
check() {
  local python=$1 source=$2 version env
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  env=$work/env$version
  echo "wheel: building with Python $version from the $source"
  if [ "$source" = sdist ]; then
    "$python" -c 'import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])' "$work/sdist" >/dev/null
    # Without optimisation, which takes a third of the time: what is tried here is the package.
    source=(--config-settings=cmake.build-type=Debug "$work/sdist"/*.tar.gz)
  else
    source=("$root")
  fi
  "$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir "$work/dist$version" \
    "${source[@]}"
  "$python" -m venv --without-pip "$env"
  "$python" -m pip --python "$env/bin/python" install --quiet --disable-pip-version-check --no-deps --no-index "$work/dist$version"/*.whl
  # The packages of PYTHON, after the fresh environment's own. Their .pth files, such as an editable install's, do nothing there.
  "$python" -c 'import sys; print("\n".join(path for path in sys.path if path.endswith("site-packages")))' \
    >"$env/lib/python$version/site-packages/zz_pinned.pth"
  PATH="$env/bin:$PATH" .ci/wheel-commands.sh "$root" "${@:3}"
  echo "wheel: the commands ran on Python $version"
}

check "$root/.venv/bin/python" sdist
if [ -f .venv-newer/.engine ]; then
  check "$root/.venv-newer/bin/python" tree 2
else
  echo "wheel: there is no .venv-newer; tried with one Python alone"
fi
