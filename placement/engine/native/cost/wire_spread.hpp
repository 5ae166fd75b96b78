// Wire of nets, spread evenly over the gcells of their bounding boxes (Spindler, Johannes: "Fast and accurate routing
// demand estimation", DATE 2007), and its excess over the tracks that macros leave. Stored as differences at the boxes'
// corners, in rounded numbers, so that removing a net is exact.
#pragma once

#include <cstdint>
#include <vector>

#include "common/design.hpp"
#include "cost/compact_nets.hpp"
#include "cost/pair.hpp"

namespace placement {

// Share of the tracks for wires between clusters; the rest is for wires within clusters, power and pins.
inline constexpr double kUsableTracks = 0.7;

// The box around a net's points, µm.
struct NetBox {
  Pair low, high;
  Pair size() const { return high - low; }
};

// A net's bounding box and its wire in each gcell of the box.
struct NetSpread {
  double width = 0, height = 0;     // µm, of the box
  double across = 0, up = 0;        // µm of wire in each gcell, rounded
  std::int32_t corners[4] = {0, 0, 0, 0};  // indices in the difference map: low, right, top, high
};

// Box of `count` points; kPoints 0: any number.
template <int kPoints = 0>
inline NetBox box_of(const PointPlace* places, const std::int32_t* points, int count) {
  if (kPoints > 0) count = kPoints;
  Pair low = Pair::load(&places[points[0]].x), high = low;
#pragma GCC unroll 8
  for (int i = 1; i < count; ++i) {
    const Pair at = Pair::load(&places[points[i]].x);
    low = least(low, at);
    high = largest(high, at);
  }
  return {low, high};
}

class WireSpread {
 public:
  WireSpread(const Canvas& canvas, const CompactNets& nets);

  NetSpread spread(const CompactNets& nets, int net, const PointPlace* places) const {
    return spread(net, box_of(places, nets.net_points.data() + nets.net_start[net], nets.size(net)));
  }
  NetSpread spread(int net, const NetBox& box) const;
  void clear();
  // Adds (sign 1) or removes (sign −1) a net.
  void add(const NetSpread& net, double sign) {
    const Pair wire = Pair::of(sign * net.across, sign * net.up), none = Pair::of(0.0, 0.0);
    change(net.corners[0], wire);
    change(net.corners[1], none - wire);
    change(net.corners[2], none - wire);
    change(net.corners[3], wire);
  }
  // Adds (sign 1) or removes (sign −1) a hard macro of `width` × `height` µm centred at x, y, which blocks tracks.
  void block(double x, double y, double width, double height, double sign);
  // Wire beyond the usable tracks in both directions, µm.
  double excess();

  // Wire beyond the usable tracks of each gcell, µm; negative where tracks are free: horizontal [C, R], vertical [R,
  // C].
  void write_beyond(double* horizontal, double* vertical);

  // Renews and returns a lower bound of the excess that is linear in the changes: the usage less the tracks, positive
  // or negative, of the gcells that are full now. At this point it equals the excess.
  double renew_floor();
  // Whether any gcell was full then; otherwise the bound remains 0.
  bool has_full() const { return has_full_; }
  // Rise of the bound with a net's wire, µm.
  double floor_of(const NetSpread& net) const {
    const auto at = [&](int corner) { return Pair::load(full_.data() + 2 * net.corners[corner]); };
    return (((at(3) - at(2)) - (at(1) - at(0))) * Pair::of(net.across, net.up)).sum();
  }
  // Rise of the bound by block() since the last call.
  double take_blocked() {
    const double sum = blocked_more_;
    blocked_more_ = 0;
    return sum;
  }

 private:
  template <typename Visit>
  void visit_beyond(const Visit& visit);
  void change(std::int32_t corner, Pair wire) {
    double* at = changes_.data() + 2 * corner;
    (Pair::load(at) + wire).store(at);
  }

  int columns_, rows_;
  double cell_size_[2], last_cell_[2];
  double tracks_[2], blocked_[2];   // µm of wire that fit in a gcell, horizontally and vertically; less under macros
  Rounder rounder_, share_rounder_;
  std::vector<double> tree_;      // [M] weight · tree length over half perimeter
  std::vector<double> shut_;      // [R, C, 2] share of a gcell's tracks that hard macros block, horizontal and vertical
  std::vector<double> left_;      // the same, µm of wire that fit beside them
  std::vector<double> changes_;   // [R+1, C+1, 2] horizontal and vertical
  std::vector<double> running_;   // [C, 2]
  std::vector<double> full_;      // [R+1, C+1, 2] number of full gcells in the rows and columns below
  bool has_full_ = false;
  double blocked_more_ = 0;
};

}  // namespace placement
