// Inner loops of the electrostatic placer.
#pragma once
#include <cstdint>
#include <vector>

namespace placement::flat {

// Rectangles on a grid of bins: their area per bin, and the mean of maps under them. Axis legend: N rectangles, X bins
// across, Y bins up. Lengths are in bins.

struct Rectangles {
  std::int64_t count;          // N
  const float* x;              // [N], centres, in bins
  const float* y;              // [N]
  const float* half_width;     // [N]
  const float* half_height;    // [N]
};

// At least three bins across and four up.
struct Bins {
  std::int64_t across, up;
};

// map [X, Y] += charge [N] per rectangle, distributed over the bins in proportion to its area in each. Area outside the
// grid is ignored.
void spread(const Rectangles& rectangles, const float* charge, const Bins& bins, float* map);

// mean_x, mean_y [N]: the maps' [X, Y] means under each rectangle, times its charge.
void gather(const Rectangles& rectangles, const float* charge, const Bins& bins, const float* map_x, const float* map_y,
            float* mean_x, float* mean_y);

// Weighted-average wirelength and its gradient (Hsu, Chang, Balabanov: "TSV-aware analytical placement for 3D IC
// designs", 2011), for all nets at once. Axis legend: N nodes, E nets, L net-pin incidences.
class Wirelength {
 public:
  // net_start [E+1]; pin_node [L], in [0, N], where N is the origin: a fixed pin's offset is its position. pin_x, pin_y
  // [L], offsets, µm; net_weight [E].
  Wirelength(std::int64_t nodes, std::int64_t nets, const std::int32_t* net_start, const std::int32_t* pin_node,
             const float* pin_x, const float* pin_y, const float* net_weight);

  std::int64_t nodes() const { return nodes_; }

  // Writes the gradient with respect to the nodes' positions x, y [N], µm, to gradient_x, gradient_y [N]. per_gamma:
  // 1/µm. Returns the weighted half-perimeter wirelength, µm.
  double gradient(const float* x, const float* y, float per_gamma, float* gradient_x, float* gradient_y) const;

 private:
  double along(int axis, const float* at, float per_gamma, float* gradient) const;

  // Nets of one size, interleaved: the first pins of all lanes precede the second ones.
  struct NetBlock {
    std::int64_t pins, lanes;
  };
  std::int64_t nodes_, most_pins_ = 0;
  std::vector<NetBlock> blocks_;
  std::vector<std::int32_t> node_;
  std::vector<float> offset_[2], weight_;
};

// Nesterov's method per coordinate, on arrays of `count` numbers.

struct Iterate {
  const float *major, *reference;
};

struct NewIterate {
  float *major, *reference;
};

// One step of length `step` against the gradient at `from.reference`, with `carry` of it as momentum; coordinates are
// clamped to [low, high]. Returns the product of the gradient and the move of `major`.
double nesterov_step(std::int64_t count, const Iterate& from, const float* gradient, const float* low,
                     const float* high, float step, float carry, const NewIterate& to);

// gradient = (wirelength + weight density) / max(pins + weight area, 1).
void preconditioned(std::int64_t count, const float* wirelength, const float* density, const float* pins,
                    const float* area, float weight, float* gradient);

// Euclidean distance.
double distance(std::int64_t count, const float* a, const float* b);

}  // namespace placement::flat
