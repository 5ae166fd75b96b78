// Soft macros by force-directed placement in Circuit Training's published form: springs along nets, repulsion between
// overlapping nodes, stages of steps with their own factors, and a cap on how far a node moves in a step.
//
// As published: three stages of 100 steps, springs of weight × distance along driver-sink connections, an io factor of
// 1, repulsion factors 0, 1e6, 1e7, hard macros fixed, soft macros kept inside the canvas. As published entirely, it
// placed the soft macros of Ariane's legalized.plc for a proxy cost of 0.936 (the public force-directed placer: 0.849;
// this one: 0.83) and on random placements of the hard macros for 1.126 (0.99). What was changed for that:
// - attraction is 1e2 in all stages instead of 1e2, 1e-3, 1e-5: springs still count while nodes repel each other;
// - the move distance factors are 1, 2, 2 instead of 1, 1, 1;
// - three times the mean force on an axis, not the largest, makes a step's full distance; nodes are capped one by one;
// - fixed macros push towards the nearest free point (NearestFree), not away from the centre of each;
// - a push's length is measured as |dx| + |dy|, which needs no square root.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "common/design.hpp"
#include "common/lanes.hpp"
#include "soft/soft_placer.hpp"
#include "soft/soft_springs.hpp"

namespace placement {

// Direction from any point of the canvas to the nearest point that no fixed macro covers.

class NearestFree {
 public:
  struct Rectangle {
    float left, right, low, high;  // µm
  };
  struct Direction {
    float x = 0, y = 0;  // |x| + |y| = 1, or 0 where the point is free
  };

  explicit NearestFree(const Canvas& canvas);

  // Builds the field for the fixed macros' rectangles. Owns its workspace.
  void build(const std::vector<Rectangle>& fixed);

  Direction at(float x, float y) const {
    const int cell = index(x, width_) + kCells * index(y, height_);
    return directions_[cell];
  }

 private:
  static constexpr int kCells = 64;  // across the canvas, and up

  static int index(float at, float size) {
    const int cell = static_cast<int>(at / size);
    return cell < 0 ? 0 : cell < kCells ? cell : kCells - 1;
  }
  float distance(int from, int to) const;
  void offer(int cell, int row, int column);
  void find_nearest();

  float width_, height_;               // µm of a cell
  std::vector<std::int32_t> nearest_;  // the nearest free cell, -1 if none is known
  std::vector<Direction> directions_;
};

struct ForceStage {
  int steps = 100;
  double attraction = 0;      // of a spring, per µm and weight
  double repulsion = 0;       // between two overlapping nodes
  double move_distance = 1;   // a step moves a node by at most this times the canvas side over `steps`, per axis
};

struct ForceSchedule {
  double io_factor = 1;          // of springs that end in a port
  double fixed_strength = 1;  // of the fixed macros' push; a soft macro's is 1
  double typical_force = 3;      // times the mean force on an axis moves a node by the whole distance
  std::vector<ForceStage> stages = {{100, 1e2, 0, 1}, {100, 1e2, 1e6, 2}, {100, 1e2, 1e7, 2}};
};

class ForceDirected : public SoftPlacer {
 public:
  explicit ForceDirected(std::shared_ptr<const Design> design, ForceSchedule schedule = {});
  void place(double* x, double* y, const std::int8_t* orientation) override;

 private:
  // µm; half sizes.
  struct Boxes {
    std::vector<float> x, y, half_width, half_height;
    void resize(std::size_t count);
  };
  void prepare(const double* x, const double* y, const std::int8_t* orientation);
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
  void move(const ForceStage& stage);

  std::shared_ptr<const Design> design_;
  ForceSchedule schedule_;
  std::shared_ptr<const SoftSprings> springs_;
  NearestFree nearest_free_;
  std::vector<std::int32_t> fixed_nodes_;      // hard macros and fixed soft macros
  std::vector<NearestFree::Rectangle> fixed_;       // with a margin of about half a soft macro around

  int bin_columns_ = 1, bin_rows_ = 1;
  float bin_width_ = 1, bin_height_ = 1;
  Boxes soft_, sorted_;
  std::vector<std::int32_t> bin_of_, bin_start_, bin_next_;
  std::vector<std::int32_t> sorted_index_;  // [S] movable soft macro at that place of `sorted_`
  std::vector<std::pair<float, float>> jitter_;  // [S] µm, separates nodes at one point
  struct Centre {
    float x, y;
  };
  std::vector<Centre> centres_;  // [S] µm
  std::vector<float> pull_x_, pull_y_, force_x_, force_y_, low_x_, high_x_, low_y_, high_y_;
};

}  // namespace placement
