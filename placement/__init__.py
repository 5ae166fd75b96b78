"""Chip macro placement by reinforcement learning. See README.md and docs/architecture.md."""

from __future__ import annotations

from placement.netlist.load import load

__all__ = ["load"]
__version__ = "0.1.0"
