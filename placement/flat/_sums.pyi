from typing import Any

XLA_HANDLERS: dict[str, Any]
