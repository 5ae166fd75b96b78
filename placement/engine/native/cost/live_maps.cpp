#include "cost/live_maps.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace placement {
namespace {

constexpr int kWord = 64;
constexpr int kScanned = 6;  // number of scanned gcells that take as long as one whose demand is updated; measured

}  // namespace

LiveMaps::LiveMaps(const Canvas& canvas)
    : columns_(canvas.columns),
      cells_(canvas.cells()),
      reach_(smoothing_reach(canvas)),
      sides_{make_side(vertical_axis(canvas), 0), make_side(horizontal_axis(canvas), cells_)},
      densest_(cells_, counted_gcells(canvas), MacroCover::quantum()),
      busiest_(2 * cells_, counted_gcells(canvas)),
      scanned_(2 * cells_, counted_gcells(canvas)),
      found_(2 * cells_, counted_gcells(canvas)),
      congestion_(2 * static_cast<std::size_t>(cells_)),
      old_congestion_(congestion_.size()),
      old_demand_(congestion_.size()),
      old_runs_(congestion_.size()),
      old_values_(congestion_.size()),
      scan_(canvas),
      shared_(std::max(canvas.columns, canvas.rows) + 2 * reach_, 0.0) {}

LiveMaps::Side LiveMaps::make_side(GridAxis axis, int at) const {
  Side side;
  side.at = at;
  side.words = (axis.length + kWord - 1) / kWord;
  side.demand.assign(cells_, 0.0);
  side.old_demand.assign(cells_, 0.0);
  side.changed.assign(static_cast<std::size_t>(axis.lines) * side.words, 0);
  side.first.assign(axis.length, std::numeric_limits<std::int32_t>::max());
  side.last.assign(axis.length, -1);
  side.axis = std::move(axis);
  return side;
}

void LiveMaps::reset(const RouteSteps& steps, const MacroCover& cover) {
  const double* all_steps[2] = {steps.vertical().data(), steps.horizontal().data()};
  begin();
  densest_.touch_all();
  busiest_.keep();
  scan_.all_changed();
  for (int i = 0; i < 2; ++i) {
    Side& side = sides_[i];
    std::fill(side.demand.begin(), side.demand.end(), 0.0);
    for (int place = 0; place < side.axis.length; ++place) {
      side.first[place] = 0;
      side.last[place] = side.axis.lines;
      side.places.push_back(place);
    }
    run_demand(i, all_steps[i]);
    for (int line = 0; line < side.axis.lines; ++line) mark(side, line, 0, side.axis.length - 1);
  }
  refill(sides_[0], cover.vertical_block().data());
  refill(sides_[1], cover.horizontal_block().data());
}

void LiveMaps::begin() {
  if (is_scan_) busiest_.touch_all();  // the scan's result remains valid
  demands_ = runs_ = values_ = 0;
  blocks_.clear();
  is_scan_ = is_whole_ = is_drawn_ = false;
}

void LiveMaps::mark(Side& side, int line, int first, int last) {
  std::uint64_t* words = side.changed.data() + static_cast<std::size_t>(line) * side.words;
  for (int word = first / kWord; word <= last / kWord; ++word) {
    const int low = std::max(0, first - word * kWord), high = std::min(kWord - 1, last - word * kWord);
    words[word] |= (~std::uint64_t{0} >> (kWord - 1 - high)) & (~std::uint64_t{0} << low);
  }
}

void LiveMaps::block_changed(const CellBox& box) {
  if (box.last_column < box.first_column) return;
  scan_.block_changed(box);
  blocks_.push_back(box);
  for (int row = box.first_row; row <= box.last_row; ++row) mark(sides_[0], row, box.first_column, box.last_column);
  for (int column = box.first_column; column <= box.last_column; ++column) {
    mark(sides_[1], column, box.first_row, box.last_row);
  }
}

void LiveMaps::cover_changed(const CellBox& box) {
  for (int row = box.first_row; row <= box.last_row && box.first_column <= box.last_column; ++row) {
    densest_.touch(row * columns_ + box.first_column, row * columns_ + box.last_column + 1);
  }
}

