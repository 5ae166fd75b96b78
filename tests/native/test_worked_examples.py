"""The worked examples of docs/how-to/extend-the-engine.md, applied to a copy of the engine, compiled and run."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.native.conftest import ROOT, NativeBuild, run, tool

NATIVE = Path("placement/engine/native")

TERM_MAIN = """
#include <cassert>
#include <cmath>
#include "cost/incremental.hpp"
#include "toy_design.hpp"
int main() {
  using namespace placement;
  const auto design = toy_design();  // 80 × 60 µm; hard macros 20 × 20, 20 × 10, 10 × 10, 7 × 5
  std::vector<double> x = {0, 10, 40, 75, 40, 5}, y = {0, 30, 30, 55, 30, 5};
  const std::vector<std::int8_t> orientation(6, 0);
  // From the edges: 0 (left), 25 (top and bottom), 0 (corner), 27.5; over half of 60 µm.
  const double expected = (0 + 25 + 0 + 27.5) / 4 / 30;
  CostEvaluator full(design);
  const Weights weights{1.0, 0.5, 0.5, 2.0};
  const Costs costs = full.evaluate(x.data(), y.data(), orientation.data(), weights);
  const Costs without = full.evaluate(x.data(), y.data(), orientation.data(), Weights());
  assert(std::abs(costs.edge_cost - expected) < 1e-12);
  assert(std::abs(costs.total - without.total - 2 * expected) < 1e-12);
  const auto made = make_incremental_cost(design, x.data(), y.data(), orientation.data(), weights);
  IncrementalCost& moved = *made;
  assert(moved.costs().total == costs.total);
  const NodeMove move{2, 10, 30, 0};
  moved.propose(&move, 1);
  x[2] = 10;
  assert(moved.costs().edge_cost == full.evaluate(x.data(), y.data(), orientation.data(), weights).edge_cost);
  moved.undo();
  assert(moved.costs().total == costs.total);
}
"""

MAP_MAIN = """
#include <cassert>
#include <cmath>
#include "env/observation.hpp"
#include "toy_design.hpp"
int main() {
  using namespace placement;
  const auto plan = std::make_shared<const EpisodePlan>(toy_design());
  PlacementState state(plan);
  state.place(2, 3);  // 20 × 20 µm on gcells of 10: one full, four half full, four by a quarter
  ObservationShape shape;
  shape.include(*plan);
  std::int32_t design = 0, step = 0;
  std::vector<std::uint8_t> mask(shape.cells());
  std::vector<float> maps(shape.cells() * kMaps), x(shape.steps), y(shape.steps);
  ObservationWriter(shape).write(state, 0, {&design, &step, mask.data(), maps.data(), x.data(), y.data()});
  const float* crowding = maps.data() + 3 * shape.cells();
  assert(kMaps == 4);
  assert(std::abs(crowding[2 * 8 + 3] - 4.0f / 9) < 1e-6);  // the whole macro
  assert(std::abs(crowding[0] - 5.0f / 9) < 1e-6);          // a corner: five gcells beyond the edge
}
"""


MOVE_MAIN = """
#include <cassert>
#include <string>
#include "search/annealer.hpp"
#include "toy_design.hpp"
int main() {
  using namespace placement;
  auto design = toy_design();
  const std::vector<double> x{5, 10, 40, 65, 65, 40}, y{5, 10, 15, 15, 40, 40};
  const std::vector<std::int8_t> orientation(6, 0);
  Annealer annealer(design, x.data(), y.data(), orientation.data(), {}, MoveOptions(), 1);
  annealer.run(1000, 1.0);
  int found = 0;
  for (std::size_t move = 0; move < all_moves().size(); ++move) {
    if (all_moves()[move].name != std::string("soft_align")) continue;
    ++found;
    assert(all_moves()[move].weight == 0.5);
    assert(annealer.tally().drawn[move] == 0);  // the design has one soft macro
  }
  assert(found == 1);
}
"""


def examples() -> dict[str, str]:
    """Returns the diffs of the page, by their heading."""
    page = (ROOT / "docs/how-to/extend-the-engine.md").read_text()
    return {
        heading: re.search(r"^```diff\n(.*?)^```", text, re.S | re.M)[1]
        for heading, text in re.findall(r"^## (Add [^\n]+)\n(.*?)(?=^## )", page, re.S | re.M)
    }


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("heading", "main", "changed", "depending"),
    [
        (
            "Add a term to the cost",
            TERM_MAIN,
            ("cost/cost.cpp", "cost/incremental.cpp"),
            ("cost/incremental_proxy.cpp", "cost/incremental_chip.cpp"),
        ),
        ("Add a move to the search", MOVE_MAIN, ("search/soft_moves.cpp",), ()),
        ("Add a feature to the observation", MAP_MAIN, (), ()),
    ],
)
def test_a_worked_example_compiles_and_does_what_it_says(
    heading: str,
    main: str,
    changed: tuple[str, ...],
    depending: tuple[str, ...],
    tmp_path: Path,
    native_build: NativeBuild,
) -> None:
    """Compiles the files that the example changes and those that depend on its headers; the library has the rest."""
    git, compiler = tool("git"), tool("c++")
    shutil.copytree(ROOT / NATIVE, tmp_path / NATIVE)
    shutil.copy(ROOT / "placement/engine/observation.py", tmp_path / "placement/engine/observation.py")
    diff = examples()[heading]
    assert {name for name in re.findall(r"^\+\+\+ b/(.*)$", diff, re.M) if name.endswith(".cpp")} == {
        f"{NATIVE}/{name}" for name in changed
    }
    (tmp_path / "change.diff").write_text(diff)
    # A separate repository; otherwise git would resolve the paths in the enclosing one.
    run(git, "-C", str(tmp_path), "init", "--quiet")
    run(git, "-C", str(tmp_path), "apply", "change.diff")
    (tmp_path / "main.cpp").write_text(main)
    native = tmp_path / NATIVE
    run(
        compiler, "-std=c++17", "-O0", "-UNDEBUG", "-Wall", "-Wextra", "-Werror", "-pthread",
        *([f"-fsanitize={native_build.sanitizers}"] if native_build.sanitizers else []),
        f"-I{native}", f"-I{ROOT / 'tests/native'}", str(tmp_path / "main.cpp"),
        *(str(native / name) for name in changed + depending), str(native_build.library),
        "-o", str(tmp_path / "example"),
    )  # fmt: skip
    run(str(tmp_path / "example"))
