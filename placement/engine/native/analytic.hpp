// Soft macros by coordinate descent on the proxy cost itself, from the quadratic wirelength optimum.
//
// Sweep after sweep, each soft macro goes to the gcell of least cost for it while all others stand. Its cost in every
// gcell of a window comes at once: its wirelength is a sum of a function of the column and one of the row; its routes
// run straight, so that with priced gcells (PriceMaps) their cost is a difference of running sums; density is a look-up.
// Early sweeps price softly, which spreads the macros as a smooth density penalty does; late ones price nearly exactly.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "analytic_maps.hpp"
#include "analytic_start.hpp"
#include "compact_nets.hpp"
#include "cost.hpp"
#include "soft_placer.hpp"

namespace placement {

struct AnalyticOptions {
  int start_iterations = 10;  // of the quadratic start
  int sweeps = 16;
  Softness first = {2.0F, 0.09F, 1.7F, 1.1F}, last = {0.01F, 0.045F, 0.7F, 1.0F};  // geometric between
  int moves_per_pricing = 32;      // prices are brought up to date after so many moves
  int moves_per_threshold = 128;
  Weights weights;
};

class Analytic : public SoftPlacer {
 public:
  explicit Analytic(std::shared_ptr<const Design> design, AnalyticOptions options = {});
  void place(double* x, double* y, const std::int8_t* orientation) override;

 private:
  static constexpr int kWindow = 32;  // columns and rows, at most, that a soft macro looks at

  struct Spot {
    float x = 0, y = 0;  // µm
    std::int16_t column = 0, row = 0;
    std::int32_t cell = 0;
  };
  // A net as one of its soft macros sees it.
  struct Incidence {
    std::int32_t others_start, others_end;  // its other points; the driver first if that is another node's
    std::int32_t own;                       // a point of the soft macro's own: the driver if it drives
    bool drives;
    float wire_price;    // proxy cost per µm
    float route_weight;  // tracks
    float low_dx, high_dx, low_dy, high_dy;  // µm, own pins' offsets
  };
  struct Box {  // of a movable soft macro
    float width = 0, height = 0;  // µm
    float low_x = 0, high_x = 0, low_y = 0, high_y = 0;  // µm, the centre's range
    int first_column = 0, last_column = 0, first_row = 0, last_row = 0;  // gcells that the centre can be in
    bool one_cell = true;  // its area falls in the gcell of its centre, standing in its middle
  };
  struct Window {
    int column, row, columns, rows;
    int lanes, row_lanes;  // columns and rows, rounded up to whole lanes
    alignas(32) float x[kWindow], y[kWindow];            // µm, the centre in each column and row
    alignas(32) float by_column[kWindow], by_row[kWindow];
    alignas(32) float total[kWindow][kWindow];           // proxy cost, [row][column]
  };

  void build_incidences();
  void set_box(int soft, const std::int8_t* orientation);
  void set_points(int node, const double* x, const double* y, const std::int8_t* orientation);
  void stand(int soft, float x, float y);
  bool improve(int soft);
  void open_window(int soft);
  void price_nets(int soft);
  void price_horizontal();
  void price_vertical();
  void price_density(int soft);
  void add_density(int soft, float sign);
  void add_routes(int soft, float sign);

  std::shared_ptr<const Design> design_;
  AnalyticOptions options_;
  CompactNets nets_;
  CostEvaluator evaluator_;
  PriceMaps maps_;
  QuadraticStart start_;
  Softness softness_;

  std::vector<std::int32_t> soft_of_;          // [N] movable soft macro, -1 if none
  std::vector<std::int32_t> incidence_start_;  // [S+1]
  std::vector<Incidence> incidences_;
  std::vector<std::int32_t> others_;           // points
  std::vector<Spot> spots_;                    // [points]
  std::vector<Box> boxes_;                     // [S]
  std::vector<float> x_, y_;                   // [S] µm
  std::vector<std::int32_t> stamp_;            // [R·C] last net visit that met the gcell
  std::int32_t visit_ = 0;
  std::vector<float> sinks_in_column_, drivers_in_row_;  // [C], [R] tracks
  float sinks_weight_ = 0, drivers_weight_ = 0;
  std::vector<float> cover_x_, cover_y_;       // [C], [R] share of a gcell
  std::vector<double> best_x_, best_y_;
  Window window_;
};

}  // namespace placement
