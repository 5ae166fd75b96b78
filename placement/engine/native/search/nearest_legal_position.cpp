#include "search/nearest_legal_position.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "cost/legality.hpp"

namespace placement {
namespace {

struct Interval {
  double low, high;
};

using Point = std::array<double, 2>;

bool inside(double at, double low, double high) { return at >= low - kLengthTolerance && at <= high + kLengthTolerance; }

// The position nearest to `start` inside [low, high] and not in the open interior of any interval; NaN if there is
// none. Sorts the intervals.
double nearest_free(std::vector<Interval>& taken, double start, double low, double high) {
  const double begin = std::min(std::max(start, low), high);
  double up = begin, down = begin;
  std::sort(taken.begin(), taken.end(), [](const Interval& a, const Interval& b) { return a.low < b.low; });
  for (const Interval& one : taken) {
    if (one.low + kLengthTolerance >= up) break;
    if (one.high - kLengthTolerance > up) up = one.high;
  }
  std::sort(taken.begin(), taken.end(), [](const Interval& a, const Interval& b) { return a.high > b.high; });
  for (const Interval& one : taken) {
    if (one.high - kLengthTolerance <= down) break;
    if (one.low + kLengthTolerance < down) down = one.low;
  }
  const bool can_up = inside(up, low, high), can_down = inside(down, low, high);
  if (can_up && (!can_down || std::abs(up - start) <= std::abs(down - start))) return up;
  return can_down ? down : std::numeric_limits<double>::quiet_NaN();
}

// A search in a square around the start among the areas that extend into it. A nearest position is directly above or
// below the start, or touches the left or right side of an area: otherwise it could slide towards the start.
class Search {
 public:
  Search(const Point& start, const Point& low, const Point& high, const TakenAreas& taken)
      : start_(start), low_(low), high_(high), taken_(taken) {}

  // The nearest position, if it is within `radius` µm.
  std::optional<Point> within(double radius) {
    collect(radius);
    best_.reset();
    least_ = radius;
    visit(std::min(std::max(start_[0], low_[0]), high_[0]), low_[1], high_[1]);
    for (const Side& side : sides_) {
      if (side.bound > least_) break;
      visit(side.x, std::max(taken_.y_low[side.area], low_[1]), std::min(taken_.y_high[side.area], high_[1]));
    }
    return best_;
  }

 private:
  static constexpr double kMostBins = 64;

  struct Side {
    double bound, x;  // µm: lower bound of the distance of positions along it, and its x
    std::int32_t area;
  };

  void collect(double radius) {
    near_.clear();
    sides_.clear();
    double widths = 0;
    for (std::size_t i = 0; i < taken_.count; ++i) {
      const double away_x = std::max({taken_.x_low[i] - start_[0], start_[0] - taken_.x_high[i], 0.0});
      const double away_y = std::max({taken_.y_low[i] - start_[1], start_[1] - taken_.y_high[i], 0.0});
      if (away_x > radius || away_y > radius) continue;
      near_.push_back(static_cast<std::int32_t>(i));
      widths += std::min(taken_.x_high[i] - taken_.x_low[i], 2 * radius);
      for (const double x : {taken_.x_low[i], taken_.x_high[i]}) {
        const double bound = std::abs(x - start_[0]) + away_y;
        if (bound <= radius && inside(x, low_[0], high_[0])) sides_.push_back({bound, x, near_.back()});
      }
    }
    std::sort(sides_.begin(), sides_.end(), [](const Side& a, const Side& b) { return a.bound < b.bound; });
    make_bins(radius, widths);
  }

