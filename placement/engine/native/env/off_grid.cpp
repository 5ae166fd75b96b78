#include "env/off_grid.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace placement {
namespace {

// First and last cell for which `inside(cell)` is true; these cells are contiguous.
template <typename Inside>
std::pair<int, int> range_of(int count, double from, double to, double per_cell, Inside inside) {
  int first = static_cast<int>(std::clamp(std::floor(from * per_cell) - 1, 0.0, static_cast<double>(count)));
  int last = static_cast<int>(std::clamp(std::floor(to * per_cell) + 1, -1.0, count - 1.0));
  while (first <= last && !inside(first)) ++first;
  while (last >= first && !inside(last)) --last;
  return {first, last};
}

template <typename Visit>
void for_words(int words, const std::pair<int, int>& rows, const std::pair<int, int>& columns, Visit visit) {
  if (rows.first > rows.second || columns.first > columns.second) return;
  for (int word = columns.first / 64; word <= columns.second / 64; ++word) {
    const std::uint64_t mine = bits(columns.first - 64 * word, columns.second - 64 * word);
    for (int row = rows.first; row <= rows.second; ++row) visit(row * words + word, mine);
  }
}

}  // namespace

double centre_reach(double own, double other, double gap, double threshold) {
  const double share = allowed_share(gap, threshold);
  if (std::min(own, other) <= share + kLengthTolerance) return 0;
  return std::max(0.0, (own + other) / 2 - share);
}

OffGrid::OffGrid(const EpisodePlan& plan) : plan_(&plan) {
  once_.resize(static_cast<std::size_t>(plan.canvas.rows) * plan.words);
  doubtful_.resize(once_.size());
}

void OffGrid::Axis::begin(const std::vector<double>& centres, double cell, double own, double extent) {
  size = own;
  first = own / 2;
  last = extent - own / 2;
  low.resize(centres.size());
  high.resize(centres.size());
  for (std::size_t i = 0; i < centres.size(); ++i) {
    low[i] = std::max(centres[i] - cell / 2, own / 2);
    high[i] = std::min(centres[i] + cell / 2, extent - own / 2);
    // A macro as large as the canvas has one position, regardless of rounding.
    if (low[i] > high[i] && low[i] <= high[i] + kLengthTolerance) high[i] = low[i];
  }
}

void OffGrid::begin(const MacroToPlace& macro) {
  columns_.pitch = macro.grid.pitch_x;
  columns_.offset = macro.grid.offset_x;
  rows_.pitch = macro.grid.pitch_y;
  rows_.offset = macro.grid.offset_y;
  columns_.begin(plan_->column_x, plan_->cell_width, macro.width, plan_->canvas.width);
  rows_.begin(plan_->row_y, plan_->cell_height, macro.height, plan_->canvas.height);
  forbidden_.clear();
}

void OffGrid::forbid(double x, double y, double reach_x, double reach_y) {
  if (reach_x > kLengthTolerance && reach_y > kLengthTolerance) forbidden_.push_back({x, y, reach_x, reach_y});
}

void OffGrid::forbid_beside(const MacroToPlace& macro, const HardBox& other, double spacing) {
  const double threshold = plan_->design->canvas.overlap_threshold;
  const Halo &own = macro.halo, &theirs = other.halo;
  const auto reach = [&](double size, double other_size, double halos) {
    return centre_reach(size, other_size, std::max(spacing, halos), threshold);
  };
  const double left = reach(macro.width, other.width, halos_across(own, theirs));
  const double right = reach(macro.width, other.width, halos_across(theirs, own));
  const double below = reach(macro.height, other.height, halos_up(own, theirs));
  const double above = reach(macro.height, other.height, halos_up(theirs, own));
  forbid(other.x + (right - left) / 2, other.y + (above - below) / 2, (left + right) / 2, (below + above) / 2);
  forbid_channels(macro, other);
}

