#!/usr/bin/env bash
# Installs Debian's Chromium for `make test-browser` where there is none and it can be had. Without it these tests skip, and say so.
set -uo pipefail
for name in chromium chromium-browser google-chrome; do
  command -v "$name" >/dev/null && exit 0
done
if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
  export DEBIAN_FRONTEND=noninteractive
  timeout 120 apt-get update -qq >/dev/null && timeout 300 apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null
fi
command -v chromium >/dev/null || echo "browser: Chromium is not installed and cannot be had; the window's browser tests skip"
exit 0
