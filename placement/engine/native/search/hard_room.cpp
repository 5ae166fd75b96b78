#include "search/hard_room.hpp"

#include <algorithm>
#include <cmath>

#include "cost/legality.hpp"

namespace placement {

HardRoom::HardRoom(const Design& design, double spacing, const std::vector<Blockage>& blockages)
    : design_(design),
      slack_((spacing > 0 ? -spacing : design.canvas.overlap_threshold) + kLengthTolerance),
      index_of_(design.nodes(), -1) {
  for (int node = 0; node < design.nodes(); ++node) {
    if (design.kind_of(node) != Kind::hard) continue;
    index_of_[node] = static_cast<std::int32_t>(x_.size());
    for (auto* values : {&x_, &y_, &width_, &height_}) values->push_back(0);
    movable_.push_back(!design.fixed[node]);
  }
  for (const Blockage& blockage : blockages) {
    x_.push_back((blockage.left + blockage.right) / 2);
    y_.push_back((blockage.low + blockage.high) / 2);
    width_.push_back(blockage.right - blockage.left);
    height_.push_back(blockage.high - blockage.low);
    movable_.push_back(0);
  }
}

void HardRoom::stand(const double* x, const double* y, const std::int8_t* orientation) {
  for (int node = 0; node < design_.nodes(); ++node) stand({node, x[node], y[node], orientation[node]});
}

void HardRoom::stand(const NodeMove& move) {
  const int i = index_of_[move.node];
  if (i < 0) return;
  const Box box = box_of(move);
  x_[i] = box.x;
  y_[i] = box.y;
  width_[i] = box.width;
  height_[i] = box.height;
}

bool HardRoom::inside(const Box& box) const {
  return !reaches_beyond(box.x, box.width, design_.canvas.width) &&
         !reaches_beyond(box.y, box.height, design_.canvas.height);
}

// The shared rule of legality.hpp, with the lengths grown by the spacing.
bool HardRoom::conflict(const Box& box, std::size_t other) const {
  const auto shared = [](double a, double length_a, double b, double length_b) {
    return std::min({(length_a + length_b) / 2 - std::abs(a - b), length_a, length_b});
  };
  return (shared(box.x, box.width, x_[other], width_[other]) > slack_) &
         (shared(box.y, box.height, y_[other], height_[other]) > slack_);
}

int HardRoom::conflicts(const Box& box) const {
  int found = 0;
  for (std::size_t i = 0; i < x_.size(); ++i) found += conflict(box, i);
  return found;
}

bool HardRoom::fits(const NodeMove* moves, int count) const {
  for (int i = 0; i < count; ++i) {
    if (index_of_[moves[i].node] < 0) continue;
    const Box box = box_of(moves[i]);
    if (!inside(box)) return false;
    int allowed = 0;  // conflicts with where the moving macros stand now, itself included
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

bool HardRoom::all_fit() const {
  for (std::size_t i = 0; i < x_.size(); ++i) {
    if (!movable_[i]) continue;
    const Box box{x_[i], y_[i], width_[i], height_[i]};
    if (!inside(box) || conflicts(box) != static_cast<int>(conflict(box, i))) return false;
  }
  return true;
}

double HardRoom::clearance(const NodeMove& at, bool across, bool forward) const {
  const Box box = box_of(at);
  const double here = across ? box.x : box.y, length = across ? box.width : box.height;
  const double extent = across ? design_.canvas.width : design_.canvas.height;
  double room = forward ? extent - length / 2 - here : here - length / 2;
  const double spacing = std::max(0.0, kLengthTolerance - slack_);
  for (std::size_t i = 0; i < x_.size(); ++i) {
    const double side = across ? std::abs(y_[i] - box.y) : std::abs(x_[i] - box.x);
    const double sides = across ? (height_[i] + box.height) / 2 : (width_[i] + box.width) / 2;
    const double ahead = (across ? x_[i] : y_[i]) - here;
    if (sides - side <= slack_ || (forward ? ahead <= 0 : ahead >= 0)) continue;
    const double reach = (length + (across ? width_[i] : height_[i])) / 2 + spacing;
    room = std::min(room, std::abs(ahead) - reach);
  }
  return std::max(0.0, room);
}

}  // namespace placement
