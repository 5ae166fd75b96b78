#include <algorithm>
#include <cstring>
#include <numeric>

#include "sums.hpp"

namespace placement::flat {
namespace {

constexpr std::int64_t kLanes = 8;  // nets of one size that are processed together
using Floats = float __attribute__((vector_size(4 * kLanes)));
using Integers = std::int32_t __attribute__((vector_size(4 * kLanes)));

inline std::int32_t whole_part(float v) { return static_cast<std::int32_t>(v); }
inline Integers whole_part(Floats v) { return __builtin_convertvector(v, Integers); }
inline float to_float(std::int32_t v) { return static_cast<float>(v); }
inline Floats to_float(Integers v) { return __builtin_convertvector(v, Floats); }

template <class V>
inline V larger(V a, V b) {
  return a > b ? a : b;
}

template <class V>
inline V smaller(V a, V b) {
  return a < b ? a : b;
}

// e^v for v in [-87, 0]: 2^round(v / ln 2) times a polynomial; relative error below 1e-6.
template <class V>
inline V exp_negative(V v) {
  v = larger(v, V{} - 87.0f);
  const auto exponent = whole_part(v * 1.44269504f - 0.5f);
  const V whole = to_float(exponent);
  const V rest = (v - whole * 0.693359375f) + whole * 2.12194440e-4f;
  V p = rest * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * rest + 8.3334519073e-3f;
  p = p * rest + 4.1665795894e-2f;
  p = p * rest + 1.6666665459e-1f;
  p = p * rest + 5.0000001201e-1f;
  p = p * rest * rest + rest + 1.0f;
  const auto bits = (exponent + 127) << 23;
  V power;
  std::memcpy(&power, &bits, sizeof power);
  return p * power;
}

// Workspace for the pins of one block along one axis.
template <class V>
struct Block {
  std::vector<V> at, up, down;

  explicit Block(std::int64_t pins) : at(pins), up(pins), down(pins) {}
};

// Adds one axis's gradient of nets of `pins` pins each, one net per lane of V, to that of their nodes; returns the
// nets' weighted extents.
template <class V>
V add_gradient(std::int64_t pins, const std::int32_t* node, const float* offset, V weight, const float* node_at,
               float per_gamma, Block<V>& block, float* gradient) {
  constexpr std::int64_t lanes = sizeof(V) / sizeof(float);
  V *at = block.at.data(), *up = block.up.data(), *down = block.down.data();
  for (std::int64_t i = 0; i < pins; ++i) {
    float there[lanes];
    for (std::int64_t k = 0; k < lanes; ++k) there[k] = node_at[node[i * lanes + k]] + offset[i * lanes + k];
    std::memcpy(at + i, there, sizeof(V));
  }
  V low = at[0], high = at[0];
  for (std::int64_t i = 1; i < pins; ++i) {
    low = smaller(low, at[i]);
    high = larger(high, at[i]);
  }
  V up_sum{}, up_moment{}, down_sum{}, down_moment{};
  for (std::int64_t i = 0; i < pins; ++i) {
    up[i] = exp_negative<V>((at[i] - high) * per_gamma);
    down[i] = exp_negative<V>((low - at[i]) * per_gamma);
    at[i] -= low;  // smaller numbers lose fewer digits below
    up_sum += up[i];
    up_moment += up[i] * at[i];
    down_sum += down[i];
    down_moment += down[i] * at[i];
  }
  const V up_mean = up_moment / up_sum, down_mean = down_moment / down_sum;
  const V per_up = weight / up_sum, per_down = weight / down_sum;
  for (std::int64_t i = 0; i < pins; ++i) {
    const V slope = up[i] * per_up * ((at[i] - up_mean) * per_gamma + 1.0f) -
                    down[i] * per_down * ((down_mean - at[i]) * per_gamma + 1.0f);
    float each[lanes];
    std::memcpy(each, &slope, sizeof(V));
    for (std::int64_t k = 0; k < lanes; ++k) gradient[node[i * lanes + k]] += each[k];
  }
  return weight * (high - low);
}

}  // namespace

Wirelength::Wirelength(std::int64_t nodes, std::int64_t nets, const std::int32_t* net_start,
                       const std::int32_t* pin_node, const float* pin_x, const float* pin_y, const float* net_weight)
    : nodes_(nodes) {
  std::vector<std::int64_t> order(nets);
  std::iota(order.begin(), order.end(), 0);
  const auto size = [&](std::int64_t e) { return net_start[e + 1] - net_start[e]; };
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return size(a) < size(b); });
  most_pins_ = nets > 0 ? size(order.back()) : 0;
  for (std::int64_t first = 0; first < nets;) {
    const std::int64_t pins = size(order[first]);
    const bool full = first + kLanes <= nets && size(order[first + kLanes - 1]) == pins;
    const std::int64_t lanes = full ? kLanes : 1;
    blocks_.push_back({pins, lanes});
    for (std::int64_t k = 0; k < lanes; ++k) weight_.push_back(net_weight[order[first + k]]);
    for (std::int64_t i = 0; i < pins; ++i) {
      for (std::int64_t k = 0; k < lanes; ++k) {
        const std::int64_t pin = net_start[order[first + k]] + i;
        node_.push_back(pin_node[pin]);
        offset_[0].push_back(pin_x[pin]);
        offset_[1].push_back(pin_y[pin]);
      }
    }
    first += lanes;
  }
}

double Wirelength::along(int axis, const float* at, float per_gamma, float* gradient) const {
  std::vector<float> node_at(at, at + nodes_), slope(nodes_ + 1);
  node_at.push_back(0);
  Block<Floats> wide(most_pins_);
  Block<float> narrow(most_pins_);
  const std::int32_t* node = node_.data();
  const float *offset = offset_[axis].data(), *weight = weight_.data();
  double extent = 0;
  for (const auto& [pins, lanes] : blocks_) {
    if (lanes == 1) {
      extent += add_gradient<float>(pins, node, offset, *weight, node_at.data(), per_gamma, narrow, slope.data());
    } else {
      Floats weights;
      std::memcpy(&weights, weight, sizeof weights);
      const Floats extents =
          add_gradient<Floats>(pins, node, offset, weights, node_at.data(), per_gamma, wide, slope.data());
      for (std::int64_t k = 0; k < kLanes; ++k) extent += static_cast<double>(extents[k]);
    }
    node += pins * lanes;
    offset += pins * lanes;
    weight += lanes;
  }
  std::copy(slope.begin(), slope.end() - 1, gradient);
  return extent;
}

double Wirelength::gradient(const float* x, const float* y, float per_gamma, float* gradient_x,
                            float* gradient_y) const {
  return along(0, x, per_gamma, gradient_x) + along(1, y, per_gamma, gradient_y);
}

}  // namespace placement::flat
