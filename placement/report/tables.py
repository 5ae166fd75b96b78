"""Tables of text for a rich console."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich.table import Table


def make_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str | None = None,
    caption: str | None = None,
    left: Sequence[str] = (),
    **look: Any,
) -> Table:
    """A table with its numbers on the right.

    Args:
        columns: their headings.
        rows: their texts.
        title: above the table.
        caption: below it.
        left: further columns, beside the first one, whose texts begin on the left; they may be folded.
        look: of `rich.table.Table`.
    """
    table = Table(
        title=title, title_justify="left", title_style="bold", caption=caption, caption_justify="left", **look
    )
    for number, name in enumerate(columns):
        text = number == 0 or name in left
        table.add_column(name, justify="left" if text else "right", no_wrap=not left, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table
