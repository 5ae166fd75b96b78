// Cost of moving a soft macro to the middle of each gcell of a window while nothing else moves.
#pragma once

#include <memory>
#include <vector>

#include "soft/analytic_maps.hpp"
#include "soft/analytic_nets.hpp"
#include "common/design.hpp"
#include "common/lanes.hpp"

namespace placement {

// A movable soft macro's rectangle and the range of its centre, µm.
struct SoftBox {
  float width = 0, height = 0;
  float low_x = 0, high_x = 0, low_y = 0, high_y = 0;
  int first_column = 0, last_column = 0, first_row = 0, last_row = 0;  // gcells that the centre can be in
  float x = 0, y = 0;  // the centre

  SoftBox() = default;
  SoftBox(const Canvas& canvas, double box_width, double box_height);
  float clamp_x(float at) const { return at < low_x ? low_x : at > high_x ? high_x : at; }
  float clamp_y(float at) const { return at < low_y ? low_y : at > high_y ? high_y : at; }
  // Adds (sign 1) or removes (−1) its area.
  void add_density(const Canvas& canvas, PriceMaps& maps, float sign) const;
};

class PricedWindow {
 public:
  static constexpr int kMost = 32;  // columns and rows
  struct Gcell {
    int column = 0, row = 0;
    float gain = 0;  // decrease of the proxy cost by moving there
  };

  explicit PricedWindow(std::shared_ptr<const Design> design);

  // Limits later windows to this many columns and rows, 1 to kMost.
  void narrow(int most) { most_ = most; }

  // Prices every gcell of the window around a soft macro whose own area is not in `maps`; valid until the next call.
  void price(int soft, const SoftBox& box, SoftNets& nets, const PriceMaps& maps, const Softness& softness);
  int first_column() const { return column_; }
  int first_row() const { return row_; }
  int columns() const { return columns_; }
  int rows() const { return rows_; }
  // Proxy cost in the window's columns of one of its rows, up to a constant.
  const float* prices(int row) const { return total_[row]; }

  // The best gcell for a soft macro whose own area is not in `maps`.
  Gcell best(int soft, const SoftBox& box, SoftNets& nets, const PriceMaps& maps, const Softness& softness);

 private:
  void lay(const SoftBox& box);
  void price_nets(int soft, SoftNets& nets, const PriceMaps& maps);
  template <int kColumns, int kRows>
  void price_nets_in(int soft, SoftNets& nets, const PriceMaps& maps);
  void price_rows(const PriceMaps& maps);
  void price_columns(const PriceMaps& maps);
  void price_density(const SoftBox& box, const PriceMaps& maps, const Softness& softness);
  void add_density(int row_shift, int column_shift, float share, const PriceMaps& maps, const Softness& softness);
  Gcell cheapest(const SoftBox& box) const;

  std::shared_ptr<const Design> design_;
  std::vector<float> sinks_in_column_, drivers_in_row_;  // [C], [R] tracks
  float sinks_weight_ = 0, drivers_weight_ = 0;
  int most_ = kMost;
  int column_ = 0, row_ = 0, columns_ = 0, rows_ = 0;  // the window
  int lanes_ = 0, row_lanes_ = 0;                      // columns and rows, rounded up to whole lanes
  alignas(32) float x_[kMost] = {}, y_[kMost] = {};    // µm, centre in each column and row
  alignas(32) float by_column_[kMost] = {}, by_row_[kMost] = {};  // proxy cost
  alignas(32) float total_[kMost][kMost] = {};         // proxy cost, [row][column]
  alignas(32) float turned_[kMost][kMost] = {};        // partial sums, [column][row]
};

}  // namespace placement
