#include "check.hpp"
#include "cost/legality.hpp"

using placement::Canvas;
using placement::Channel;
using placement::Halo;
using placement::HardBox;
using placement::SnapGrid;

namespace {

constexpr Channel kChannel{12, 10};

// A square of 20 µm.
HardBox square(double x, double y, double halo = 0) { return {x, y, 20, 20, {halo, halo}}; }

bool breaks(const HardBox& a, const HardBox& b, const SnapGrid& grid = {}) {
  return placement::breaks_channel(a, b, kChannel, grid) && placement::breaks_channel(b, a, kChannel, grid);
}

}  // namespace

TEST(channels_lie_between_macros_that_face_each_other) {
  const HardBox a = square(50, 50);
  CHECK(!breaks(a, square(70, 50)));     // they abut
  CHECK(breaks(a, square(75, 50)));
  CHECK(breaks(a, square(50, 59 + 20)));  // a gap of 9 µm upwards
  CHECK(!breaks(a, square(82, 50)) && !breaks(a, square(50, 80)));
  CHECK(!breaks(a, square(75, 70)) && breaks(a, square(75, 69.9)));  // corner to corner
  CHECK(!breaks(square(50, 50, 2), square(74, 50, 2)) && breaks(square(50, 50, 2), square(75, 50, 2)));
  CHECK(!breaks(a, square(72, 50), {1, 1, 0, 0}) && breaks(a, square(73.5, 50), {1, 1, 0, 0}));  // a snapping grid
}

TEST(channels_lie_along_the_edges) {
  Canvas canvas;
  canvas.width = canvas.height = 100;
  const auto at = [&](double x, double y) { return placement::breaks_channel_at_edge(square(x, y), canvas, kChannel, {}); };
  CHECK(!at(10, 50) && at(15, 50) && !at(22, 50) && at(21.9, 50));
  CHECK(!at(50, 90) && at(50, 81) && !at(50, 80));
}

TEST(bands_are_the_centres_at_which_the_rule_is_broken) {
  Canvas canvas;
  canvas.width = canvas.height = 100;
  const HardBox other{55, 48, 14, 22, {1, 0, 0.5, 0}};
  for (const Halo& halo : {Halo{0, 0}, Halo{3, 3}, Halo{3, 2, -2, 1}}) {
    for (double x = 10; x <= 90; x += 0.5) {
      for (double y = 10; y <= 90; y += 0.5) {
        const HardBox box{x, y, 20, 16, halo};
        const auto inside = [&](double at_x, double at_y, double reach_x, double reach_y) {
          return std::abs(x - at_x) < reach_x - placement::kLengthTolerance &&
                 std::abs(y - at_y) < reach_y - placement::kLengthTolerance;
        };
        bool banded = false, at_edge = false;
        placement::for_channel_bands(20, 16, halo, other, kChannel, {},
                                     [&](double a, double b, double c, double d) { banded |= inside(a, b, c, d); });
        placement::for_channel_edges(20, 16, canvas, kChannel, {},
                                     [&](double a, double b, double c, double d) { at_edge |= inside(a, b, c, d); });
        CHECK(banded == placement::breaks_channel(box, other, kChannel, {}));
        CHECK(at_edge == placement::breaks_channel_at_edge(box, canvas, kChannel, {}));
      }
    }
  }
}
