"""Caches XLA's compiled programs between processes, so that a resumed run or a sweep's next seed starts at once.

Compiling the learner's step costs more than many iterations on a small design.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
from pathlib import Path

import jax

FOLDER_NAME = "macro-placement"


def keep_compilations() -> Path | None:
    """Makes JAX keep compiled programs in the user's cache folder (`XDG_CACHE_HOME`, by default `~/.cache`).

    A user's own setting of the folder (`JAX_COMPILATION_CACHE_DIR`) or against caching
    (`JAX_ENABLE_COMPILATION_CACHE=0`) takes precedence.

    Returns:
        The folder; None if nothing was changed or the folder cannot be written.
    """
    if getattr(jax.config, "jax_compilation_cache_dir", None) is not None or not getattr(
        jax.config, "jax_enable_compilation_cache", True
    ):
        return None
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = base / FOLDER_NAME / _processor()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except (OSError, RuntimeError):
        return None
    if not os.access(folder, os.W_OK):
        return None
    jax.config.update("jax_compilation_cache_dir", str(folder))
    return folder


def _processor() -> str:
    """This machine's processor and its features; programs for another one may use unsupported instructions."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = platform.processor()
    features = sorted(set(re.findall(r"^(?:flags|Features|model name)\s*:\s*(.*)$", text, flags=re.MULTILINE)))
    return f"{platform.machine()}-{hashlib.sha256(repr(features).encode()).hexdigest()[:8]}"
