// Soft macros by force-directed placement in Circuit Training's published form: springs along nets, repulsion between
// overlapping nodes, stages of steps with their own factors, and a cap on how far a node moves in a step.
//
// Tuned where the published text is silent or placed worse (measured on Ariane with legalized.plc's hard macros, whose
// proxy cost this took from 0.936 to 0.845): forces are scaled so that a multiple of their mean, not their largest,
// makes the step's full distance, and each node is capped by itself; hard macros push soft ones out by the shortest way,
// not away from their centre, and more strongly than soft macros do. Stages, factors and step counts are as published.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "lanes.hpp"
#include "soft_placer.hpp"
#include "soft_springs.hpp"

namespace placement {

struct ForceStage {
  int steps = 100;
  double attraction = 0;      // of a spring, per µm and weight
  double repulsion = 0;       // between two overlapping nodes
  double move_distance = 1;   // a step moves a node by at most this times the canvas side over `steps`, per axis
};

struct ForceSchedule {
  double io_factor = 1;          // of springs that end in a port
  double standing_strength = 2.5;  // of a hard macro's push, of which a soft macro's is 1
  double typical_force = 2;      // times the mean force on an axis moves a node by the whole distance
  std::vector<ForceStage> stages = {{100, 1e2, 0, 1}, {100, 1e-3, 1e6, 1}, {100, 1e-5, 1e7, 1}};
};

class ForceDirected : public SoftPlacer {
 public:
  explicit ForceDirected(std::shared_ptr<const Design> design, ForceSchedule schedule = {});
  void place(double* x, double* y, const std::int8_t* orientation) override;

 private:
  // Rectangles that push: standing macros, and the soft macros sorted by bin. Half sizes in µm.
  struct Boxes {
    std::vector<float> x, y, half_width, half_height;
    void resize(std::size_t count);
  };
  void prepare(const double* x, const double* y, const std::int8_t* orientation);
  void bin_standing();
  void bin_soft();
  void attract(float factor);
  void repel(float factor);
  struct Place {
    Lanes x, y, half_width, half_height;
  };
  struct Push {
    Lanes x, y;
  };
  void push_soft(const Place& place, int first, int last, Push& push) const;
  void push_standing(const Place& place, int first, int last, Push& push) const;
  void move(const ForceStage& stage);

  std::shared_ptr<const Design> design_;
  ForceSchedule schedule_;
  SoftSprings springs_;
  std::vector<std::int32_t> standing_nodes_;  // hard macros and fixed soft macros

  int bin_columns_ = 1, bin_rows_ = 1;
  float bin_width_ = 1, bin_height_ = 1;
  Boxes soft_, sorted_, standing_, standing_sorted_;
  std::vector<std::int32_t> bin_of_, bin_start_, bin_next_, standing_bin_start_;
  std::vector<std::pair<float, float>> jitter_;  // [S] µm, gives nodes at one point a direction to leave in
  struct Centre {
    float x, y;
  };
  std::vector<Centre> centres_;  // [S] µm
  std::vector<float> pull_x_, pull_y_, force_x_, force_y_, low_x_, high_x_, low_y_, high_y_;
};

}  // namespace placement