void LiveMaps::update(const RouteSteps& steps, const MacroCover& cover) {
  const std::int64_t changed = find_places(sides_[0], steps.vertical_log(), steps.vertical().data()) +
                               find_places(sides_[1], steps.horizontal_log(), steps.horizontal().data());
  if (changed * kScanned > 2 * cells_) return update_all(steps, cover);
  run_demand(0, steps.vertical().data());
  run_demand(1, steps.horizontal().data());
  refill(sides_[0], cover.vertical_block().data());
  refill(sides_[1], cover.horizontal_block().data());
}

// Every change of a step has its opposite further along in the same place, so the demand differs between the first and
// the last changed step. Returns an upper bound of the number of gcells.
int LiveMaps::find_places(Side& side, const StepLog& log, const double* steps) {
  for (const StepChange& change : log) {
    if (steps[change.index] == change.before) continue;
    std::int32_t& first = side.first[change.place];
    std::int32_t& last = side.last[change.place];
    if (last < 0) side.places.push_back(change.place);
    first = std::min<std::int32_t>(first, change.line);
    last = std::max<std::int32_t>(last, change.line);
  }
  int changed = 0;
  for (const std::int32_t place : side.places) changed += side.last[place] - side.first[place];
  return changed;
}

void LiveMaps::run_demand(int number, const double* steps) {
  Side& side = sides_[number];
  const int length = side.axis.length;
  for (const std::int32_t place : side.places) {
    const int first = side.first[place], last = side.last[place];
    double running = first > 0 ? side.demand[(first - 1) * length + place] : 0.0;
    for (int line = first; line < last; ++line) {
      running += steps[line * length + place];
      if (running != side.demand[line * length + place]) set_demand(number, line, place, running);
    }
    side.first[place] = std::numeric_limits<std::int32_t>::max();
    side.last[place] = -1;
  }
  side.places.clear();
}

void LiveMaps::set_demand(int number, int line, int place, double demand) {
  Side& side = sides_[number];
  const int length = side.axis.length, index = line * length + place;
  old_demand_[demands_++] = {number, index, side.demand[index]};
  side.demand[index] = demand;
  mark(side, line, std::max(0, place - reach_), std::min(length - 1, place + reach_));
}

void LiveMaps::refill(Side& side, const double* block) {
  for (int line = 0; line < side.axis.lines; ++line) {
    for (int word = 0; word < side.words; ++word) {
      std::uint64_t& bits = side.changed[static_cast<std::size_t>(line) * side.words + word];
      while (bits != 0) {  // one run at a time
        const int first = __builtin_ctzll(bits);
        const std::uint64_t beyond = ~(bits >> first);
        const int end = beyond == 0 ? kWord : std::min(kWord, first + __builtin_ctzll(beyond));
        refill_run(side, block, line, word * kWord + first, word * kWord + end);
        bits &= end == kWord ? 0 : ~std::uint64_t{0} << end;
      }
    }
  }
}

void LiveMaps::refill_run(Side& side, const double* block, int line, int first, int end) {
  const int length = side.axis.length, start = side.at + line * length + first, count = end - first;
  double* map = congestion_.data() + start;
  double* old = old_values_.data() + values_;
  for (int i = 0; i < count; ++i) old[i] = map[i];
  old_runs_[runs_++] = {start, count};
  values_ += count;
  busiest_.touch(start, start + count);
  const double* blocked = block + line * length + first;
  if (reach_ == 0) {
    const double* demand = side.demand.data() + line * length + first;
    for (int i = 0; i < count; ++i) map[i] = demand[i] * side.axis.per_unit + blocked[i] * side.axis.block_share;
    return;
  }
  const double* demand = side.demand.data() + line * length;
  const int low = std::max(0, first - reach_), high = std::min(length, end + reach_);
  for (int i = low; i < high; ++i) shared_[reach_ + i] = demand[i] * side.axis.shares[i];
  if (high == length) std::fill_n(shared_.data() + reach_ + high, reach_, 0.0);  // the other axis' lines may be longer
  smooth_line(shared_.data() + first, reach_, side.axis, blocked, count, map);
}

