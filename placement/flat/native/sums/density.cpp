#include <algorithm>
#include <cstring>

#include "sums.hpp"

namespace placement::flat {
namespace {

// The bins that an interval meets, and the covered fraction of each.
struct Span {
  std::int64_t first, last;  // inclusive
  float low, high;

  Span(float centre, float half, std::int64_t bins)
      : low(std::max(centre - half, 0.0f)), high(std::min(centre + half, static_cast<float>(bins))) {
    first = std::min(static_cast<std::int64_t>(low), bins - 1);
    last = std::min(static_cast<std::int64_t>(high), bins - 1);
  }

  bool empty() const { return !(low < high); }

  float covered(std::int64_t bin) const {
    return std::max(std::min(high, static_cast<float>(bin + 1)) - std::max(low, static_cast<float>(bin)), 0.0f);
  }
};

// Four adjacent bins. Most rectangles are smaller.
using Four = float __attribute__((vector_size(16)));

inline Four loaded(const float* from) {
  Four four;
  std::memcpy(&four, from, sizeof four);
  return four;
}

// Covered fraction of each of the bins from `first` on.
inline Four covered(const Span& span, std::int64_t first) {
  const Four bin = static_cast<float>(first) + Four{0, 1, 2, 3};
  const Four low = bin > span.low ? bin : Four{} + span.low, end = bin + 1.0f;
  const Four share = (end < span.high ? end : Four{} + span.high) - low;
  return share > 0.0f ? share : Four{};
}

// Calls work(bin, area) for each four vertically adjacent bins that a rectangle may meet: the first one's index in a
// map, and the rectangle's area in each.
template <class Work>
inline void for_bins(const Span& across, const Span& up, const Bins& bins, Work&& work) {
  if (across.empty() || up.empty()) return;
  // Nearly every rectangle meets two or three columns; a loop over three is well predicted.
  const std::int64_t left = std::min(across.first, bins.across - 3), right = std::max(across.last, left + 2);
  for (std::int64_t row = up.first; row <= up.last; row += 4) {
    // The last four rows of the grid may overlap those visited before.
    const std::int64_t first = std::min(row, bins.up - 4);
    Four each = covered(up, first);
    if (row > up.first && first < row) {
      for (std::int64_t k = 0; k < row - first; ++k) each[k] = 0;
    }
    for (std::int64_t column = left; column <= right; ++column) {
      work(column * bins.up + first, across.covered(column) * each);
    }
  }
}

inline float sum(Four v) { return (v[0] + v[1]) + (v[2] + v[3]); }

}  // namespace

void spread(const Rectangles& rectangles, const float* charge, const Bins& bins, float* map) {
  for (std::int64_t n = 0; n < rectangles.count; ++n) {
    const Span across(rectangles.x[n], rectangles.half_width[n], bins.across);
    const Span up(rectangles.y[n], rectangles.half_height[n], bins.up);
    const float per_area = charge[n] / (4.0f * rectangles.half_width[n] * rectangles.half_height[n]);
    for_bins(across, up, bins, [&](std::int64_t bin, Four area) {
      const Four total = loaded(map + bin) + area * per_area;
      std::memcpy(map + bin, &total, sizeof total);
    });
  }
}

void gather(const Rectangles& rectangles, const float* charge, const Bins& bins, const float* map_x, const float* map_y,
            float* mean_x, float* mean_y) {
  for (std::int64_t n = 0; n < rectangles.count; ++n) {
    const Span across(rectangles.x[n], rectangles.half_width[n], bins.across);
    const Span up(rectangles.y[n], rectangles.half_height[n], bins.up);
    Four sum_x{}, sum_y{};
    for_bins(across, up, bins, [&](std::int64_t bin, Four area) {
      sum_x += area * loaded(map_x + bin);
      sum_y += area * loaded(map_y + bin);
    });
    const float per_area = charge[n] / (4.0f * rectangles.half_width[n] * rectangles.half_height[n]);
    mean_x[n] = sum(sum_x) * per_area;
    mean_y[n] = sum(sum_y) * per_area;
  }
}

}  // namespace placement::flat
