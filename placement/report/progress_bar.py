"""Progress bars for commands that take a while."""

import contextlib
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn


@contextlib.contextmanager
def progress_bars(console: Console, *titles: str) -> Iterator[list[Callable[[float, str], None]]]:
    """Shows bars on a terminal only; yields a function for each, called with the completed fraction and a text."""
    columns = (TextColumn("{task.fields[title]}"), BarColumn(), TextColumn("{task.percentage:.0f} %"))
    described = TextColumn("{task.description}")
    hidden = not console.is_terminal
    with Progress(*columns, described, TimeElapsedColumn(), console=console, transient=True, disable=hidden) as bars:
        tasks = [bars.add_task("", total=1.0, title=title) for title in titles]
        yield [
            lambda share, text="", task=task: bars.update(task, completed=share, description=text)  # type: ignore[misc]
            for task in tasks
        ]
