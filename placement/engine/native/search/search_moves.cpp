#include "search/search_moves.hpp"

#include <algorithm>
#include <cmath>

#include "cost/legality.hpp"

namespace placement {
namespace {

constexpr int kTries = 8;        // attempts at finding a legal position
constexpr int kMostBrought = 60; // most soft macros that move with a hard macro
constexpr int kMostRolled = 8;   // most positions that a macro moves along its row

}  // namespace

const std::array<const char*, kMoveKinds>& move_names() {
  static const std::array<const char*, kMoveKinds> names = {
      "hard_shift", "hard_slide",   "hard_align",  "hard_jump",  "hard_pull",  "hard_abut",
      "hard_swap",  "hard_permute", "hard_roll", "hard_mirror", "hard_trade", "soft_shift", "soft_step",
      "soft_median", "soft_pull",   "soft_swap",   "soft_hot",  "soft_draw"};
  return names;
}

MoveDrawer::MoveDrawer(const IncrementalCost& cost, const MoveOptions& options)
    : cost_(cost),
      design_(cost.design()),
      room_(design_, options.spacing, options.blockages),
      rotate_(options.rotate),
      snaps_(design_.constraints.grid.is_set()),
      cell_width_(design_.canvas.cell_width()),
      cell_height_(design_.canvas.cell_height()) {
  reach.fill(1.0);
  reach[static_cast<int>(MoveKind::hard_pull)] = reach[static_cast<int>(MoveKind::hard_trade)] = 2.0;
  for (int node = 0; node < design_.nodes(); ++node) {
    if (design_.fixed[node]) continue;
    if (design_.kind_of(node) == Kind::hard) hard_.push_back(node);
    if (design_.kind_of(node) == Kind::soft) soft_.push_back(node);
  }
  for (const KeepOut& off : design_.constraints.keep_outs) blocks_ |= off.kind == KeepOutKind::blockage;
  reset();
}

bool MoveDrawer::possible(MoveKind kind) const {
  if (kind >= MoveKind::soft_shift) return soft_.size() > (kind == MoveKind::soft_swap);
  if (kind == MoveKind::hard_swap || kind == MoveKind::hard_abut) return hard_.size() > 1;
  if (kind == MoveKind::hard_permute || kind == MoveKind::hard_roll) return hard_.size() > 3;
  if (kind == MoveKind::hard_trade) return !hard_.empty() && !soft_.empty();
  return !hard_.empty();
}

void MoveDrawer::reset() {
  room_.stand(cost_.x().data(), cost_.y().data(), cost_.orientation().data());
}

void MoveDrawer::accepted(int count) {
  for (int i = 0; i < count; ++i) room_.stand(moves_[i]);
  for (int i = 0; i < count && targets_; ++i) targets_->moved(moves_[i]);
}

void MoveDrawer::price(bool whole) {
  if (!targets_) targets_ = make_target_drawer(cost_, soft_);
  if (whole) targets_->reset();
  else targets_->refresh();
}

void MoveDrawer::find_hot() {
  const Canvas& canvas = design_.canvas;
  const int cells = canvas.cells(), count = std::max(1, cells / 10);
  std::vector<std::pair<double, int>> busy;
  for (int i = 0; i < cells; ++i) busy.emplace_back(-cost_.vertical_map()[i], i);
  for (int i = 0; i < cells; ++i) busy.emplace_back(-cost_.horizontal_map()[i], cells + i);
  std::nth_element(busy.begin(), busy.begin() + (count - 1), busy.end());
  std::sort(busy.begin(), busy.begin() + count);
  hot_rows_.clear();
  hot_columns_.clear();
  for (int i = 0; i < count; ++i) {
    const int cell = busy[i].second;
    if (cell >= cells) hot_rows_.push_back((cell - cells) % canvas.rows);
    else hot_columns_.push_back(cell % canvas.columns);
  }
}

int MoveDrawer::draw(MoveKind kind, Random& random) {
  moves_.clear();
  bool found = false;
  switch (kind) {
    case MoveKind::hard_shift: found = hard_shift(random); break;
    case MoveKind::hard_slide: found = hard_slide(random); break;
    case MoveKind::hard_align: found = hard_align(random); break;
    case MoveKind::hard_jump: found = hard_jump(random); break;
    case MoveKind::hard_pull: found = hard_pull(random); break;
    case MoveKind::hard_abut: found = hard_abut(random); break;
    case MoveKind::hard_swap: found = hard_ring(random, 2); break;
    case MoveKind::hard_permute: found = hard_ring(random, 3 + static_cast<int>(random.below(2))); break;
    case MoveKind::hard_roll: found = hard_roll(random); break;
    case MoveKind::hard_mirror: found = hard_mirror(random); break;
    case MoveKind::hard_trade: found = hard_trade(random); break;
    case MoveKind::soft_shift: found = soft_near(random); break;
    case MoveKind::soft_step: found = soft_step(random); break;
    case MoveKind::soft_median: found = soft_median(random); break;
    case MoveKind::soft_pull: found = soft_pull(random); break;
    case MoveKind::soft_swap: found = soft_swap(random); break;
    case MoveKind::soft_hot: found = soft_hot(random); break;
    case MoveKind::soft_draw: found = soft_draw(random); break;
  }
  if (found && blocks_ && kind >= MoveKind::soft_shift) {
    for (const NodeMove& move : moves_) {
      if (room_.on_blockage(move.x, move.y)) return 0;
    }
  }
  return found ? static_cast<int>(moves_.size()) : 0;
}

// Snaps hard macros to the grid, if there is one. Returns whether their positions are then legal.
bool MoveDrawer::lands(NodeMove* moves, int count) const {
  if (snaps_) {
    for (int i = 0; i < count; ++i) snap(moves[i]);
  }
  return room_.fits(moves, count);
}

// Moves to the nearest position inside the canvas whose lower left corner is on the grid.
void MoveDrawer::snap(NodeMove& move) const {
  const auto onto = [](double at, double length, double extent, double pitch, double offset) {
    if (!(pitch > 0)) return at;
    const double first = std::ceil((-offset - kLengthTolerance) / pitch);
    const double last = pitches_below(extent - length, pitch, offset);
    const double nearest = std::round((at - length / 2 - offset) / pitch);
    return offset + pitch * std::max(first, std::min(nearest, last)) + length / 2;
  };
  const SnapGrid& grid = design_.constraints.grid;
  const double width = design_.width_of(move.node, move.orientation);
  const double height = design_.height_of(move.node, move.orientation);
  move.x = onto(move.x, width, design_.canvas.width, grid.pitch_x, grid.offset_x);
  move.y = onto(move.y, height, design_.canvas.height, grid.pitch_y, grid.offset_y);
}

// Moves the whole rectangle into the canvas.
void MoveDrawer::clamp(NodeMove& move) const {
  const auto into = [](double at, double length, double extent) {
    const double margin = std::min(length, extent) / 2;
    return std::min(std::max(at, margin), extent - margin);
  };
  move.x = into(move.x, design_.width_of(move.node, move.orientation), design_.canvas.width);
  move.y = into(move.y, design_.height_of(move.node, move.orientation), design_.canvas.height);
}

bool MoveDrawer::neighbour(int node, Random& random, double* x, double* y) const {
  const int start = cost_.node_net_start()[node], nets = cost_.node_net_start()[node + 1] - start;
  if (nets == 0) return false;
  const CompactNets& all = *cost_.nets();
  const int net = cost_.node_nets()[start + random.below(static_cast<std::uint32_t>(nets))];
  const int points = all.net_start[net + 1] - all.net_start[net];
  const int first = static_cast<int>(random.below(static_cast<std::uint32_t>(points)));
  for (int i = 0; i < points; ++i) {
    const int point = all.net_points[all.net_start[net] + (first + i) % points];
    if (all.point_node[point] == node) continue;
    *x = cost_.places()[point].x;
    *y = cost_.places()[point].y;
    return true;
  }
  return false;
}

bool MoveDrawer::hard_shift(Random& random) {
  const NodeMove from = cost_.at(random_hard(random));
  for (int i = 0; i < kTries; ++i) {
    NodeMove to = from;
    const std::uint32_t axes = random.below(3);
    const double scale = std::exp2(kFinest * random.fraction());
    if (axes != 0) to.x += scale * random.both_ways() * scale_x(MoveKind::hard_shift);
    if (axes != 1) to.y += scale * random.both_ways() * scale_y(MoveKind::hard_shift);
    clamp(to);
    if (!lands(&to, 1)) continue;
    moves_.push_back(to);
    return true;
  }
  return false;
}

bool MoveDrawer::hard_slide(Random& random) {
  NodeMove to = cost_.at(random_hard(random));
  const bool across = random.below(2) != 0, forward = random.below(2) != 0;
  const double clearance = room_.clearance(to, across, forward);
  if (clearance <= kLengthTolerance) return false;
  const double way = random.below(2) != 0 ? clearance : clearance * random.fraction();
  (across ? to.x : to.y) += forward ? way : -way;
  clamp(to);
  if (!lands(&to, 1)) return false;
  moves_.push_back(to);
  return true;
}

bool MoveDrawer::hard_align(Random& random) {
  const NodeMove from = cost_.at(random_hard(random));
  const auto centred = [&](double at, double length, double cell, double reach) {
    const double cells = std::ceil(length / cell - 1e-9);
    const double first = std::round((at + random.both_ways() * reach) / cell - cells / 2);
    return (first + cells / 2) * cell;
  };
  const std::uint32_t axes = random.below(3);
  for (int i = 0; i < kTries; ++i) {
    NodeMove to = from;
    const double width = design_.width_of(to.node, to.orientation), height = design_.height_of(to.node, to.orientation);
    if (axes != 0) to.x = centred(to.x, width, cell_width_, scale_x(MoveKind::hard_align));
    if (axes != 1) to.y = centred(to.y, height, cell_height_, scale_y(MoveKind::hard_align));
    clamp(to);
    if ((to.x == from.x && to.y == from.y) || !lands(&to, 1)) continue;
    moves_.push_back(to);
    return true;
  }
  return false;
}

bool MoveDrawer::hard_jump(Random& random) {
  NodeMove to = cost_.at(random_hard(random));
  for (int i = 0; i < 2 * kTries; ++i) {
    to.x = random.fraction() * design_.canvas.width;
    to.y = random.fraction() * design_.canvas.height;
    clamp(to);
    if (!lands(&to, 1)) continue;
    moves_.push_back(to);
    return true;
  }
  return false;
}

bool MoveDrawer::hard_pull(Random& random) {
  const NodeMove from = cost_.at(random_hard(random));
  double x, y;
  if (!neighbour(from.node, random, &x, &y)) return false;
  for (int i = 0; i < kTries; ++i) {
    NodeMove to = from;
    const double spread = 1.0 + i;
    to.x = x + random.both_ways() * spread * scale_x(MoveKind::hard_pull);
    to.y = y + random.both_ways() * spread * scale_y(MoveKind::hard_pull);
    clamp(to);
    if (!lands(&to, 1)) continue;
    moves_.push_back(to);
    return true;
  }
  return false;
}

bool MoveDrawer::hard_abut(Random& random) {
  const NodeMove from = cost_.at(random_hard(random));
  for (int i = 0; i < kTries; ++i) {
    const NodeMove beside = cost_.at(random_hard(random));
    if (beside.node == from.node) continue;
    NodeMove to = from;
    const std::uint32_t side = random.below(4);
    const double across = (design_.width_of(to.node, to.orientation) + design_.width_of(beside.node, beside.orientation)) / 2
                          + room_.gap(to, beside, true);
    const double up = (design_.height_of(to.node, to.orientation) + design_.height_of(beside.node, beside.orientation)) / 2
                      + room_.gap(to, beside, false);
    to.x = beside.x + (side == 0 ? across : side == 1 ? -across : 0.0);
    to.y = beside.y + (side == 2 ? up : side == 3 ? -up : 0.0);
    clamp(to);
    if (!lands(&to, 1)) continue;
    moves_.push_back(to);
    return true;
  }
  return false;
}

bool MoveDrawer::hard_ring(Random& random, int count) {
  for (int i = 0; i < kTries; ++i) {
    moves_.clear();
    for (int j = 0; j < count; ++j) moves_.push_back(cost_.at(random_hard(random)));
    bool distinct = true;
    for (int j = 0; j < count; ++j) {
      for (int k = 0; k < j; ++k) distinct &= moves_[j].node != moves_[k].node;
    }
    if (!distinct) continue;
    const NodeMove first = moves_[0];
    for (int j = 0; j < count; ++j) {
      const NodeMove& next = j + 1 < count ? moves_[j + 1] : first;
      moves_[j].x = next.x;
      moves_[j].y = next.y;
    }
    if (lands(moves_.data(), count)) return true;
  }
  return false;
}

// Keeps the gaps between the macros in their order.
bool MoveDrawer::hard_roll(Random& random) {
  const NodeMove from = cost_.at(random_hard(random));
  const bool across = random.below(2) != 0;
  const auto along = [&](const NodeMove& at) { return across ? at.x : at.y; };
  const auto length = [&](const NodeMove& at) {
    return across ? design_.width_of(at.node, at.orientation) : design_.height_of(at.node, at.orientation);
  };
  const double aside = across ? from.y : from.x;
  const double reach = (across ? design_.height_of(from.node, from.orientation)
                               : design_.width_of(from.node, from.orientation)) / 2;
  line_.clear();
  for (const std::int32_t node : hard_) {
    const NodeMove at = cost_.at(node);
    if (std::abs((across ? at.y : at.x) - aside) < reach) line_.push_back(at);
  }
  std::sort(line_.begin(), line_.end(), [&](const NodeMove& a, const NodeMove& b) {
    return along(a) != along(b) ? along(a) < along(b) : a.node < b.node;
  });
  const int count = static_cast<int>(line_.size());
  int here = 0;
  while (line_[here].node != from.node) ++here;
  const int way = 1 + static_cast<int>(random.below(kMostRolled));
  const bool forward = random.below(2) != 0;
  const int there = forward ? here + way : here - way;
  if (there < 0 || there >= count) return false;
  const int first = std::min(here, there), last = std::max(here, there);
  double at = along(line_[first]) - length(line_[first]) / 2;
  for (int i = first; i <= last; ++i) {
    const NodeMove& comes = i == there ? line_[here] : forward ? line_[i + 1] : line_[i - 1];
    NodeMove to = comes;
    (across ? to.y : to.x) = across ? line_[i].y : line_[i].x;
    (across ? to.x : to.y) = at + length(comes) / 2;
    moves_.push_back(to);
    at += length(comes);
    if (i < last) at += along(line_[i + 1]) - along(line_[i]) - (length(line_[i]) + length(line_[i + 1])) / 2;
  }
  return lands(moves_.data(), static_cast<int>(moves_.size()));
}

bool MoveDrawer::hard_mirror(Random& random) {
  NodeMove to = cost_.at(random_hard(random));
  const int sides = to.orientation & 4, turn = 1 + static_cast<int>(random.below(3));
  to.orientation = static_cast<std::int8_t>(sides | ((to.orientation & 3) ^ turn));
  const bool rotates = rotate_ && random.below(2) != 0;
  if (rotates) to.orientation = static_cast<std::int8_t>(to.orientation ^ 4);
  if (!design_.constraints.allows(to.node, to.orientation)) return false;
  if (rotates) {
    clamp(to);
    if (!lands(&to, 1)) return false;
  }
  moves_.push_back(to);
  return true;
}

bool MoveDrawer::hard_trade(Random& random) {
  const NodeMove from = cost_.at(random_hard(random));
  for (int i = 0; i < kTries; ++i) {
    NodeMove to = from;
    double x, y;
    if (random.below(2) != 0 && neighbour(from.node, random, &x, &y)) {
      to.x = x + random.both_ways() * 2 * cell_width_;
      to.y = y + random.both_ways() * 2 * cell_height_;
    } else {
      const double scale = std::exp2(kFinest * random.fraction());
      to.x += scale * random.both_ways() * scale_x(MoveKind::hard_trade);
      to.y += scale * random.both_ways() * scale_y(MoveKind::hard_trade);
    }
    clamp(to);
    if (!lands(&to, 1)) continue;
    moves_.push_back(to);
    bring_back(from, to);
    return true;
  }
  return false;
}

// Soft macros under the new position of the hard macro go to its old one: by the reversed move or, where the two
// positions overlap, mirrored at the point between them.
void MoveDrawer::bring_back(const NodeMove& from, const NodeMove& to) {
  const double half_width = design_.width_of(to.node, to.orientation) / 2;
  const double half_height = design_.height_of(to.node, to.orientation) / 2;
  const auto under = [&](const NodeMove& macro, int node) {
    return std::abs(cost_.x()[node] - macro.x) < half_width && std::abs(cost_.y()[node] - macro.y) < half_height;
  };
  const bool overlap = std::abs(from.x - to.x) < 2 * half_width && std::abs(from.y - to.y) < 2 * half_height;
  for (const std::int32_t node : soft_) {
    if (!under(to, node) || under(from, node)) continue;
    NodeMove back = cost_.at(node);
    back.x = overlap ? from.x + to.x - back.x : back.x + from.x - to.x;
    back.y = overlap ? from.y + to.y - back.y : back.y + from.y - to.y;
    clamp(back);
    if (blocks_ && room_.on_blockage(back.x, back.y)) continue;
    moves_.push_back(back);
    if (moves_.size() > kMostBrought) return;
  }
}

}  // namespace placement
