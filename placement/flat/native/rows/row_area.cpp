#include "row_area.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace placement::flat::rows {
namespace {

constexpr double kTolerance = 1e-4;  // tolerance in µm for equal coordinates, and in sites for a box's edge on a site's

// Disjoint sets of runs.
class Sets {
 public:
  explicit Sets(std::size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0); }

  std::int32_t root(std::int32_t one) {
    while (parent_[static_cast<std::size_t>(one)] != one) {
      auto& up = parent_[static_cast<std::size_t>(one)];
      up = parent_[static_cast<std::size_t>(up)];
      one = up;
    }
    return one;
  }

  void join(std::int32_t first, std::int32_t second) {
    const auto a = root(first), b = root(second);
    parent_[static_cast<std::size_t>(std::max(a, b))] = std::min(a, b);
  }

 private:
  std::vector<std::int32_t> parent_;
};

double low_of(const std::vector<Row>& rows, const Run& run) {
  const Row& row = rows[static_cast<std::size_t>(run.row)];
  return row.x + row.site * run.first;
}

double high_of(const std::vector<Row>& rows, const Run& run) {
  const Row& row = rows[static_cast<std::size_t>(run.row)];
  return row.x + row.site * (run.first + run.sites);
}

}  // namespace

Levels::Levels(const std::vector<Row>& rows) : of_(rows.size()), order_(rows.size()) {
  std::iota(order_.begin(), order_.end(), 0);
  const auto row = [&](std::int32_t one) -> const Row& { return rows[static_cast<std::size_t>(one)]; };
  std::sort(order_.begin(), order_.end(), [&](std::int32_t a, std::int32_t b) { return row(a).y < row(b).y; });
  for (const auto one : order_) {
    if (y_.empty() || row(one).y > y_.back() + kTolerance) y_.push_back(row(one).y);
    of_[static_cast<std::size_t>(one)] = count() - 1;
  }
  std::sort(order_.begin(), order_.end(), [&](std::int32_t a, std::int32_t b) {
    return std::make_pair(of(a), row(a).x) < std::make_pair(of(b), row(b).x);
  });
}

std::int32_t Levels::from(double y) const {
  return static_cast<std::int32_t>(std::lower_bound(y_.begin(), y_.end(), y - kTolerance) - y_.begin());
}

std::int32_t Levels::at(double y) const {
  const auto level = from(y);
  return level < count() && this->y(level) <= y + kTolerance ? level : -1;
}

std::vector<Run> free_runs(const std::vector<Row>& rows, const Levels& levels, const std::vector<Box>& boxes) {
  double tallest = 0;
  for (const Row& row : rows) tallest = std::max(tallest, row.height);
  std::vector<std::int32_t> begin(static_cast<std::size_t>(levels.count()) + 1, 0);
  for (const auto row : levels.order()) ++begin[static_cast<std::size_t>(levels.of(row)) + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  using Interval = std::pair<std::int32_t, std::int32_t>;
  std::vector<std::vector<Interval>> taken(rows.size());  // intervals [first, second) of sites
  for (const Box& box : boxes) {
    for (auto level = levels.from(box.y_low - tallest); level < levels.count() && levels.y(level) < box.y_high - kTolerance; ++level) {
      for (auto k = begin[static_cast<std::size_t>(level)]; k < begin[static_cast<std::size_t>(level) + 1]; ++k) {
        const auto index = static_cast<std::size_t>(levels.order()[static_cast<std::size_t>(k)]);
        const Row& row = rows[index];
        if (row.y + row.height <= box.y_low + kTolerance) continue;
        const double most = row.sites;
        const double low = std::clamp(std::floor((box.x_low - row.x) / row.site + kTolerance), 0.0, most);
        const double high = std::clamp(std::ceil((box.x_high - row.x) / row.site - kTolerance), 0.0, most);
        if (low < high) taken[index].emplace_back(static_cast<std::int32_t>(low), static_cast<std::int32_t>(high));
      }
    }
  }
  std::vector<Run> runs;
  for (const auto row : levels.order()) {
    auto& intervals = taken[static_cast<std::size_t>(row)];
    std::sort(intervals.begin(), intervals.end());
    std::int32_t free_from = 0;
    for (const auto& [low, high] : intervals) {
      if (low > free_from) runs.push_back({row, free_from, low - free_from});
      free_from = std::max(free_from, high);
    }
    const auto sites = rows[static_cast<std::size_t>(row)].sites;
    if (sites > free_from) runs.push_back({row, free_from, sites - free_from});
  }
  return runs;
}

std::vector<std::int32_t> pieces(const std::vector<Row>& rows, const Levels& levels, const std::vector<Run>& runs) {
  Sets sets(runs.size());
  std::vector<std::size_t> begin(static_cast<std::size_t>(levels.count()) + 1, 0);  // first run of each level
  for (const Run& run : runs) ++begin[static_cast<std::size_t>(levels.of(run.row)) + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Row& row = rows[static_cast<std::size_t>(runs[i].row)];
    const double low = low_of(rows, runs[i]), high = high_of(rows, runs[i]);
    const auto own = levels.of(runs[i].row);
    if (i + 1 < runs.size() && levels.of(runs[i + 1].row) == own && low_of(rows, runs[i + 1]) <= high + kTolerance) {
      sets.join(static_cast<std::int32_t>(i), static_cast<std::int32_t>(i + 1));
    }
    const auto above = levels.at(row.y + row.height);
    if (above < 0) continue;
    const auto first = runs.begin() + static_cast<std::ptrdiff_t>(begin[static_cast<std::size_t>(above)]);
    const auto last = runs.begin() + static_cast<std::ptrdiff_t>(begin[static_cast<std::size_t>(above) + 1]);
    auto other = std::partition_point(first, last, [&](const Run& run) { return high_of(rows, run) <= low + kTolerance; });
    for (; other != last && low_of(rows, *other) < high - kTolerance; ++other) {
      sets.join(static_cast<std::int32_t>(i), static_cast<std::int32_t>(other - runs.begin()));
    }
  }
  std::vector<std::int32_t> number(runs.size(), -1), piece(runs.size());
  std::int32_t count = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    auto& own = number[static_cast<std::size_t>(sets.root(static_cast<std::int32_t>(i)))];
    if (own < 0) own = count++;
    piece[i] = own;
  }
  return piece;
}

}  // namespace placement::flat::rows
