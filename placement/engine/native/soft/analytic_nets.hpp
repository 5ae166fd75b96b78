// The nets as seen from the soft macros, and the current positions of their points. Axis legend: N nodes, S movable
// soft macros, Q points (see CompactNets).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "soft/analytic_maps.hpp"
#include "cost/compact_nets.hpp"
#include "common/design.hpp"

namespace placement {

class SoftNets {
 public:
  struct Spot {
    float x = 0, y = 0;  // µm
    std::int16_t column = 0, row = 0;
    std::int32_t cell = 0;
  };
  // A net of a soft macro.
  struct Incidence {
    std::int32_t others_start = 0, others_end = 0;  // its points on other nodes; the driver first if it is one of them
    std::int32_t own = -1;                          // a point of the soft macro itself: the driver if it drives
    bool drives = false;
    float wire_price = 0;    // proxy cost per µm
    float route_weight = 0;  // tracks
    float low_dx = 0, high_dx = 0, low_dy = 0, high_dy = 0;  // µm, own points' offsets
  };
  struct Extent {
    float left, right, low, high;  // µm
  };

  // `soft` [S]: the nodes of the movable soft macros. Nets of more than 256 points, whose work would grow
  // quadratically, are omitted and pull no macro.
  SoftNets(std::shared_ptr<const Design> design, std::vector<std::int32_t> soft, double wirelength_weight);

  int count() const { return static_cast<int>(soft_.size()); }
  const Incidence* begin(int soft) const { return incidences_.data() + start_[soft]; }
  const Incidence* end(int soft) const { return incidences_.data() + start_[soft + 1]; }
  const Spot& other(int k) const { return spots_[others_[k]]; }

  // Reads the positions of the other nodes: x, y [N] µm.
  void set_fixed(const double* x, const double* y, const std::int8_t* orientation);
  // Puts a soft macro's centre at (x, y) µm.
  void place(int soft, float x, float y);
  // Places a node that is not a movable soft macro.
  void place_node(int node, double x, double y, std::int8_t orientation);
  // Like place(), and moves its routes in `maps`. A net is routed as a star from its driver.
  void move(int soft, float x, float y, PriceMaps& maps);
  // Bounding box of a net's other points.
  Extent extent(const Incidence& net) const;

  // For visiting each gcell once: true on the first visit to `cell` since new_visit().
  void new_visit() { ++visit_; }
  bool first_visit(std::int32_t cell) {
    const bool first = stamp_[cell] != visit_;
    stamp_[cell] = visit_;
    return first;
  }

 private:
  void collect(int soft, const std::vector<std::int32_t>& nets, double wirelength_weight);
  Spot spot_at(double x, double y) const;
  void reroute(const Incidence& net, const Spot& before, const Spot& after, PriceMaps& maps);

  std::shared_ptr<const Design> design_;
  std::shared_ptr<const CompactNets> nets_;
  std::vector<std::int32_t> soft_;         // [S]
  std::vector<std::int32_t> fixed_;     // the other nodes
  std::vector<std::int32_t> start_;        // [S+1]
  std::vector<Incidence> incidences_;
  std::vector<std::int32_t> others_;       // points
  std::vector<Spot> spots_, before_;       // [Q]; of the moving macro, before its move
  std::vector<std::uint64_t> stamp_;       // [R·C] last visit
  std::uint64_t visit_ = 0;
};

inline SoftNets::Extent SoftNets::extent(const Incidence& net) const {
  // x and y at once; the other lanes are unused.
  typedef float Four __attribute__((vector_size(16)));
  static_assert(sizeof(Spot) == sizeof(Four) && offsetof(Spot, x) == 0 && offsetof(Spot, y) == sizeof(float));
  const auto at = [&](int k) {
    Four four;
    std::memcpy(&four, &other(k), sizeof four);
    return four;
  };
  Four low = at(net.others_start), high = low;
  for (int k = net.others_start + 1; k < net.others_end; ++k) {
    const Four here = at(k);
    low = here < low ? here : low;
    high = here > high ? here : high;
  }
  return {low[0], high[0], low[1], high[1]};
}

}  // namespace placement
