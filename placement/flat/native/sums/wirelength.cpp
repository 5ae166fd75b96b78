#include "sums.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

namespace placement::flat {
namespace {

constexpr std::int64_t kBlock = 4096;  // pins that are worked on together: they stay in the nearest cache

// e^v for v in [-87, 0]: 2^round(v / ln 2) times a polynomial; relative error below 1e-6. The loop over it vectorises.
inline float exp_negative(float v) {
  v = std::max(v, -87.0f);
  const float scaled = v * 1.44269504f;
  const float whole = static_cast<float>(static_cast<std::int32_t>(scaled - 0.5f));
  const float rest = (v - whole * 0.693359375f) + whole * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * rest + 1.3981999507e-3f;
  p = p * rest + 8.3334519073e-3f;
  p = p * rest + 4.1665795894e-2f;
  p = p * rest + 1.6666665459e-1f;
  p = p * rest + 5.0000001201e-1f;
  p = p * rest * rest + rest + 1.0f;
  const std::int32_t bits = (static_cast<std::int32_t>(whole) + 127) << 23;
  float power;
  std::memcpy(&power, &bits, sizeof power);
  return p * power;
}

// Scratch for one block of pins along one axis.
struct Block {
  std::vector<float> at, up, down;

  void resize(std::size_t size) {
    if (at.size() < size) {
      at.resize(size);
      up.resize(size);
      down.resize(size);
    }
  }
};

// Calls `work` with a net's number of pins, as a constant where it is small: most nets are, and their loops unroll.
template <class Work>
inline void for_size(std::int64_t pins, Work&& work) {
  switch (pins) {
    case 2: return work(std::integral_constant<std::int64_t, 2>{});
    case 3: return work(std::integral_constant<std::int64_t, 3>{});
    case 4: return work(std::integral_constant<std::int64_t, 4>{});
    default: return work(pins);
  }
}

// The pins of nets [net, end) along one axis: gradient per pin; returns the nets' weighted extent.
double block_gradient(const Nets& nets, std::int64_t net, std::int64_t end, const float* node_at, const float* offset,
                      float per_gamma, Block& block, float* pin_gradient) {
  const std::int64_t first = nets.net_start[net], last = nets.net_start[end];
  for (std::int64_t pin = first; pin < last; ++pin) block.at[pin - first] = node_at[nets.pin_node[pin]] + offset[pin];
  double extent = 0;
  for (std::int64_t e = net; e < end; ++e) {
    const std::int64_t begin = nets.net_start[e] - first;
    float *at = block.at.data() + begin, *up = block.up.data() + begin, *down = block.down.data() + begin;
    for_size(nets.net_start[e + 1] - nets.net_start[e], [&](auto pins) {
      float low = at[0], high = at[0];
      for (std::int64_t i = 1; i < pins; ++i) {
        low = std::min(low, at[i]);
        high = std::max(high, at[i]);
      }
      extent += static_cast<double>(nets.net_weight[e]) * (high - low);
      for (std::int64_t i = 0; i < pins; ++i) {
        up[i] = (at[i] - high) * per_gamma;
        down[i] = (low - at[i]) * per_gamma;
        at[i] -= low;  // smaller numbers lose fewer digits below
      }
    });
  }
  const std::int64_t count = last - first;
  for (std::int64_t i = 0; i < count; ++i) block.up[i] = exp_negative(block.up[i]);
  for (std::int64_t i = 0; i < count; ++i) block.down[i] = exp_negative(block.down[i]);
  for (std::int64_t e = net; e < end; ++e) {
    const std::int64_t begin = nets.net_start[e] - first;
    const float *at = block.at.data() + begin, *up = block.up.data() + begin, *down = block.down.data() + begin;
    float* gradient = pin_gradient + nets.net_start[e];
    for_size(nets.net_start[e + 1] - nets.net_start[e], [&](auto pins) {
      float up_sum = 0, up_moment = 0, down_sum = 0, down_moment = 0;
      for (std::int64_t i = 0; i < pins; ++i) {
        up_sum += up[i];
        up_moment += up[i] * at[i];
        down_sum += down[i];
        down_moment += down[i] * at[i];
      }
      const float weight = nets.net_weight[e];
      const float per_up = weight / up_sum, per_down = weight / down_sum;
      const float up_mean = up_moment / up_sum, down_mean = down_moment / down_sum;
      for (std::int64_t i = 0; i < pins; ++i) {
        gradient[i] = up[i] * per_up * (1.0f + (at[i] - up_mean) * per_gamma) -
                      down[i] * per_down * (1.0f - (at[i] - down_mean) * per_gamma);
      }
    });
  }
  return extent;
}

double one_axis(const Nets& nets, const float* node_at, const float* offset, float per_gamma, float* gradient) {
  static thread_local Block block;
  static thread_local std::vector<float> pin_gradient;
  pin_gradient.resize(nets.net_start[nets.nets]);
  double extent = 0;
  for (std::int64_t net = 0; net < nets.nets;) {
    std::int64_t end = net + 1;
    while (end < nets.nets && nets.net_start[end + 1] - nets.net_start[net] <= kBlock) ++end;
    block.resize(nets.net_start[end] - nets.net_start[net]);
    extent += block_gradient(nets, net, end, node_at, offset, per_gamma, block, pin_gradient.data());
    net = end;
  }
  for (std::int64_t node = 0; node < nets.nodes; ++node) {
    float sum = 0;
    for (std::int32_t k = nets.node_start[node]; k < nets.node_start[node + 1]; ++k) sum += pin_gradient[nets.node_pins[k]];
    gradient[node] = sum;
  }
  return extent;
}

}  // namespace

double weighted_average(const Nets& nets, const float* x, const float* y, float per_gamma, float* gradient_x,
                        float* gradient_y) {
  return one_axis(nets, x, nets.pin_offset_x, per_gamma, gradient_x) +
         one_axis(nets, y, nets.pin_offset_y, per_gamma, gradient_y);
}

}  // namespace placement::flat
