#!/usr/bin/env bash
# Installs Debian's Chromium for `make test-browser` if it is missing and available. Without it, these tests are skipped.
set -uo pipefail
for name in chromium chromium-browser google-chrome; do
  command -v "$name" >/dev/null && exit 0
done
if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
  export DEBIAN_FRONTEND=noninteractive
  timeout 120 apt-get update -qq >/dev/null && timeout 300 apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null
fi
command -v chromium >/dev/null || echo "browser: Chromium is neither installed nor available; the window's browser tests are skipped"
exit 0
