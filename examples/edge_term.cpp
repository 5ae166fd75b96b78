// A cost term: the mean distance of the hard macros from the nearest canvas edge, over half the canvas's shorter side.
//     g++ -std=c++17 -O2 -shared -fPIC -I"$(python -m placement.engine.cost_terms)" edge_term.cpp -o edge_term.so
#include <algorithm>
#include <vector>

#include "placement_cost_term.hpp"

class EdgeDistance : public placement_term::CostTerm {
 public:
  explicit EdgeDistance(const placement_design& design) : design_(design) {
    for (int node = 0; node < design.nodes; ++node) {
      if (design.kind[node] == 0) macros_.push_back(node);
    }
  }

  double operator()(const double* x, const double* y, const std::int8_t* orientation) override {
    const double width = design_.canvas_width, height = design_.canvas_height;
    double sum = 0;
    for (const int node : macros_) {
      const bool turned = orientation[node] >= 4;
      const double half_width = (turned ? design_.node_height : design_.node_width)[node] / 2;
      const double half_height = (turned ? design_.node_width : design_.node_height)[node] / 2;
      sum += std::max(0.0, std::min({x[node] - half_width, width - x[node] - half_width,  //
                                     y[node] - half_height, height - y[node] - half_height}));
    }
    return macros_.empty() ? 0.0 : sum / macros_.size() / (std::min(width, height) / 2);
  }

 private:
  const placement_design design_;
  std::vector<int> macros_;
};

PLACEMENT_COST_TERM(EdgeDistance, "edge distance")
