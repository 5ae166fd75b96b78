#include "search/legal_positions.hpp"

#include <algorithm>
#include <cmath>

#include "cost/legality.hpp"

namespace placement {

LegalPositions::LegalPositions(const Design& design, double spacing)
    : design_(design),
      slack_((spacing > 0 ? -spacing : design.canvas.overlap_threshold) + kLengthTolerance),
      index_of_(design.nodes(), -1),
      spacing_(spacing),
      halos_(design.constraints.halos),
      channels_(design.constraints.channel.is_set()) {
  for (int node = 0; node < design.nodes(); ++node) {
    if (design.kind_of(node) != Kind::hard) continue;
    index_of_[node] = static_cast<std::int32_t>(x_.size());
    for (auto* values : {&x_, &y_, &width_, &height_}) values->push_back(0);
    halo_.push_back({});
    movable_.push_back(!design.fixed[node]);
    orientation_.push_back(0);
    node_.push_back(node);
  }
  macros_ = x_.size();
  make_bins();
}

void LegalPositions::make_bins() {
  constexpr double kMostBins = 256;  // along a side
  const double sides = std::clamp(std::sqrt(static_cast<double>(macros_)), 1.0, kMostBins);
  columns_ = rows_ = static_cast<int>(sides);
  per_width_ = columns_ / design_.canvas.width;
  per_height_ = rows_ / design_.canvas.height;
  double longest = 0, halo = 0;
  for (const std::int32_t node : node_) {
    longest = std::max({longest, design_.node_width[node], design_.node_height[node]});
    const Halo own = design_.constraints.halo_of(node, 0);
    halo = std::max({halo, own.left(), own.right(), own.low(), own.high()});
  }
  const Channel& channel = design_.constraints.channel;
  reach_ = longest / 2 + std::max({spacing_, 2 * halo, channel.x, channel.y, 0.0}) + 2 * kLengthTolerance;
  first_in_.assign(static_cast<std::size_t>(columns_) * rows_, -1);
  next_.assign(macros_, -1);
  previous_.assign(macros_, -1);
  bin_.assign(macros_, -1);
  for (std::size_t i = 0; i < macros_; ++i) file(static_cast<std::int32_t>(i));
}

// Inserts a macro into the bin of its centre.
void LegalPositions::file(std::int32_t macro) {
  const int column = static_cast<int>(std::clamp(x_[macro] * per_width_, 0.0, columns_ - 1.0));
  const int row = static_cast<int>(std::clamp(y_[macro] * per_height_, 0.0, rows_ - 1.0));
  const std::int32_t bin = row * columns_ + column;
  if (bin == bin_[macro]) return;
  const std::int32_t before = previous_[macro], after = next_[macro];
  if (after >= 0) previous_[after] = before;
  if (before >= 0) next_[before] = after;
  else if (bin_[macro] >= 0) first_in_[bin_[macro]] = after;
  bin_[macro] = bin;
  previous_[macro] = -1;
  next_[macro] = first_in_[bin];
  if (next_[macro] >= 0) previous_[next_[macro]] = macro;
  first_in_[bin] = macro;
}

void LegalPositions::place(const double* x, const double* y, const std::int8_t* orientation) {
  for (int node = 0; node < design_.nodes(); ++node) place({node, x[node], y[node], orientation[node]});
}

void LegalPositions::place(const NodeMove& move) {
  const int i = index_of_[move.node];
  if (i < 0) return;
  const Box box = box_of(move);
  x_[i] = box.x;
  y_[i] = box.y;
  width_[i] = box.width;
  height_[i] = box.height;
  orientation_[i] = move.orientation;
  file(i);
  if (halos_) halo_[i] = design_.constraints.halo_of(move.node, move.orientation);
}

// Whether a position violates the constraints of a macro.
bool LegalPositions::off_limits(const NodeMove& move) const {
  const HardBox box = hard_box_of(move);
  bool found = false;
  design_.constraints.for_keep_outs(move.node, [&](const KeepOut& off) { found |= stands_on(box, off, spacing_); });
  const Constraints& kept = design_.constraints;
  return found || (channels_ && breaks_channel_at_edge(box, design_.canvas, kept.channel, kept.coarsest));
}

void LegalPositions::settle(NodeMove& move) const {
  constexpr int kRounds = 3;
  const Constraints& kept = design_.constraints;
  HardBox box = hard_box_of(move);
  // Increase of a gap that makes it an abutment, if the spacing allows one, or a channel.
  const auto nearer = [this](double gap, double needed, double channel, double pitch) {
    return needed >= spacing_ && gap - needed <= channel - gap ? needed - gap : channel + pitch - gap;
  };
  const auto off_edges = [&](double& at, double length, double extent, double channel, double pitch) {
    const double low = at - length / 2, high = extent - at - length / 2;
    const auto way = [&](double gap) { return gap <= channel - gap ? -gap : channel + pitch - gap; };
    if (too_narrow(low, 0, channel, pitch)) at += way(low);
    else if (too_narrow(high, 0, channel, pitch)) at -= way(high);
  };
  for (int round = 0; round < kRounds; ++round) {
    const double x = move.x, y = move.y;
    off_edges(move.x, box.width, design_.canvas.width, kept.channel.x, kept.coarsest.pitch_x);
    off_edges(move.y, box.height, design_.canvas.height, kept.channel.y, kept.coarsest.pitch_y);
    for_near(move.x, box.width / 2, move.y, box.height / 2, [&](std::size_t i) {
      if (node_[i] == move.node) return;
      const HardBox other = placed(i);
      const double gap_x = gap_between(move.x, box.width, other.x, other.width);
      const double gap_y = gap_between(move.y, box.height, other.y, other.height);
      box.x = move.x;
      box.y = move.y;
      const double needed_x = std::max(halos_across(box, other), 0.0);
      const double needed_y = std::max(halos_up(box, other), 0.0);
      if (gap_y < 0 && too_narrow(gap_x, needed_x, kept.channel.x, kept.coarsest.pitch_x)) {
        const double way = nearer(gap_x, needed_x, kept.channel.x, kept.coarsest.pitch_x);
        move.x += move.x > other.x ? way : -way;
      } else if (gap_x < 0 && too_narrow(gap_y, needed_y, kept.channel.y, kept.coarsest.pitch_y)) {
        const double way = nearer(gap_y, needed_y, kept.channel.y, kept.coarsest.pitch_y);
        move.y += move.y > other.y ? way : -way;
      }
    });
    if (move.x == x && move.y == y) return;
  }
}

double LegalPositions::gap(const NodeMove& first, const NodeMove& second, bool across) const {
  if (!halos_) return spacing_;
  const Halo one = design_.constraints.halo_of(first.node, first.orientation);
  const Halo two = design_.constraints.halo_of(second.node, second.orientation);
  return std::max(spacing_, across ? halos_across(one, two) : halos_up(one, two));
}

bool LegalPositions::on_blockage(double x, double y) const {
  const auto on = [&](double at_x, double at_y, double width, double height) {
    return std::abs(x - at_x) < width / 2 && std::abs(y - at_y) < height / 2;
  };
  for (const KeepOut& off : design_.constraints.keep_outs) {
    if (off.kind == KeepOutKind::blockage && on(off.x, off.y, off.width, off.height)) return true;
  }
  return false;
}

// Like `fits`, with a gap per pair: a moved macro conflicts with no stationary macro and no macro before it in
// the move.
bool LegalPositions::fits_with_halos(const NodeMove* moves, int count) const {
  for (int i = 0; i < count; ++i) {
    if (index_of_[moves[i].node] >= 0 && !fits_with_halos(moves[i], moves, count, i)) return false;
  }
  return true;
}

bool LegalPositions::fits_with_halos(const NodeMove& move, const NodeMove* moves, int count, int before) const {
  if (!inside(box_of(move))) return false;
  const HardBox box = hard_box_of(move);
  int allowed = 0, found = 0;  // conflicts with the current positions of the moved macros, its own included; with all
  for (int j = 0; j < count; ++j) {
    const int other = index_of_[moves[j].node];
    if (other >= 0) allowed += clash(box, placed(other));
  }
  const Box plain = box_of(move);
  for_near(plain.x, plain.width / 2, plain.y, plain.height / 2,
           [&](std::size_t i) { found += clash(box, placed(i)); });
  if (found != allowed) return false;
  for (int j = 0; j < before; ++j) {
    if (index_of_[moves[j].node] >= 0 && clash(box, hard_box_of(moves[j]))) return false;
  }
  return true;
}

bool LegalPositions::inside(const Box& box) const {
  return !reaches_beyond(box.x, box.width, design_.canvas.width) &&
         !reaches_beyond(box.y, box.height, design_.canvas.height);
}

// The rule of legality.hpp, with lengths grown by the spacing.
bool LegalPositions::conflict(const Box& box, std::size_t other) const {
  const auto shared = [](double a, double length_a, double b, double length_b) {
    return std::min({(length_a + length_b) / 2 - std::abs(a - b), length_a, length_b});
  };
  return (shared(box.x, box.width, x_[other], width_[other]) > slack_) &
         (shared(box.y, box.height, y_[other], height_[other]) > slack_);
}

int LegalPositions::conflicts(const Box& box) const {
  int found = 0;
  for_near(box.x, box.width / 2, box.y, box.height / 2, [&](std::size_t i) { found += conflict(box, i); });
  return found;
}

bool LegalPositions::fits(const NodeMove* moves, int count) const {
  if (design_.constraints.any) {
    for (int i = 0; i < count; ++i) {
      if (index_of_[moves[i].node] >= 0 && off_limits(moves[i])) return false;
    }
    if (halos_ || channels_) return fits_with_halos(moves, count);
  }
  for (int i = 0; i < count; ++i) {
    if (index_of_[moves[i].node] < 0) continue;
    const Box box = box_of(moves[i]);
    if (!inside(box)) return false;
    int allowed = 0;  // conflicts with the current positions of the moved macros, its own included
    for (int j = 0; j < count; ++j) {
      const int other = index_of_[moves[j].node];
      if (other >= 0) allowed += conflict(box, other);
    }
    if (conflicts(box) != allowed) return false;
    for (int j = 0; j < i; ++j) {
      if (index_of_[moves[j].node] < 0) continue;
      const Box there = box_of(moves[j]);
      const double across = std::min({(box.width + there.width) / 2 - std::abs(box.x - there.x), box.width, there.width});
      const double up = std::min({(box.height + there.height) / 2 - std::abs(box.y - there.y), box.height, there.height});
      if (across > slack_ && up > slack_) return false;
    }
  }
  return true;
}

bool LegalPositions::all_fit() const {
  const Constraints& kept = design_.constraints;
  for (std::size_t i = 0; i < macros_; ++i) {
    if (!movable_[i]) continue;
    const NodeMove here{node_[i], x_[i], y_[i], orientation_[i]};
    if (!kept.allows(node_[i], orientation_[i]) || !on_grid(placed(i), kept.grid_of(node_[i], orientation_[i]))) return false;
    if (!fits(&here, 1)) return false;
  }
  return true;
}

double LegalPositions::clearance(const NodeMove& at, bool across, bool forward) const {
  const Box box = box_of(at);
  const double here = across ? box.x : box.y, length = across ? box.width : box.height;
  const double extent = across ? design_.canvas.width : design_.canvas.height;
  double free = forward ? extent - length / 2 - here : here - length / 2;
  // An obstacle at (x, y): `gap` is the required distance along the axis, `slack` the overlap allowed on the other
  // axis.
  const auto meet = [&](double x, double y, double width, double height, double gap, double slack) {
    const double side = across ? std::abs(y - box.y) : std::abs(x - box.x);
    const double sides = across ? (height + box.height) / 2 : (width + box.width) / 2;
    const double ahead = (across ? x : y) - here;
    if (sides - side <= slack || (forward ? ahead <= 0 : ahead >= 0)) return;
    const double reach = (length + (across ? width : height)) / 2 + gap;
    free = std::min(free, std::abs(ahead) - reach);
  };
  const double spacing = std::max(0.0, kLengthTolerance - slack_);
  const HardBox own = hard_box_of(at);
  const double far = std::max(design_.canvas.width, design_.canvas.height);  // along the axis
  for_near(box.x, across ? far : box.width / 2, box.y, across ? box.height / 2 : far, [&](std::size_t i) {
    if (!halos_) {
      meet(x_[i], y_[i], width_[i], height_[i], spacing, slack_);
      return;
    }
    const HardBox other = placed(i);
    const double ahead = across ? halos_across(own, other) : halos_up(own, other);
    const double aside = across ? halos_up(own, other) : halos_across(own, other);
    const double share = allowed_share(std::max(spacing_, aside), design_.canvas.overlap_threshold) + kLengthTolerance;
    meet(x_[i], y_[i], width_[i], height_[i], std::max(spacing, ahead), share);
  });
  design_.constraints.for_keep_outs(at.node, [&](const KeepOut& off) {
    const double gap = off.kind == KeepOutKind::blockage ? spacing : 0;
    meet(off.x, off.y, off.width, off.height, gap, kLengthTolerance - gap);
  });
  return std::max(0.0, free);
}

}  // namespace placement
