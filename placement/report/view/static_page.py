"""The window without a server, as one HTML file: placements to look at and to compare, which opens from disk."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from placement.engine.costs import cost_maps
from placement.netlist.design import Design
from placement.report.view.scene import design_values, map_values, opened_values
from placement.report.view.session import Session

_IMPORT = re.compile(r'(from |import\()"\./(\w+\.js)"')
_MODULE = "viewer/"
"""What the names of the page's modules begin with: a module that stands in the page itself has no folder."""


def static_page(design: Design, sessions: Sequence[Session], *, title: str = "") -> str:
    """The page, with its data and its program; it loads nothing.

    Args:
        design: what is placed.
        sessions: the placements, at least one.
        title: of the page; the design's name when empty.
    """
    values: dict[str, Any] = {
        "title": title or design.name,
        "design": design_values(design),
        "sessions": [
            {
                **opened_values(one),
                "maps": map_values(cost_maps(design, one.placement)),
            }
            for one in sessions
        ],
        "folder": "",
    }
    folder = files("placement.report.view").joinpath("static")
    scripts = {
        entry.name: entry.read_text(encoding="utf-8") for entry in folder.iterdir() if entry.name.endswith(".js")
    }
    imports = {f"{_MODULE}{name}": _as_address(text) for name, text in sorted(scripts.items())}
    style = folder.joinpath("style.css").read_text(encoding="utf-8")
    page = folder.joinpath("index.html").read_text(encoding="utf-8")
    head = [
        f"<style>\n{style}</style>",
        f'<script type="importmap">{json.dumps({"imports": imports})}</script>',
        f'<script type="application/json" id="embedded">{_in_script(values)}</script>',
        f'<script type="module">import "{_MODULE}main.js";</script>',
    ]
    page = re.sub(r'<link rel="stylesheet".*?>\n<script .*?</script>', lambda _: "\n".join(head), page, flags=re.DOTALL)
    return page.replace("<title>Placement</title>", f"<title>{html.escape(values['title'])}</title>")


def framed(page: str, title: str) -> str:
    """A page as a frame of another page, without a file of its own."""
    return (
        f'<iframe class="viewer" title="{html.escape(title)}" srcdoc="{html.escape(page)}" '
        'style="width: 100%; height: 44rem; border: 1px solid #d9dde1"></iframe>'
    )


def _as_address(script: str) -> str:
    """A module as a `data:` address, its imports by name."""
    named = _IMPORT.sub(rf'\1"{_MODULE}\2"', script)
    return "data:text/javascript;base64," + base64.b64encode(named.encode()).decode("ascii")


def _in_script(values: dict[str, Any]) -> str:
    """JSON that ends no script element."""
    return json.dumps(values, allow_nan=False).replace("<", "\\u003c")