  // Bins about as wide as an area, so that a position is compared only with the areas around it.
  void make_bins(double radius, double widths) {
    corner_ = {start_[0] - radius, start_[1] - radius};
    const double mean = widths / static_cast<double>(std::max<std::size_t>(near_.size(), 1));
    bins_ = static_cast<int>(std::clamp(2 * radius / std::max(mean, kLengthTolerance), 1.0, kMostBins));
    per_bin_ = bins_ / (2 * radius);
    first_in_.assign(static_cast<std::size_t>(bins_) * bins_ + 1, 0);
    const auto for_bins = [this](std::int32_t i, auto visit_bin) {
      const int right = bin_of(taken_.x_high[i], 0), top = bin_of(taken_.y_high[i], 1);
      for (int column = bin_of(taken_.x_low[i], 0); column <= right; ++column) {
        for (int row = bin_of(taken_.y_low[i], 1); row <= top; ++row) visit_bin(column * bins_ + row);
      }
    };
    for (const std::int32_t i : near_) for_bins(i, [this](int bin) { ++first_in_[bin + 1]; });
    for (std::size_t bin = 1; bin < first_in_.size(); ++bin) first_in_[bin] += first_in_[bin - 1];
    in_bin_.resize(first_in_.back());
    next_.assign(first_in_.begin(), first_in_.end() - 1);
    for (const std::int32_t i : near_) for_bins(i, [&](int bin) { in_bin_[next_[bin]++] = i; });
  }

  int bin_of(double at, int axis) const {
    return static_cast<int>(std::clamp((at - corner_[axis]) * per_bin_, 0.0, bins_ - 1.0));
  }

  // Updates the result with the nearest position at `x` inside [low, high].
  void visit(double x, double low, double high) {
    if (!inside(x, low_[0], high_[0]) || low > high + kLengthTolerance) return;
    intervals_.clear();
    const int column = bin_of(x, 0) * bins_;  // whose bins are consecutive
    const std::int32_t end = first_in_[column + bin_of(high, 1) + 1];
    for (std::int32_t at = first_in_[column + bin_of(low, 1)]; at < end; ++at) {
      const std::int32_t i = in_bin_[at];
      if (x > taken_.x_low[i] + kLengthTolerance && x < taken_.x_high[i] - kLengthTolerance &&
          taken_.y_low[i] <= high && taken_.y_high[i] >= low) {
        intervals_.push_back({taken_.y_low[i], taken_.y_high[i]});
      }
    }
    const double y = nearest_free(intervals_, start_[1], low, high);
    const double across = std::abs(x - start_[0]), distance = across + std::abs(y - start_[1]);
    if (!(distance <= least_)) return;  // farther, or NaN
    if (best_ && distance == least_) {
      const double other = std::abs((*best_)[0] - start_[0]);
      if (across > other || (across == other && x >= (*best_)[0])) return;
    }
    least_ = distance;
    best_ = {x, y};
  }

  const Point &start_, &low_, &high_;
  const TakenAreas& taken_;
  std::vector<std::int32_t> near_;
  std::vector<Side> sides_;  // sorted by their bounds
  Point corner_ = {};
  int bins_ = 1;  // along a side of the square
  double per_bin_ = 0;
  std::vector<std::int32_t> first_in_, in_bin_, next_;  // areas by bin; an area may be in several
  std::vector<Interval> intervals_;
  std::optional<Point> best_;
  double least_ = 0;
};

}  // namespace

std::optional<Point> nearest_legal_position(const Point& start, const Point& low, const Point& high,
                                            const TakenAreas& taken) {
  double to_limits = 0, farthest = 0, step = 0;
  for (const int axis : {0, 1}) {
    to_limits += std::max({low[axis] - start[axis], start[axis] - high[axis], 0.0});
    farthest += std::max({high[axis] - start[axis], start[axis] - low[axis], 0.0});
  }
  for (std::size_t i = 0; i < taken.count; ++i) step += std::min(taken.x_high[i] - taken.x_low[i], farthest);
  step = std::max(step / static_cast<double>(std::max<std::size_t>(taken.count, 1)), farthest / 1024);
  Search search(start, low, high, taken);
  for (double radius = to_limits + step; radius < farthest; step *= 2, radius = to_limits + step) {
    if (const auto found = search.within(radius)) return found;
  }
  return search.within(farthest + 1);
}

}  // namespace placement
