#include "env/overlap_removal.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "cost/legality.hpp"
#include "env/off_grid.hpp"

namespace placement {
namespace {

constexpr std::uint8_t kNever = 2, kMoved = 4;  // never in the way; a pair that has gone to the other axis
constexpr int kMostEased = 64;                  // times that pairs go to the other axis, and one more for each macro
constexpr int kSweeps = 6;                      // of moving each macro towards where it was
constexpr double kRounding = 1e-9;              // µm

}  // namespace

OverlapRemover::OverlapRemover(const EpisodePlan& plan) : plan_(&plan) {
  const SnapGrid& grid = plan.design->constraints.grid;
  pitch_[0] = grid.pitch_x;
  pitch_[1] = grid.pitch_y;
  offset_[0] = grid.offset_x;
  offset_[1] = grid.offset_y;
  gather_standing();
  const auto macros = static_cast<std::size_t>(count());
  axis_.resize(macros * (macros + standing_.size()));
  for (int axis = 0; axis < 2; ++axis) {
    for (auto* values : {&start_[axis], &low_[axis], &high_[axis], &at_[axis]}) values->resize(macros);
    order_[axis].resize(macros);
    rank_[axis].resize(macros);
  }
  for (auto* values : {&least_, &most_, &other_way_}) values->resize(macros);
  before_.resize(macros);
  behind_.resize(macros);
}

void OverlapRemover::gather_standing() {
  const Design& design = *plan_->design;
  const Constraints& constraints = design.constraints;
  for (const Obstacle& fixed : plan_->fixed_macros) {
    const std::int8_t orientation = design.initial_orientation[fixed.node];
    standing_.push_back({{fixed.x, fixed.y},
                         {fixed.width, fixed.height},
                         {constraints.halo_across(fixed.node, orientation), constraints.halo_up(fixed.node, orientation)},
                         -1});
  }
  for (std::size_t i = 0; i < constraints.keep_outs.size(); ++i) {
    const KeepOut& off = constraints.keep_outs[i];
    standing_.push_back({{off.x, off.y}, {off.width, off.height}, {0, 0}, static_cast<std::int32_t>(i)});
  }
  const auto stand = standing_.size();
  concerns_.assign(plan_->macros.size() * stand, 0);
  for (int macro = 0; macro < count(); ++macro) {
    std::uint8_t* concerns = concerns_.data() + macro * stand;
    std::fill_n(concerns, plan_->fixed_macros.size(), 1);
    if (!constraints.any) continue;
    const int set = constraints.keep_set[plan_->macros[macro].node];
    for (int i = constraints.set_start[set]; i < constraints.set_start[set + 1]; ++i) {
      concerns[plan_->fixed_macros.size() + constraints.items[i]] = 1;
    }
  }
}

double OverlapRemover::reach(int macro, int other, int axis) const {
  const MacroToPlace& own = plan_->macros[macro];
  const double size = size_of(macro, axis), halo = axis == 0 ? own.halo_x : own.halo_y;
  const double threshold = plan_->canvas.overlap_threshold;
  if (other < count()) {
    const MacroToPlace& its = plan_->macros[other];
    return centre_reach(size, size_of(other, axis), halo + (axis == 0 ? its.halo_x : its.halo_y), threshold);
  }
  const int box = other - count();
  if (!concerns_[macro * standing_.size() + box]) return 0;
  const Standing& its = standing_[box];
  if (its.keep_out >= 0) return centre_reach(size, its.size[axis], 0, 0);
  return centre_reach(size, its.size[axis], halo + its.halo[axis], threshold);
}

bool OverlapRemover::comes_before(int other, int macro, int axis) const {
  if (other < count()) return rank_[axis][other] < rank_[axis][macro];
  return standing_[other - count()].at[axis] <= start_[axis][macro];
}

bool OverlapRemover::remove(std::vector<Obstacle>& placed) {
  begin(placed);
  choose_axes();
  if (!make_room()) return false;
  for (int axis = 0; axis < 2; ++axis) settle(axis);
  if (!is_apart(at_[0], at_[1])) return false;
  for (int macro = 0; macro < count(); ++macro) {
    placed[macro].x = at_[0][macro];
    placed[macro].y = at_[1][macro];
  }
  return true;
}

void OverlapRemover::begin(const std::vector<Obstacle>& placed) {
  const double extent[2] = {plan_->canvas.width, plan_->canvas.height};
  for (int axis = 0; axis < 2; ++axis) {
    for (int macro = 0; macro < count(); ++macro) {
      const double half = size_of(macro, axis) / 2;
      start_[axis][macro] = axis == 0 ? placed[macro].x : placed[macro].y;
      double low = half;
      if (pitch_[axis] > 0) {  // the first line within the canvas
        const double lines = pitches_below(0, pitch_[axis], offset_[axis]);
        low = offset_[axis] + pitch_[axis] * lines + half;
        if (low < half - kLengthTolerance) low += pitch_[axis];
      }
      low_[axis][macro] = low;
      high_[axis][macro] = std::max(low, extent[axis] - half);
    }
    std::iota(order_[axis].begin(), order_[axis].end(), 0);
    std::sort(order_[axis].begin(), order_[axis].end(), [&start = start_[axis]](int a, int b) {
      return start[a] != start[b] ? start[a] < start[b] : a < b;
    });
    for (int i = 0; i < count(); ++i) rank_[axis][order_[axis][i]] = i;
  }
}

void OverlapRemover::choose_axes() {
  for (int macro = 0; macro < count(); ++macro) {
    std::uint8_t* axis = axes_of(macro);
    for (int other = 0; other < every(); ++other) {
      const double across = other == macro ? 0 : reach(macro, other, 0), up = other == macro ? 0 : reach(macro, other, 1);
      if (across <= 0 || up <= 0) {
        axis[other] = kNever;
        continue;
      }
      const double gap_x = std::abs(start_[0][macro] - start_of(other, 0)) - across;
      const double gap_y = std::abs(start_[1][macro] - start_of(other, 1)) - up;
      axis[other] = gap_y > gap_x;
    }
  }
}

// Until each axis has room for what is kept apart on it.
bool OverlapRemover::make_room() {
  for (int left = kMostEased + count(); left > 0; --left) {
    bool is_eased = false;
    for (int axis = 0; axis < 2; ++axis) {
      find_bounds(axis);
      const int macro = most_crowded(axis);
      if (macro < 0) continue;
      if (!ease(macro, axis)) return false;
      is_eased = true;
    }
    if (!is_eased) return true;
  }
  return false;
}

// Where each macro's centre can be at least and at most, by all that is before and behind it.
void OverlapRemover::find_bounds(int axis) {
  const double slack = pitch_[axis];  // snapping may bring two together by so much
  for (const int macro : order_[axis]) {
    double least = low_[axis][macro];
    int by = -1;
    const std::uint8_t* axes = axes_of(macro);
    for (int other = 0; other < every(); ++other) {
      if ((axes[other] & 3) != axis || !comes_before(other, macro, axis)) continue;
      const double from = other < count() ? least_[other] : standing_[other - count()].at[axis];
      const double bound = from + reach(macro, other, axis) + slack;
      if (bound > least) {
        least = bound;
        by = other;
      }
    }
    least_[macro] = least;
    before_[macro] = by;
  }
  for (int i = count() - 1; i >= 0; --i) {
    const int macro = order_[axis][i];
    double most = high_[axis][macro];
    int by = -1;
    const std::uint8_t* axes = axes_of(macro);
    for (int other = 0; other < every(); ++other) {
      if ((axes[other] & 3) != axis || comes_before(other, macro, axis)) continue;
      const double from = other < count() ? most_[other] : standing_[other - count()].at[axis];
      const double bound = from - reach(macro, other, axis) - slack;
      if (bound < most) {
        most = bound;
        by = other;
      }
    }
    most_[macro] = most;
    behind_[macro] = by;
  }
}

// The macro that lacks most room; -1: all have enough.
int OverlapRemover::most_crowded(int axis) const {
  double lack = kRounding;
  int found = -1;
  for (const int macro : order_[axis]) {
    if (least_[macro] - most_[macro] <= lack) continue;
    lack = least_[macro] - most_[macro];
    found = macro;
  }
  return found;
}

// Of the pairs in the row that crowds a macro, the one that overlaps least on the other axis goes there.
bool OverlapRemover::ease(int macro, int axis) {
  Pair best{-1, -1};
  double widest = -std::numeric_limits<double>::infinity();
  const auto consider = [&](int one, int other) {
    if (axes_of(one)[other] & kMoved) return;
    const double gap = std::abs(start_[1 - axis][one] - start_of(other, 1 - axis)) - reach(one, other, 1 - axis);
    if (gap <= widest) return;
    widest = gap;
    best = {one, other};
  };
  for (int one = macro; one < count() && before_[one] >= 0; one = before_[one]) consider(one, before_[one]);
  for (int one = macro; one < count() && behind_[one] >= 0; one = behind_[one]) consider(one, behind_[one]);
  if (best.macro < 0) return false;
  const auto moved = static_cast<std::uint8_t>((1 - axis) | kMoved);
  axes_of(best.macro)[best.other] = moved;
  if (best.other < count()) axes_of(best.other)[best.macro] = moved;
  return true;
}

// Where a macro is nearest to where it was, among others that stand at `at`.
double OverlapRemover::nearest(int macro, int axis, const std::vector<double>& at) const {
  const std::uint8_t* axes = axes_of(macro);
  double least = low_[axis][macro], most = high_[axis][macro];
  for (int other = 0; other < every(); ++other) {
    if ((axes[other] & 3) != axis) continue;
    const double from = other < count() ? at[other] : standing_[other - count()].at[axis];
    const double apart = reach(macro, other, axis) + pitch_[axis];
    if (comes_before(other, macro, axis)) {
      least = std::max(least, from + apart);
    } else {
      most = std::min(most, from - apart);
    }
  }
  return std::max(least, std::min(most, start_[axis][macro]));
}

// The bounds of `axis` are taken anew; they leave room.
void OverlapRemover::settle(int axis) {
  find_bounds(axis);
  const double slack = pitch_[axis];
  std::vector<double>& at = at_[axis];
  for (const int macro : order_[axis]) {  // each as near as those before it let it
    double least = least_[macro];
    const std::uint8_t* axes = axes_of(macro);
    for (int other = 0; other < count(); ++other) {
      if ((axes[other] & 3) != axis || !comes_before(other, macro, axis)) continue;
      least = std::max(least, at[other] + reach(macro, other, axis) + slack);
    }
    at[macro] = std::max(least, std::min(most_[macro], start_[axis][macro]));
  }
  for (int i = count() - 1; i >= 0; --i) {  // and as those behind it do
    const int macro = order_[axis][i];
    double most = most_[macro];
    const std::uint8_t* axes = axes_of(macro);
    for (int other = 0; other < count(); ++other) {
      if ((axes[other] & 3) != axis || comes_before(other, macro, axis)) continue;
      most = std::min(most, other_way_[other] - reach(macro, other, axis) - slack);
    }
    other_way_[macro] = std::min(most, std::max(least_[macro], start_[axis][macro]));
  }
  for (int macro = 0; macro < count(); ++macro) at[macro] = (at[macro] + other_way_[macro]) / 2;  // both have room, so this has
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (int i = 0; i < count(); ++i) {
      const int macro = order_[axis][sweep % 2 == 0 ? i : count() - 1 - i];
      at[macro] = nearest(macro, axis, at);
    }
  }
  if (pitch_[axis] <= 0) return;
  for (int macro = 0; macro < count(); ++macro) {
    const double half = size_of(macro, axis) / 2;
    at[macro] = offset_[axis] + pitch_[axis] * pitches_below(at[macro] - half, pitch_[axis], offset_[axis]) + half;
  }
}

bool OverlapRemover::is_apart(const std::vector<double>& x, const std::vector<double>& y) const {
  for (int macro = 0; macro < count(); ++macro) {
    for (int other = macro + 1; other < every(); ++other) {
      const double other_x = other < count() ? x[other] : standing_[other - count()].at[0];
      const double other_y = other < count() ? y[other] : standing_[other - count()].at[1];
      const double across = reach(macro, other, 0), up = reach(macro, other, 1);
      if (across > 0 && up > 0 && std::abs(x[macro] - other_x) < across - kLengthTolerance &&
          std::abs(y[macro] - other_y) < up - kLengthTolerance) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace placement
