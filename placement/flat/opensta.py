"""Comparison of our timing with OpenSTA: the slack of every endpoint that OpenSTA reports for the same wires.

OpenSTA reads the files from which the design was imported, the delays of our wires as SDF, and the loads of our nets.
It accepts no load below that of a net's pins, so driver loads are not limited here, whereas `TimingEvaluator` limits
the load of a net that would be buffered.

Axis legend: P pins, E nets. Times in ps, loads in fF.
"""

import dataclasses
import os
import re
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from placement.flat.timing import GroupSlack, TimingEstimate, TimingEvaluator, group_slack
from placement.netlist.design import Placement
from placement.netlist.errors import SHOWN, DesignError
from placement.netlist.files import read_bytes, unpacked_bytes
from placement.netlist.flat_design import FlatDesign
from placement.netlist.timing_netlist import TimingNetlist

DEADLINE = 1800  # time limit of OpenSTA in seconds
_UNLIMITED = 1e9  # fF
_COMMANDS = (
    "set_cmd_units -time ps -capacitance fF",
    "source loads.tcl",
    "read_sdf -unescaped_dividers wires.sdf",
    "report_checks -path_delay max -format end -digits 5 -group_count 10000000 -no_line_splits > ends.txt",
    '} message]} { puts "Error: $message"; exit 1 }',
    "exit 0",
)
_SLACK = re.compile(r"^(\S+) \(.*\)\s+-?[\d.]+\s+-?[\d.]+\s+(-?[\d.]+)(?: \((?:MET|VIOLATED)\))?$")


@dataclasses.dataclass(frozen=True)
class OpenStaTiming:
    """Result of a run of OpenSTA."""

    slack: dict[str, float]  # slack of each endpoint by name, in ps
    estimate: TimingEstimate  # our analysis at the same loads
    common: int  # number of endpoints in both analyses, and the median difference of their slacks in ps
    median_difference: float
    seconds: float  # CPU seconds, including the reading of the files
    notices: tuple[str, ...] = ()  # the commands that OpenSTA ignored

    @property
    def total(self) -> GroupSlack:
        """The combined slack of all its endpoints."""
        return group_slack(np.array(list(self.slack.values())))


class OpenSta:
    """Times placements of one design with OpenSTA.

    Args:
        program: its path, or a name on PATH.
        timing: pins, library and constraints of `flat`, and the files that they were read from.
        flat: the flat design.

    Raises:
        DesignError: the program or a file is missing, a file has changed, or the netlist is not from Verilog.
    """

    def __init__(self, program: str, timing: TimingNetlist, flat: FlatDesign) -> None:
        found = shutil.which(program)
        if found is None:
            raise DesignError(
                f"sta={program}: no such program: give the path of OpenSTA (`sta` in Debian's package opensta)"
            )
        self._program = os.path.abspath(found)
        missing = [kind for kind in ("verilog", "liberty", "sdc") if not any(one.kind == kind for one in timing.files)]
        if missing:
            raise DesignError(
                f"{flat.name}: OpenSTA reads Verilog, Liberty and SDC files, and the design was imported without "
                f"{' and '.join(missing)}: import it again with --{' and --'.join(missing)}"
            )
        for one in timing.files:
            if read_bytes(one.path)[1].sha256 != one.sha256:
                raise DesignError(f"{one.path}: has changed since the import: OpenSTA would time a different design")
        self._evaluator = TimingEvaluator(_unlimited(timing), flat)

    def evaluate(self, placement: Placement, *, folder: Path | None = None) -> OpenStaTiming:
        """Returns the timing of a placement of the flat netlist.

        Args:
            placement: a placement with all cells.
            folder: folder for the input and output files of OpenSTA; None: they are discarded.

        Raises:
            DesignError: OpenSTA failed or exceeded `DEADLINE`, or a node has no position.
        """
        estimate = self._evaluator.evaluate(placement, paths=0)
        with tempfile.TemporaryDirectory(prefix="opensta-") as temporary:
            kept = folder or Path(temporary)
            kept.mkdir(parents=True, exist_ok=True)
            names = self._write(kept, placement)
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            skipped = self._run(kept)
            seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
            slack = _read_slacks(kept / "ends.txt")
        if not slack:
            raise DesignError(f"{self._program}: found no constrained endpoint: is there a clock in the SDC file?")
        ends = zip(estimate.endpoint.tolist(), estimate.slack_at_end.tolist(), strict=True)
        apart = [abs(value - slack[names[pin]]) for pin, value in ends if names[pin] in slack]
        median = float(np.median(apart)) if apart else 0.0
        notices: tuple[str, ...] = ()
        if skipped:
            notices = (f"OpenSTA skipped commands ({len(skipped):,}): {'; '.join(skipped[:SHOWN])}",)
        return OpenStaTiming(slack, estimate, len(apart), median, seconds, notices)

    def pin_names(self) -> list[str]:
        """The name of each pin, [P]."""
        timing = self._evaluator.timing
        return [timing.pin_name(pin, self._evaluator.flat) for pin in range(len(timing.instance))]

    def _write(self, folder: Path, placement: Placement) -> list[str]:
        """Writes the input files of OpenSTA; returns the pins' names."""
        timing, facts = self._evaluator.timing, self._evaluator.facts
        delays, names = self._evaluator.delays(placement), self.pin_names()
        commands = []
        for number, one in enumerate(one for one in timing.files if one.kind != "sourced"):
            name = f"{number}.{one.kind}"
            (folder / name).write_bytes(unpacked_bytes(one.path))
            commands.append((("liberty", "verilog", "sdc").index(one.kind), f"read_{one.kind} {name}"))
        read = [command for _, command in sorted(commands, key=lambda command: command[0])]
        read.insert(-1, f"link_design {{{timing.top}}}")
        load = delays["load_rise"] - self._pin_loads(names)
        with (folder / "wires.sdf").open("w") as file:
            file.writelines(_sdf(names, timing, facts["driver"], delays["wire"]))
        with (folder / "loads.tcl").open("w") as file:
            file.writelines(_wire_loads(names, timing, facts["net_driver"], load))
        # The SDC file may source others by paths relative to the current directory, which should be that of the import.
        here = folder.resolve()
        read[-1] = f"cd {{{os.getcwd()}}}; read_sdc {{{here / read[-1].split()[-1]}}}; cd {{{here}}}"
        (folder / "run.tcl").write_text("\n".join(("if {[catch {", *read, *_COMMANDS, "")))
        return names

    def _pin_loads(self, names: Sequence[str]) -> np.ndarray:
        """The load of each net's pins and of the ports outside of the chip, float [E], without the driver's."""
        timing, driver = self._evaluator.timing, self._evaluator.facts["net_driver"]
        outside = {one.port: one.load for one in timing.constraints.loads}
        at_pin = np.append(timing.library.rise_capacitance, 0.0)[timing.library_pin]
        at_pin[driver[driver >= 0]] = 0.0
        for pin in np.flatnonzero(timing.instance < 0).tolist():
            at_pin[pin] = outside.get(names[pin], 0.0)
        loads: np.ndarray = np.add.reduceat(at_pin, timing.net_start[:-1])
        return loads

    def _run(self, folder: Path) -> list[str]:
        """Runs OpenSTA in the folder; returns its messages about ignored commands."""
        log = folder / "sta.log"
        try:
            with log.open("w") as file:
                done = subprocess.run(
                    [self._program, "-no_splash", "-exit", "run.tcl"], cwd=folder, stdin=subprocess.DEVNULL,
                    stdout=file, stderr=file, timeout=DEADLINE, check=False,
                )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise DesignError(f"{self._program}: took longer than {DEADLINE / 60:g} minutes") from None
        except OSError as error:
            raise DesignError(f"{self._program}: cannot be run: {error.strerror or error}") from None
        lines = log.read_text(errors="replace").strip().splitlines()
        errors = [line.removeprefix("Error: ") for line in lines if line.startswith("Error: ")]
        unread = [error for error in errors if error.startswith("wires.sdf") and "syntax error" in error]
        if unread:
            raise DesignError(f"{self._program}: did not read all wire delays: {unread[0]}")
        if done.returncode or not (folder / "ends.txt").is_file():
            message = (errors or lines or ["it wrote nothing"])[-1]
            raise DesignError(f"{self._program}: ended with status {done.returncode}: {message}")
        return errors