void OffGrid::forbid_channels(const MacroToPlace& macro, const HardBox& other) {
  const Constraints& constraints = plan_->design->constraints;
  if (!constraints.channel.is_set()) return;
  for_channel_bands(macro.width, macro.height, macro.halo, other, constraints.channel, constraints.coarsest,
                    [this](double x, double y, double reach_x, double reach_y) { forbid(x, y, reach_x, reach_y); });
}

void OffGrid::forbid_given(const MacroToPlace& macro) {
  const Design& design = *plan_->design;
  const Constraints& constraints = design.constraints;
  for (const Obstacle& fixed : plan_->fixed_macros) {
    forbid_beside(macro, hard_box(design, fixed.node, fixed.x, fixed.y, design.initial_orientation[fixed.node]), plan_->spacing);
  }
  if (constraints.channel.is_set()) {
    for_channel_edges(macro.width, macro.height, design.canvas, constraints.channel, constraints.coarsest,
                      [this](double x, double y, double reach_x, double reach_y) { forbid(x, y, reach_x, reach_y); });
  }
  constraints.for_keep_outs(macro.node, [&](const KeepOut& off) {
    forbid(off.x, off.y, centre_reach(macro.width, off.width, 0, 0), centre_reach(macro.height, off.height, 0, 0));
  });
}

void OffGrid::find(std::uint64_t* cells) {
  const int rows = plan_->canvas.rows, columns = plan_->canvas.columns, words = plan_->words;
  const auto any = [](const Axis& axis) {
    return [&axis](int i) { return axis.low[i] <= axis.high[i]; };
  };
  const std::size_t set = once_.size();
  std::fill_n(cells, set, std::uint64_t{0});
  std::fill(once_.begin(), once_.end(), 0);
  std::fill(doubtful_.begin(), doubtful_.end(), 0);
  for_words(words, range_of(rows, 0, plan_->canvas.height, 1 / plan_->cell_height, any(rows_)),
            range_of(columns, 0, plan_->canvas.width, 1 / plan_->cell_width, any(columns_)),
            [cells](int word, std::uint64_t mine) { cells[word] |= mine; });
  // A single box that does not cover a cell leaves a position in it, except on a snapping grid if the rest is narrower
  // than a pitch.
  const auto spans = [](const Axis& axis, int count, double per_cell, double centre, double reach, double slack) {
    const double from = centre - reach + kLengthTolerance, to = centre + reach - kLengthTolerance;
    return range_of(count, from - slack, to + slack, per_cell, [&](int i) {
      return slack < 0 ? axis.high[i] > from && axis.low[i] < to : axis.low[i] + slack > from && axis.high[i] - slack < to;
    });
  };
  const bool snaps = rows_.pitch > 0 || columns_.pitch > 0;
  for (const Forbidden& box : forbidden_) {
    const auto both = [&](double slack_y, double slack_x) {
      return std::pair{spans(rows_, rows, 1 / plan_->cell_height, box.y, box.reach_y, slack_y),
                       spans(columns_, columns, 1 / plan_->cell_width, box.x, box.reach_x, slack_x)};
    };
    const auto reached = both(-1, -1), covered = both(0, 0);
    for_words(words, reached.first, reached.second, [this](int word, std::uint64_t mine) {
      doubtful_[word] |= once_[word] & mine;
      once_[word] |= mine;
    });
    for_words(words, covered.first, covered.second, [cells](int word, std::uint64_t mine) { cells[word] &= ~mine; });
    if (!snaps) continue;
    const auto nearly = both(rows_.pitch, columns_.pitch);
    for_words(words, nearly.first, nearly.second, [this](int word, std::uint64_t mine) { doubtful_[word] |= mine; });
  }
  if (snaps) doubt_narrow_cells();
  for (std::size_t word = 0; word < set; ++word) {
    for (std::uint64_t left = cells[word] & doubtful_[word]; left != 0; left &= left - 1) {
      const int bit = __builtin_ctzll(left);
      const int row = static_cast<int>(word) / words, column = 64 * (static_cast<int>(word) % words) + bit;
      if (!place(row, column)) cells[word] &= ~(std::uint64_t{1} << bit);
    }
  }
}

