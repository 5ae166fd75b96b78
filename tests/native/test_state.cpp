#include "env/state.hpp"

#include <cmath>

#include "check.hpp"
#include "toy_design.hpp"

using placement::EpisodePlan;
using placement::PlacementState;
using placement::UnplayableDesign;
using placement::Verdict;

TEST(state_keeps_macros_inside_and_apart) {
  PlacementState state(std::make_shared<const EpisodePlan>(toy_design()));
  int obstacle = -1;
  CHECK(state.legal_cells() == 6 * 4);  // 20 × 20 µm on gcells of 10: not on the outer ring
  CHECK(state.judge(0, 3, &obstacle) == Verdict::outside_canvas);
  CHECK(state.judge(6, 3, &obstacle) == Verdict::out_of_range);
  state.place(2, 3);
  CHECK(state.judge(2, 4, &obstacle) == Verdict::overlaps && obstacle == 1);
  CHECK(state.judge(2, 5, &obstacle) == Verdict::legal);  // they touch
  CHECK(state.occupancy()[2 * 8 + 3] == 1.0 && state.occupancy()[1 * 8 + 3] == 0.5);
}

TEST(state_undoes_to_the_last_bit) {
  PlacementState state(std::make_shared<const EpisodePlan>(toy_design()));
  std::vector<double> columns(8), rows(6), columns_again(8), rows_again(6);
  state.place(2, 3);
  state.wire_mask(columns.data(), rows.data());
  const std::vector<double> occupancy = state.occupancy();
  const int legal = state.legal_cells();
  state.place(4, 5);
  state.undo();
  state.wire_mask(columns_again.data(), rows_again.data());
  CHECK(columns == columns_again && rows == rows_again);
  CHECK(occupancy == state.occupancy() && legal == state.legal_cells());
}

TEST(state_counts_its_legal_gcells) {
  PlacementState state(std::make_shared<const EpisodePlan>(toy_design(70, 3)));
  std::vector<std::uint8_t> mask(70 * 3);
  state.write_mask(mask.data(), 70);
  int n = 0;
  for (int cell = 0; cell < 70 * 3; ++cell) {
    if (!mask[cell]) continue;
    const auto [row, column] = state.nth_legal(n++);
    CHECK(row * 70 + column == cell);
  }
  CHECK(n == state.legal_cells());
}

TEST(state_refuses_what_cannot_be_played) {
  auto none = std::make_shared<placement::Design>(*toy_design());
  none->placing_order.clear();
  CHECK_THROWS(EpisodePlan(none), UnplayableDesign);
  auto lost = std::make_shared<placement::Design>(*toy_design());
  lost->placed[0] = 0;
  CHECK_THROWS(EpisodePlan(lost), UnplayableDesign);
  CHECK_THROWS(EpisodePlan(toy_design(1, 1)), UnplayableDesign);
}