def _unlimited(timing: TimingNetlist) -> TimingNetlist:
    """Returns the same netlist without load limits."""
    none = np.zeros_like(timing.library.max_capacitance)
    return dataclasses.replace(
        timing,
        wires=dataclasses.replace(timing.wires, most_load=_UNLIMITED),
        library=dataclasses.replace(timing.library, max_capacitance=none),
    )


def _read_slacks(path: Path) -> dict[str, float]:
    """Returns the slack of each endpoint in a report; the worst if there are several."""
    found: dict[str, float] = {}
    for line in path.read_text().splitlines():
        match = _SLACK.match(line)
        if match:
            found[match[1]] = min(float(match[2]), found.get(match[1], np.inf))
    return found


def _escaped(name: str, *, bits: bool) -> str:
    """Escapes the name of a pin or port for SDF (`bits`: bus bits keep plain brackets) and for Tcl patterns."""
    cell, divider, pin = name.rpartition("/")
    special = re.compile(r"([^\w/])" if bits else r"([][*?\\])", re.ASCII)
    plain = re.compile(r"([^\w[\]])", re.ASCII) if bits else special
    return special.sub(r"\\\1", cell) + divider + plain.sub(r"\\\1", pin)


def _sdf(names: Sequence[str], timing: TimingNetlist, driver: np.ndarray, wire: np.ndarray) -> Iterator[str]:
    """Yields the lines of an SDF file with the wire delay to each pin, float [P], from its driver, int [P]."""
    yield '(DELAYFILE (SDFVERSION "3.0") (DIVIDER /) (TIMESCALE 1ps)\n'
    yield '(CELL (CELLTYPE "top") (INSTANCE) (DELAY (ABSOLUTE\n'
    known = (timing.library_pin >= 0) | (timing.instance < 0)
    for pin in np.flatnonzero((driver >= 0) & known & known[driver]).tolist():
        delay = f"({wire[pin]:.3f}::{wire[pin]:.3f})"
        ends = f"{_escaped(names[driver[pin]], bits=True)} {_escaped(names[pin], bits=True)}"
        yield f"(INTERCONNECT {ends} {delay} {delay})\n"
    yield "))))\n"


def _wire_loads(names: Sequence[str], timing: TimingNetlist, net_driver: np.ndarray, load: np.ndarray) -> Iterator[str]:
    """Yields Tcl that sets the wire's load, float [E], of each net that a cell drives; `net_driver` is int [E].

    OpenSTA adds the loads of the pins, which differ for the rising and the falling edge.
    """
    for net, pin in enumerate(net_driver.tolist()):
        if pin >= 0 and timing.library_pin[pin] >= 0:
            pattern = f"[get_nets -of_objects [get_pins {{{_escaped(names[pin], bits=False)}}}]]"
            yield f"set_load {max(load[net], 0.0):.6g} {pattern}\n"
