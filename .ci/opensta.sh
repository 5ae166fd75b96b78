#!/usr/bin/env bash
# Installs Debian's OpenSTA, which judges the timing, where there is none and it can be had. Without it that test skips, and says so.
set -uo pipefail
command -v sta >/dev/null && exit 0
if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
  export DEBIAN_FRONTEND=noninteractive
  timeout 120 apt-get update -qq >/dev/null && timeout 120 apt-get install -y -qq --no-install-recommends opensta >/dev/null
fi
command -v sta >/dev/null || echo "opensta: OpenSTA is not installed and cannot be had; its test skips"
exit 0