// Marks cells narrower than a pitch of the snapping grid, at the canvas edges or everywhere.
void OffGrid::doubt_narrow_cells() {
  for (int row = 0; row < plan_->canvas.rows; ++row) {
    const bool low = rows_.high[row] - rows_.low[row] < rows_.pitch;
    for (int column = 0; column < plan_->canvas.columns; ++column) {
      if (low || columns_.high[column] - columns_.low[column] < columns_.pitch) {
        doubtful_[row * plan_->words + column / 64] |= std::uint64_t{1} << (column % 64);
      }
    }
  }
}

// Candidate coordinates of the position nearest to the cell's centre: the centre, and the sides of nearby boxes.
void OffGrid::candidates(const Axis& axis, int cell, double centre, bool across, std::vector<double>& out) const {
  out.clear();
  const double low = axis.low[cell], high = axis.high[cell];
  const auto add = [&](double at, bool down, bool up) {
    if (axis.pitch <= 0) {
      if (at >= low - kLengthTolerance && at <= high + kLengthTolerance) out.push_back(std::clamp(at, low, high));
      return;
    }
    const double corner = at - axis.size / 2, below = pitches_below(corner, axis.pitch, axis.offset);
    const double lower = axis.offset + axis.pitch * below + axis.size / 2;
    const bool is_on = std::abs(lower - at) <= kLengthTolerance;
    for (const double snapped : {lower, lower + axis.pitch}) {
      if (snapped == lower ? !(down || is_on) : (!up || is_on)) continue;
      if (snapped >= low - kLengthTolerance && snapped <= high + kLengthTolerance) out.push_back(snapped);
    }
  };
  add(std::clamp(centre, low, high), true, true);
  add(axis.first, false, true);
  add(axis.last, true, false);
  for (const Forbidden& box : near_) {
    const double at = across ? box.x : box.y, reach = across ? box.reach_x : box.reach_y;
    add(at - reach, true, false);
    add(at + reach, false, true);
  }
}

std::optional<std::array<double, 2>> OffGrid::place(int row, int column) {
  if (!reaches(row, column)) return std::nullopt;
  near_.clear();
  for (const Forbidden& box : forbidden_) {
    if (columns_.high[column] >= box.x - box.reach_x && columns_.low[column] <= box.x + box.reach_x &&
        rows_.high[row] >= box.y - box.reach_y && rows_.low[row] <= box.y + box.reach_y) {
      near_.push_back(box);
    }
  }
  const double centre_x = plan_->column_x[column], centre_y = plan_->row_y[row];
  candidates(columns_, column, centre_x, true, xs_);
  candidates(rows_, row, centre_y, false, ys_);
  std::optional<std::array<double, 2>> best;
  int most = -1;
  double least = std::numeric_limits<double>::infinity();
  for (const double x : xs_) {
    for (const double y : ys_) {
      const auto contacts = contacts_at(x, y);
      if (!contacts || *contacts < most) continue;
      const double away = std::abs(x - centre_x) + std::abs(y - centre_y);
      const std::array<double, 2> at{x, y};
      if (*contacts == most && (away > least || (away == least && at >= *best))) continue;
      most = *contacts;
      least = away;
      best = at;
    }
  }
  return best;
}

// Number of axes, 0 to 2, on which a macro there would touch something; empty if it would overlap something.
std::optional<int> OffGrid::contacts_at(double x, double y) const {
  const double slack_x = columns_.pitch + kLengthTolerance, slack_y = rows_.pitch + kLengthTolerance;
  bool across = x <= columns_.first + slack_x || x >= columns_.last - slack_x;
  bool up = y <= rows_.first + slack_y || y >= rows_.last - slack_y;
  for (const Forbidden& box : near_) {
    const double dx = std::abs(x - box.x) - box.reach_x, dy = std::abs(y - box.y) - box.reach_y;
    if (dx < -kLengthTolerance && dy < -kLengthTolerance) return std::nullopt;
    across |= dx <= slack_x && dy < -kLengthTolerance;
    up |= dy <= slack_y && dx < -kLengthTolerance;
  }
  return static_cast<int>(across) + static_cast<int>(up);
}

}  // namespace placement
