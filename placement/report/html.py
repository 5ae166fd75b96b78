"""A single HTML file that needs nothing beside it: pictures are embedded, styles are inline.

Scripts are only in a window on a placement.
"""

from __future__ import annotations

import base64
import html
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

_MEDIA_TYPES = {".png": "image/png", ".gif": "image/gif"}

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #22262b; background: #fff; max-width: 60rem; margin: 2rem auto;
  padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: 0; } h2 { font-size: 1.15rem; margin-top: 2.5rem; }
p.line { color: #667079; margin-top: 0.2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: 0.25rem 0.9rem 0.25rem 0; border-bottom: 1px solid #d9dde1; }
th:first-child, td:first-child { text-align: left; } th { font-weight: 600; }
.wide { overflow-x: auto; } img { max-width: 100%; height: auto; }
figure { margin: 1rem 0; } figcaption { color: #667079; font-size: 0.9rem; }
summary { cursor: pointer; } pre { background: #f7f8f9; padding: 0.8rem; overflow-x: auto; font-size: 0.85rem; }
"""


def page(title: str, line: str, sections: Iterable[tuple[str, Sequence[str]]]) -> str:
    """The whole file.

    Args:
        title: the heading.
        line: a line below it.
        sections: a heading and parts, each as `table`, `picture` or `folded` give them.
    """
    body = [f"<h1>{html.escape(title)}</h1>", f'<p class="line">{html.escape(line)}</p>']
    for heading, parts in sections:
        if parts:
            body += [f"<h2>{html.escape(heading)}</h2>", *parts]
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head><body>",
            *body,
            "</body></html>",
            "",
        ]
    )


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; the first column is text, the others are numbers."""
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in header)
    lines = ["<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows]
    return f'<div class="wide"><table><tr>{head}</tr>{"".join(lines)}</table></div>'


def paragraph(text: str) -> str:
    """A paragraph of plain text."""
    return f"<p>{html.escape(text)}</p>"


def picture(path: str | os.PathLike[str], caption: str) -> str:
    """A PNG or GIF file, embedded; raises OSError where it cannot be read, ValueError for another kind of file."""
    path = Path(path)
    if path.suffix not in _MEDIA_TYPES:
        raise ValueError(f"{path}: must be one of {', '.join(_MEDIA_TYPES)}")
    data = base64.b64encode(path.read_bytes()).decode("ascii")
    source = f"data:{_MEDIA_TYPES[path.suffix]};base64,{data}"
    text = html.escape(caption)
    return f'<figure><img src="{source}" alt="{text}"><figcaption>{text}</figcaption></figure>'


def folded(summary: str, text: str) -> str:
    """Preformatted text that opens on a click."""
    return f"<details><summary>{html.escape(summary)}</summary><pre>{html.escape(text)}</pre></details>"
