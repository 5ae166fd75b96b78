"""Chip macro placement by reinforcement learning. See README.md and docs/architecture.md."""

from __future__ import annotations

__version__ = "0.1.0"
