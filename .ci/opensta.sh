#!/usr/bin/env bash
# Installs Debian's OpenSTA, the reference for the timing, if it is missing and available. Without it, its test is skipped.
set -uo pipefail
command -v sta >/dev/null && exit 0
if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
  export DEBIAN_FRONTEND=noninteractive
  timeout 120 apt-get update -qq >/dev/null && timeout 120 apt-get install -y -qq --no-install-recommends opensta >/dev/null
fi
command -v sta >/dev/null || echo "opensta: OpenSTA is neither installed nor available; its test is skipped"
exit 0
