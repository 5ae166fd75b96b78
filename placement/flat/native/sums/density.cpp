#include "sums.hpp"

#include <algorithm>
#include <vector>

namespace placement::flat {
namespace {

// The bins that an interval meets, and how much of each it covers.
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
    return std::min(high, static_cast<float>(bin + 1)) - std::max(low, static_cast<float>(bin));
  }

  // How much of each bin is covered, from the first one on.
  void covered(std::vector<float>& each) const {
    for (std::int64_t bin = first; bin <= last; ++bin) each[bin - first] = covered(bin);
  }
};

}  // namespace

void spread(const Rectangles& rectangles, const float* charge, const Bins& bins, float* map) {
  std::vector<float> covered(bins.up);
  for (std::int64_t n = 0; n < rectangles.count; ++n) {
    const Span across(rectangles.x[n], rectangles.half_width[n], bins.across);
    const Span up(rectangles.y[n], rectangles.half_height[n], bins.up);
    if (across.empty() || up.empty()) continue;
    up.covered(covered);
    const float per_area = charge[n] / (4.0f * rectangles.half_width[n] * rectangles.half_height[n]);
    for (std::int64_t i = across.first; i <= across.last; ++i) {
      const float column = per_area * across.covered(i);
      float* row = map + i * bins.up + up.first;
      for (std::int64_t j = 0; j <= up.last - up.first; ++j) row[j] += column * covered[j];
    }
  }
}

void gather(const Rectangles& rectangles, const float* charge, const Bins& bins, const float* map_x, const float* map_y,
            float* mean_x, float* mean_y) {
  std::vector<float> covered(bins.up);
  for (std::int64_t n = 0; n < rectangles.count; ++n) {
    const Span across(rectangles.x[n], rectangles.half_width[n], bins.across);
    const Span up(rectangles.y[n], rectangles.half_height[n], bins.up);
    float sum_x = 0, sum_y = 0;
    if (!across.empty() && !up.empty()) {
      up.covered(covered);
      for (std::int64_t i = across.first; i <= across.last; ++i) {
        const float column = across.covered(i);
        const float *row_x = map_x + i * bins.up + up.first, *row_y = map_y + i * bins.up + up.first;
        for (std::int64_t j = 0; j <= up.last - up.first; ++j) {
          const float area = column * covered[j];
          sum_x += area * row_x[j];
          sum_y += area * row_y[j];
        }
      }
    }
    const float per_area = charge[n] / (4.0f * rectangles.half_width[n] * rectangles.half_height[n]);
    mean_x[n] = sum_x * per_area;
    mean_y[n] = sum_y * per_area;
  }
}

}  // namespace placement::flat
