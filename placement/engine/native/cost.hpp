// The proxy cost, exactly: wirelength, density and congestion of a placement.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "compact_nets.hpp"
#include "design.hpp"

namespace placement {

struct Weights {
  double wirelength = 1.0, density = 0.5, congestion = 0.5;
};

struct Costs {
  double wirelength = 0;  // µm, weighted half-perimeter sum
  double wirelength_cost = 0, density_cost = 0, congestion_cost = 0, proxy_cost = 0;
};

// Where a point stands and the gcell it falls in.
struct PointPlace {
  double x, y;  // µm
  std::int32_t column, row, cell;
  std::int32_t unused = 0;
};

// A pure function of design, placement and weights. Owns its workspace, so one evaluator per thread; no allocation
// per call.
class CostEvaluator {
 public:
  explicit CostEvaluator(std::shared_ptr<const Design> design);

  // x, y [N] µm, orientation [N]; every node must stand somewhere (finite).
  Costs evaluate(const double* x, const double* y, const std::int8_t* orientation, const Weights& weights);

  // Maps of the last evaluation, [R, C] row by row. Density: area of macros over the gcell's area. Congestion: routing
  // demand over capacity. `horizontal_map` is kept column by column inside, so it is written to `map` on request.
  const std::vector<double>& density_map() const { return density_; }
  const double* vertical_map() const { return congestion_.data(); }
  void horizontal_map(double* map) const;

  const Design& design() const { return *design_; }

 private:
  void place_points(const double* x, const double* y, const std::int8_t* orientation);
  double route_nets();  // returns the wirelength
  void route_net(const std::int32_t* points, int count, double weight);
  void segment_horizontal(int row, int from, int to, double weight);
  void segment_vertical(int column, int from, int to, double weight);
  void route_three(double weight);
  void cover_cells(const double* x, const double* y, const std::int8_t* orientation);
  void block_routes(int first_column, int last_column, int first_row, int last_row);
  void sum_congestion();

  std::shared_ptr<const Design> design_;
  CompactNets nets_;
  Rounder wire_rounder_;
  std::vector<PointPlace> places_;            // [Q]
  std::vector<std::int32_t> stamp_;           // [R·C] last net that met the cell
  std::int32_t epoch_ = 0;
  std::vector<std::int32_t> distinct_;        // cells of the current net, the driver's first
  // Differences along the segments: horizontal [C, R] over columns, vertical [R, C] over rows.
  std::vector<double> horizontal_steps_, vertical_steps_;
  std::vector<double> horizontal_block_, vertical_block_;  // summed shares of a gcell's side that macros cover
  std::vector<double> density_;               // [R, C]
  std::vector<double> congestion_;            // vertical [R, C], then horizontal [C, R]
  std::vector<double> line_, smooth_;         // one row or column
  std::vector<double> sorted_;                // scratch of the selections
  std::vector<double> cover_x_, cover_y_;     // µm of a macro over each column, row
};

}  // namespace placement
