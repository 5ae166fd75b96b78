#include "cost/tidiness.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "cost/legality.hpp"

namespace placement {
namespace {

constexpr double kWidestChannel = 10.0;      // µm, the width in public power grids
constexpr double kMostOfSide = 0.25;         // fraction of the macros' mean shorter side: small ones need less
constexpr double kTolerance = 0.05;          // fraction of the channel: edges within it are aligned
constexpr double kOffCentre = 0.25;          // fraction of a side: minimum offset of the mean pin on a pin side
constexpr double kGrowth = 0.25;             // fraction of a side of the largest empty rectangle
constexpr double kCovers = 0.25;             // fraction of the shorter side: maximum overlap with a pin side
constexpr double kQuantum = 1 << 20;
// In units of the cost of one macro without an aligned neighbour.
constexpr double kNotch = 1.0, kStep = 0.5, kUngrouped = 1.0, kTurned = 1.5, kFacing = 3.0, kInward = 10.0, kCorner = 10.0, kInClear = 40.0;

std::int64_t quanta(double share) { return std::llround(share * kQuantum); }

// Penalty of a gap narrower than the channel, in excess of halos and spacing: largest in the middle, so that the gap
// closes or opens.
double notch(double gap, double channel) {
  return gap <= 0 || gap >= channel ? 0.0 : std::min(gap, channel - gap) / (channel / 2);
}

// The halo with each side widened to at least `side`.
Halo at_least(const Halo& halo, double side) {
  const double left = std::max(halo.left(), side), right = std::max(halo.right(), side);
  const double low = std::max(halo.low(), side), high = std::max(halo.high(), side);
  return {(left + right) / 2, (low + high) / 2, (right - left) / 2, (high - low) / 2};
}

}  // namespace

Tidiness::Tidiness(const Design& design) : design_(design), index_of_(design.nodes(), -1) {
  double shorter = 0, halo = 0;
  std::map<std::pair<double, double>, int> sizes;
  std::map<int, int> banks;
  for (int node = 0; node < design.nodes(); ++node) {
    if (design.kind_of(node) != Kind::hard) continue;
    index_of_[node] = static_cast<std::int32_t>(macros_.size());
    macros_.push_back({});
    const double width = design.node_width[node], height = design.node_height[node];
    shorter += std::min(width, height);
    size_.push_back(sizes.emplace(std::make_pair(width, height), static_cast<int>(sizes.size())).first->second);
    bank_.push_back(design.bank.empty() ? -1 : design.bank[node]);
    if (bank_.back() >= 0) ++banks[bank_.back()];
    const Halo own = design.constraints.halo_of(node, 0);
    halo = std::max({halo, own.left(), own.right(), own.low(), own.high(), design.spacing / 2});
  }
  const int count = static_cast<int>(macros_.size());
  channel_ = count > 0 ? std::min(kWidestChannel, kMostOfSide * shorter / count) : kWidestChannel;
  tolerance_ = kTolerance * channel_;
  // Floats have a relative error below 10^-7 of the canvas.
  near_ = static_cast<float>((2 * halo + channel_) * (1 + 1e-6) + 1e-5 * (design.canvas.width + design.canvas.height));
  for (std::int32_t& bank : bank_) {
    if (bank >= 0 && banks[bank] < 2) bank = -1;
    banked_ += bank >= 0;
  }
  std::vector<double> pins(count), across(count), up(count);
  for (int pin = 0; pin < design.pins(); ++pin) {
    const int index = index_of_[design.pin_node[pin]];
    if (index < 0) continue;
    pins[index] += 1;
    across[index] += design.pin_dx[pin];
    up[index] += design.pin_dy[pin];
  }
  for (int node = 0; node < design.nodes(); ++node) {
    const int index = index_of_[node];
    if (index < 0) continue;
    const double dx = pins[index] > 0 ? across[index] / pins[index] / design.node_width[node] : 0;
    const double dy = pins[index] > 0 ? up[index] / pins[index] / design.node_height[node] : 0;
    std::int8_t side = -1;
    if (std::max(std::abs(dx), std::abs(dy)) > kOffCentre) {
      side = static_cast<std::int8_t>(std::abs(dx) >= std::abs(dy) ? (dx < 0 ? 0 : 1) : (dy < 0 ? 2 : 3));
    }
    own_side_.push_back(side);
    sided_ += side >= 0;
  }
  clear();
}

std::vector<Sides> Tidiness::taken() const {
  std::vector<Sides> all;
  for (std::size_t i = 0; i < macros_.size(); ++i) {
    const Macro& macro = macros_[i];
    const double half_width = macro.half_width + macro.halo.x, half_height = macro.half_height + macro.halo.y;
    const double x = macro.x + macro.halo.shift_x, y = macro.y + macro.halo.shift_y;
    if (std::isfinite(x_[i])) all.push_back({x - half_width, y - half_height, x + half_width, y + half_height});
  }
  return all;
}

Sides Tidiness::largest_empty() const {
  return largest_empty_rectangle(design_.canvas.width, design_.canvas.height, taken());
}

void Tidiness::grow_clear() {
  const double width = design_.canvas.width, height = design_.canvas.height;
  const std::vector<Sides> all = taken();
  const Sides largest = largest_empty_rectangle(width, height, all);
  const auto common = [](const Sides& a, const Sides& b) {
    return std::max(0.0, std::min(a.right, b.right) - std::max(a.left, b.left)) *
           std::max(0.0, std::min(a.high, b.high) - std::max(a.low, b.low));
  };
  const double across = kGrowth * (largest.right - largest.left), up = kGrowth * (largest.high - largest.low);
  double fewest = std::numeric_limits<double>::infinity();
  clear_ = largest;
  for (int side = 0; side < 4; ++side) {
    Sides longer = largest;
    if (side == 0) longer.left = std::max(0.0, longer.left - across);
    if (side == 1) longer.right = std::min(width, longer.right + across);
    if (side == 2) longer.low = std::max(0.0, longer.low - up);
    if (side == 3) longer.high = std::min(height, longer.high + up);
    double in_way = 0;
    for (const Sides& one : all) in_way += common(one, longer);
    const double gained = common(longer, longer) - common(largest, largest);
    if (gained > 0 && in_way / gained < fewest) {
      fewest = in_way / gained;
      clear_ = longer;
    }
  }
  clear();
}

void Tidiness::clear() {
  for (auto* far : {&x_, &y_}) far->assign(macros_.size(), std::numeric_limits<float>::infinity());
  for (auto* half : {&half_width_, &half_height_}) half->assign(macros_.size(), 0.0F);
  is_near_.assign(macros_.size(), 0);
  counters_.assign(macros_.size(), {});
  sums_ = {};
  begin();
}

void Tidiness::begin() {
  old_sums_ = sums_;
  old_macros_.clear();
  old_counters_.clear();
}

void Tidiness::take_back() {
  sums_ = old_sums_;
  for (auto old = old_macros_.rbegin(); old != old_macros_.rend(); ++old) put(old->first, old->second);
  for (auto old = old_counters_.rbegin(); old != old_counters_.rend(); ++old) *old->first = old->second;
  begin();
}

void Tidiness::put(int index, const Macro& macro) {
  macros_[index] = macro;
  x_[index] = static_cast<float>(macro.x);
  y_[index] = static_cast<float>(macro.y);
  half_width_[index] = static_cast<float>(macro.half_width);
  half_height_[index] = static_cast<float>(macro.half_height);
}

void Tidiness::add(int node, double x, double y, std::int8_t orientation) {
  const int index = index_of_[node];
  if (index < 0) return;
  Macro macro = {x, y, design_.width_of(node, orientation) / 2, design_.height_of(node, orientation) / 2,
                 at_least(design_.constraints.halo_of(node, orientation), design_.spacing / 2), bank_[index], size_[index],
                 orientation, own_side_[index]};
  if (macro.side >= 0) {
    const auto& turn = kTurn[orientation];
    const double dx = macro.side == 0 ? -1 : macro.side == 1 ? 1 : 0, dy = macro.side == 2 ? -1 : macro.side == 3 ? 1 : 0;
    const double to_x = turn[0] * dx + turn[1] * dy, to_y = turn[2] * dx + turn[3] * dy;
    macro.side = static_cast<std::int8_t>(to_x < -0.5 ? 0 : to_x > 0.5 ? 1 : to_y < -0.5 ? 2 : 3);
  }
  put(index, macro);
  count_alone(index, 1);
  count_with_others(index, 1);
}

void Tidiness::move(int node, double x, double y, std::int8_t orientation) {
  const int index = index_of_[node];
  if (index < 0) return;
  old_macros_.emplace_back(index, macros_[index]);
  count_alone(index, -1);
  count_with_others(index, -1);
  add(node, x, y, orientation);
}

void Tidiness::count_with_others(int index, int sign) {
  const Macro& macro = macros_[index];
  const int count = static_cast<int>(macros_.size());
  const float x = x_[index], y = y_[index];
  const float reach_x = half_width_[index] + near_, reach_y = half_height_[index] + near_;
  for (int other = 0; other < count; ++other) {
    is_near_[other] = (std::abs(x - x_[other]) < reach_x + half_width_[other]) &
                      (std::abs(y - y_[other]) < reach_y + half_height_[other]);
  }
  for (int other = 0; other < count; ++other) {
    if (is_near_[other] == 0 || other == index) continue;
    const Macro& at = macros_[other];
    const double across = std::abs(macro.x - at.x) - (macro.half_width + at.half_width);
    const double up = std::abs(macro.y - at.y) - (macro.half_height + at.half_height);
    const double beyond_x = across - (macro.x <= at.x ? halos_across(macro.halo, at.halo) : halos_across(at.halo, macro.halo));
    const double beyond_y = up - (macro.y <= at.y ? halos_up(macro.halo, at.halo) : halos_up(at.halo, macro.halo));
    if (up < -kLengthTolerance && across >= -kLengthTolerance && beyond_x < channel_) {
      count_pair(index, other, true, beyond_x, -up, sign);
    } else if (across < -kLengthTolerance && up >= -kLengthTolerance && beyond_y < channel_) {
      count_pair(index, other, false, beyond_y, -across, sign);
    }
  }
}

// `across`: side by side; `gap`: in excess of their halos and the spacing; `shared`: overlap of the facing sides. µm.
void Tidiness::count_pair(int a, int b, bool across, double gap, double shared, int sign) {
  const Macro &one = macros_[a], &two = macros_[b];
  const double at_one = across ? one.y : one.x, at_two = across ? two.y : two.x;
  const double half_one = across ? one.half_height : one.half_width, half_two = across ? two.half_height : two.half_width;
  const double shorter = 2 * std::min(half_one, half_two), common = std::min(1.0, shared / shorter);
  sums_.notches += sign * quanta(common * notch(gap, channel_));
  const double low = std::abs((at_one - half_one) - (at_two - half_two));
  const double high = std::abs((at_one + half_one) - (at_two + half_two));
  const double step = std::min(low, high);
  if (step <= tolerance_) {
    change(counters_[a].aligned, sign, sums_.aligned);
    change(counters_[b].aligned, sign, sums_.aligned);
  }
  sums_.steps += sign * quanta(std::min(1.0, step / channel_));
  if (one.bank >= 0 && one.bank == two.bank) {
    change(counters_[a].grouped, sign, sums_.grouped);
    change(counters_[b].grouped, sign, sums_.grouped);
  }
  if (one.size == two.size) {
    sums_.alike += sign;
    sums_.turned += sign * (one.orientation != two.orientation);
  }
  if (common > kCovers) {
    const bool after = across ? two.x > one.x : two.y > one.y;
    const int first = across ? 0 : 2, side_one = first + after, side_two = first + !after;
    if (one.side == side_one) change(counters_[a].facing, sign, sums_.facing);
    if (two.side == side_two) change(counters_[b].facing, sign, sums_.facing);
  }
}

void Tidiness::count_alone(int index, int sign) {
  const Macro& macro = macros_[index];
  const double width = design_.canvas.width, height = design_.canvas.height;
  const double to[4] = {macro.x - macro.half_width, width - macro.x - macro.half_width,
                        macro.y - macro.half_height, height - macro.y - macro.half_height};
  const Halo& halo = macro.halo;
  const double kept[4] = {halo.left(), halo.right(), halo.low(), halo.high()};
  for (int side = 0; side < 4; ++side) {
    const double beyond = to[side] - kept[side];
    sums_.notches += sign * quanta(notch(beyond, channel_));
    if (macro.side == side && beyond < channel_) change(counters_[index].facing, sign, sums_.facing);
  }
  const double nearest = std::max(0.0, std::min({to[0], to[1], to[2], to[3]}));
  sums_.inward += sign * quanta(nearest / (std::min(width, height) / 2));
  const double half_width = macro.half_width + halo.x, half_height = macro.half_height + halo.y;
  const double x = macro.x + halo.shift_x, y = macro.y + halo.shift_y;
  const double in_x = std::min(x + half_width, clear_.right) - std::max(x - half_width, clear_.left);
  const double in_y = std::min(y + half_height, clear_.high) - std::max(y - half_height, clear_.low);
  if (in_x > 0 && in_y > 0) sums_.in_clear += sign * quanta(std::min(in_x / (2 * half_width), in_y / (2 * half_height)));
  const auto near = [&](int side) { return to[side] < channel_; };
  sums_.corners += sign * ((near(0) || near(1)) && (near(2) || near(3)));
}

double Tidiness::covered(int node, int side) const {
  const int index = index_of_[node];
  const Macro& macro = macros_[index];
  const bool across = side < 2, after = side % 2 != 0;
  const double at = across ? macro.x : macro.y, half = across ? macro.half_width : macro.half_height;
  const double aside = across ? macro.y : macro.x, half_aside = across ? macro.half_height : macro.half_width;
  const double extent = across ? design_.canvas.width : design_.canvas.height;
  const Halo& halo = macro.halo;
  const double kept[4] = {halo.left(), halo.right(), halo.low(), halo.high()};
  double most = channel_ + kept[side] - ((after ? extent - at : at) - half);
  for (std::size_t other = 0; other < macros_.size(); ++other) {
    const Macro& two = macros_[other];
    const double half_two = across ? two.half_height : two.half_width;
    const double shared = half_aside + half_two - std::abs(aside - (across ? two.y : two.x));
    const double ahead = (across ? two.x : two.y) - at;
    if (shared <= 2 * kCovers * std::min(half_aside, half_two) || (after ? ahead <= 0 : ahead >= 0)) continue;
    const double gap = std::abs(ahead) - half - (across ? two.half_width : two.half_height);
    const Halo &first = after ? halo : two.halo, &second = after ? two.halo : halo;
    most = std::max(most, channel_ + (across ? halos_across(first, second) : halos_up(first, second)) - gap);
  }
  return std::max(0.0, most);
}

double Tidiness::cost() const {
  if (macros_.empty()) return 0;
  const auto count = static_cast<std::int64_t>(macros_.size());
  const double lengths = kNotch * static_cast<double>(sums_.notches) + kStep * static_cast<double>(sums_.steps) +
                         kInward * static_cast<double>(sums_.inward) + kInClear * static_cast<double>(sums_.in_clear);
  return (lengths / kQuantum + static_cast<double>(count - sums_.aligned) + kUngrouped * static_cast<double>(banked_ - sums_.grouped) +
          kTurned * static_cast<double>(sums_.turned) + kFacing * static_cast<double>(sums_.facing) +
          kCorner * static_cast<double>(sums_.corners)) /
         static_cast<double>(count);
}

TidinessCounts Tidiness::counts() const {
  TidinessCounts counts;
  counts.macros = static_cast<int>(macros_.size());
  counts.aligned = static_cast<int>(sums_.aligned);
  counts.banked = banked_;
  counts.grouped = static_cast<int>(sums_.grouped);
  counts.alike = sums_.alike;
  counts.turned = sums_.turned;
  counts.sided = sided_;
  counts.facing = static_cast<int>(sums_.facing);
  counts.corners = static_cast<int>(sums_.corners);
  counts.notches = static_cast<double>(sums_.notches) / kQuantum;
  return counts;
}

}  // namespace placement
