"""The compiled module; its typed faces are the other modules of this package."""

from typing import Any

def __getattr__(name: str) -> Any: ...
