"""The timing estimate as rows for people, and as a JSON object for programs. Times in ps."""

from collections.abc import Iterator
from typing import Any

from rich.table import Table

from placement.flat.opensta import OpenStaTiming
from placement.flat.timing import LISTED_PATHS, TimingEstimate, TimingPath

SHOWN_PATHS = 5
_END = 44  # maximum length of a name in a table


def timing_object(found: TimingEstimate) -> dict[str, Any]:
    """The timing for programs: `wns` and `tns` (ps, at most 0), endpoints, groups, the worst paths, CPU seconds."""
    return {
        "wns": found.wns,
        "tns": found.tns,
        "endpoints": found.total.endpoints,
        "failing_endpoints": found.total.failing,
        "timing_groups": {name: vars(group) for name, group in found.groups.items()},
        "timing_paths": [_path_object(path) for path in found.paths[:LISTED_PATHS]],
        "timing_seconds": found.seconds,
    }


def _path_object(path: TimingPath) -> dict[str, Any]:
    named = {name: getattr(path, name) for name in ("slack", "group", "start", "end", "launch", "macros", "wire")}
    return {**named, "length": path.length, "pins": len(path.pins)}


def timing_rows(found: TimingEstimate) -> Iterator[tuple[str, str, str]]:
    """Name, value and meaning of each number of the estimate."""
    total = found.total
    yield "worst slack", f"{total.wns:,.0f}", f"ps; {total.failing:,} of {total.endpoints:,} endpoints fail"
    yield (
        "total negative slack",
        f"{total.tns / 1000:,.1f}",
        f"ns, unsized; {found.seconds:.2f} CPU seconds",
    )
    for name, group in found.groups.items():
        meaning = f"ps; {group.tns / 1000:,.1f} ns in {group.failing:,} of {group.endpoints:,} endpoints"
        yield f"  {name}", f"{group.wns:,.0f}", meaning


def opensta_object(found: OpenStaTiming) -> dict[str, Any]:
    """OpenSTA's `wns` and `tns`, and ours at the same loads (ps, at most 0); endpoints, CPU seconds."""
    return {
        "wns": min(found.total.wns, 0.0),
        "tns": found.total.tns,
        "endpoints": found.total.endpoints,
        "failing_endpoints": found.total.failing,
        "estimated_wns": found.estimate.wns,
        "estimated_tns": found.estimate.tns,
        "common_endpoints": found.common,
        "median_difference": found.median_difference,
        "seconds": found.seconds,
    }


def opensta_rows(found: OpenStaTiming) -> Iterator[tuple[str, str, str]]:
    """Name, value and meaning of each number of OpenSTA's timing."""
    total, ours = found.total, found.estimate.total
    yield (
        "worst slack by OpenSTA",
        f"{total.wns:,.0f}",
        f"ps; {total.failing:,} of {total.endpoints:,} endpoints fail; own estimate, unlimited loads {ours.wns:,.0f}",
    )
    yield (
        "total by OpenSTA",
        f"{total.tns / 1000:,.1f}",
        f"ns; own estimate, unlimited loads {ours.tns / 1000:,.1f}; {found.seconds:.1f} CPU seconds",
    )
    yield (
        "common endpoints",
        f"{found.common:,}",
        f"whose slacks differ by {found.median_difference:,.2f} ps in the median",
    )


def paths_table(found: TimingEstimate) -> Table:
    """The worst paths, for a rich console."""
    table = Table(title="worst paths, one per endpoint", title_justify="left", title_style="bold")
    for name, justify in (("slack", "right"), ("wires", "right"), ("length", "right"), ("pins", "right")):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    table.add_column("group")
    table.add_column("from", overflow="fold")
    table.add_column("to", overflow="fold")
    for path in found.paths[:SHOWN_PATHS]:
        ends = (_shortened(path.start), _shortened(path.end))
        numbers = (f"{path.slack:,.0f} ps", f"{path.wire:,.0f} ps", f"{path.length:,.0f} µm", f"{len(path.pins)}")
        table.add_row(*numbers, path.group, *ends)
    return table


def _shortened(name: str) -> str:
    return name if len(name) <= _END else f"…{name[1 - _END :]}"