void LiveMaps::undo() {
  for (const CellBox& box : blocks_) scan_.block_changed(box);
  if (is_scan_) {
    if (is_drawn_) congestion_.swap(old_congestion_);
    for (Side& side : sides_) {
      if (!is_whole_) side.demand.swap(side.old_demand);
    }
    is_scan_ = is_whole_ = is_drawn_ = false;
    return;
  }
  const double* values = old_values_.data();
  for (int run = 0; run < runs_; ++run) {
    const auto [start, count] = old_runs_[run];
    double* map = congestion_.data() + start;
    for (int i = 0; i < count; ++i) map[i] = values[i];
    busiest_.touch(start, start + count);
    values += count;
  }
  for (int i = demands_ - 1; i >= 0; --i) {
    const OldDemand& old = old_demand_[i];
    sides_[old.side].demand[old.index] = old.demand;
  }
  begin();
}

double LiveMaps::density_cost(const MacroCover& cover) {
  if (cells_ < 10) return density_cost_of_few(cover.density());
  return 0.5 * densest_.kept(cover.density().data());
}

// Maps by one scan of all gcells, for proposals that change many of them.

void LiveMaps::update_all(const RouteSteps& steps, const MacroCover& cover) {
  is_scan_ = is_drawn_ = true;
  forget_changes();
  congestion_.swap(old_congestion_);
  const double* all_steps[2] = {steps.vertical().data(), steps.horizontal().data()};
  const double* blocks[2] = {cover.vertical_block().data(), cover.horizontal_block().data()};
  for (int i = 0; i < 2; ++i) {
    sides_[i].demand.swap(sides_[i].old_demand);
    sum_up(sides_[i], all_steps[i]);
    draw_side(sides_[i], blocks[i]);
  }
}

void LiveMaps::update_all(const WholeRouteSteps& steps, const MacroCover& cover) {
  is_scan_ = is_whole_ = true;
  forget_changes();
  found_congestion_ = found_.found_by([&](double limit, double* to) { return scan_.find(steps, cover, limit, to); });
}

void LiveMaps::draw() {
  if (!is_whole_ || is_drawn_) return;
  is_drawn_ = true;
  congestion_.swap(old_congestion_);
  scan_.write(congestion_.data());
}

void LiveMaps::take_demands(const RouteSteps& steps) {
  sum_up(sides_[0], steps.vertical().data());
  sum_up(sides_[1], steps.horizontal().data());
}

double LiveMaps::congestion_cost() {
  if (is_whole_) return found_congestion_;
  return is_scan_ ? scanned_(congestion_.data()) : busiest_.kept(congestion_.data());
}

// Discards the changes instead of following them gcell by gcell.
void LiveMaps::forget_changes() {
  for (Side& side : sides_) {
    for (const std::int32_t place : side.places) {
      side.first[place] = std::numeric_limits<std::int32_t>::max();
      side.last[place] = -1;
    }
    side.places.clear();
    std::fill(side.changed.begin(), side.changed.end(), 0);
  }
}

void LiveMaps::sum_up(Side& side, const double* steps) {
  const int length = side.axis.length;
  double* demand = side.demand.data();
  for (int i = 0; i < length; ++i) demand[i] = 0.0 + steps[i];
  for (int i = length; i < cells_; ++i) demand[i] = demand[i - length] + steps[i];
}

// Computes all gcells of a map from the demands.
void LiveMaps::draw_side(Side& side, const double* block) {
  const int length = side.axis.length;
  const double* demand = side.demand.data();
  double* map = congestion_.data() + side.at;
  if (reach_ == 0) {
    const double per_unit = side.axis.per_unit, share = side.axis.block_share;
    for (int i = 0; i < cells_; ++i) map[i] = demand[i] * per_unit + block[i] * share;
    return;
  }
  const double* shares = side.axis.shares.data();
  double* shared = shared_.data() + reach_;
  std::fill_n(shared + length, reach_, 0.0);  // the other axis' lines may be longer
  for (int line = 0; line < side.axis.lines; ++line, demand += length, block += length, map += length) {
    for (int i = 0; i < length; ++i) shared[i] = demand[i] * shares[i];
    smooth_line(shared_.data(), reach_, side.axis, block, length, map);
  }
}

}  // namespace placement
