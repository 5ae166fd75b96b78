"""The window in a real browser: time to the first frame, to a dragged macro's cost, frame rate while panning, memory.

    python benchmarks/bench_view.py [--designs ariane133_ng45 chip] [--starts 5] [--width 2560 --height 1440]

A design may be followed by its placement after a comma: `chip,best.plc`. All figures depend on the load of the machine,
so the load average and the CPU seconds are printed, too. Chromium renders without a GPU here; frames are faster with
one.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

DEADLINE = 60.0  # seconds
PROGRAM = "import sys; from placement.cli.main import main; sys.exit(main())"
PAINTED = "performance.getEntriesByName('painted')[0]?.startTime"
MOVES, MOVES_PER_SECOND = 180, 60
DRAG = """
async ([node, moves, rate]) => {
  const { model, viewport, canvases } = viewer, canvas = canvases[0], edge = canvas.getBoundingClientRect();
  const [px, py] = viewport.toScreen(model.placement.x[node], model.placement.y[node]);
  const send = (type, x, y) => canvas.dispatchEvent(new PointerEvent(type, { pointerId: 1, button: 0, buttons: 1,
    clientX: x + edge.left, clientY: y + edge.top, bubbles: true }));
  canvas.setPointerCapture = () => {};
  send("pointerdown", px, py);
  const begun = performance.now();
  for (let at = 0; at < moves; at += 1) {
    const late = begun + 1000 * at / rate - performance.now();
    await new Promise((done) => setTimeout(done, Math.max(0, late)));
    const angle = at / 15;
    send("pointermove", px + 10 + 80 * Math.sin(angle), py + 10 + 60 * (1 - Math.cos(angle)));
  }
  while (viewer.mover.asking) await viewer.mover.asking;
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const delays = [...viewer.mover.delays], took = performance.now() - begun;
  viewer.escape();
  return { delays, took };
}
"""
FRAMES = """
async ([what, count]) => {
  const { viewport } = viewer, times = [];
  viewer.frame();
  await new Promise((done) => setTimeout(done, 500));
  let last = await new Promise(requestAnimationFrame);
  for (let at = 0; at < count; at += 1) {
    if (what === "pan") viewport.pan(at % 40 < 20 ? 12 : -12, 3);
    else viewport.zoomAt(viewport.width / 2, viewport.height / 2, at % 60 < 30 ? 1.04 : 1 / 1.04);
    viewer.redraw();
    const now = await new Promise(requestAnimationFrame);
    times.push(now - last);
    last = now;
  }
  return times;
}
"""
SCATTERED = 100_000
SCATTER = """
(count) => {
  const { model } = viewer, { canvas } = model.design;
  const filled = (value) => Float32Array.from({ length: count }, value);
  model.cells = { x: filled(() => Math.random() * canvas.width), y: filled(() => Math.random() * canvas.height),
    width: filled(() => canvas.width / 1000), height: filled(() => canvas.height / 1000) };
  viewer.redraw();
  return count;
}
"""
SEARCH = """
() => {
  const field = document.getElementById("search"), begun = performance.now();
  field.value = "*1*";
  field.dispatchEvent(new Event("input"));
  return performance.now() - begun;
}
"""


@contextmanager
def served(design: str) -> Iterator[tuple[str, float, int]]:
    """Yields the window's address, the time when the command began, and the server's process id."""
    begun = time.perf_counter()
    command = [sys.executable, "-c", PROGRAM, "view", *design.split(","), "browser=false"]
    server = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert server.stdout is not None
        for line in server.stdout:
            found = re.search(r"http://\S+", line)
            if found:
                yield found[0], begun, server.pid
                break
        else:
            raise SystemExit(f"{design}: the window did not start")
    finally:
        server.terminate()
        server.wait(DEADLINE)


def percentiles(values: Sequence[float]) -> str:
    ordered = sorted(values)
    return ", ".join(
        f"{name} {ordered[min(len(ordered) - 1, int(share * len(ordered)))]:.0f}"
        for name, share in (("median", 0.5), ("p90", 0.9), ("worst", 1.0))
    )


def cpu_seconds(pid: int) -> float:
    """Returns the CPU seconds used by a process (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid: int) -> float:
    """Returns the resident memory of a process in MiB (Linux)."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def opened(browser: Any, address: str, size: dict[str, int]) -> Any:
    page = browser.new_page(viewport=size)
    page.goto(address)
    until = time.monotonic() + DEADLINE
    while page.evaluate(PAINTED) is None:
        if time.monotonic() > until:
            raise SystemExit(f"no picture: {page.inner_text('#status')}")
        page.wait_for_timeout(5)
    return page


def measure_starts(browser: Any, design: str, size: dict[str, int], count: int) -> None:
    firsts, answers, processor = [], [], []
    for _ in range(count):
        with served(design) as (address, begun, pid):
            answers.append(time.perf_counter() - begun)
            processor.append(cpu_seconds(pid))
            asked = time.perf_counter()
            page = opened(browser, address, size)
            firsts.append(asked - begun + page.evaluate(PAINTED) / 1000)
            page.close()
    print(
        f"  command to first picture: median {statistics.median(firsts):.2f} s, best {min(firsts):.2f} s (bar: 2 s);"
        f" to the address {statistics.median(answers):.2f} s, of that CPU {statistics.median(processor):.2f} s"
    )


def measure_use(browser: Any, design: str, size: dict[str, int]) -> None:
    with served(design) as (address, _, pid):
        page = opened(browser, address, size)
        count = page.evaluate("viewer.model.design.count")
        node = page.evaluate("[...viewer.model.design.of[0]].find((node) => viewer.model.canMove(node))")
        page.evaluate("(viewer.model.layers.cells = true, viewer.wantCells())")
        cells = page.evaluate("viewer.model.cells?.x.length ?? 0")
        placed = "placed" if cells else "scattered at random"
        cells = cells or page.evaluate(SCATTER, SCATTERED)
        print(f"  {count:,} nodes, {cells:,} standard cells {placed}")
        drag = page.evaluate(DRAG, [node, MOVES, MOVES_PER_SECOND])
        print(
            f"  drag at {1000 * MOVES / drag['took']:.0f} moves/s: pointer to cost on the page, ms:"
            f" {percentiles(drag['delays'])} (bar: 50)"
        )
        for what in ("pan", "zoom"):
            print(f"  {what}: ms a frame: {percentiles(page.evaluate(FRAMES, [what, 120]))} (bar: 33)")
        print(f"  search by name: {page.evaluate(SEARCH):.0f} ms")
        heap = page.evaluate("performance.memory?.usedJSHeapSize ?? 0") / 2**20
        print(f"  memory: server {memory(pid):.0f} MiB, page's heap {heap:.0f} MiB")
        page.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--designs", nargs="+", default=["ariane133_ng45"])
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--width", type=int, default=2560)
    parser.add_argument("--height", type=int, default=1440)
    given = parser.parse_args()
    from playwright.sync_api import sync_playwright

    size = {"width": given.width, "height": given.height}
    path = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for design in given.designs:
            print(f"{design}, {given.width} × {given.height}, load average {os.getloadavg()[0]:.1f}", flush=True)
            if given.starts:
                measure_starts(browser, design, size, given.starts)
            measure_use(browser, design, size)
        browser.close()


if __name__ == "__main__":
    main()
