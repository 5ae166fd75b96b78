#include <algorithm>
#include <cmath>

#include "sums.hpp"

namespace placement::flat {
namespace {

// Sum of term(n) for n < count, in eight partial sums, so that the loop vectorises.
template <class Term>
double sum_of(std::int64_t count, Term&& term) {
  double part[8] = {};
  std::int64_t n = 0;
  for (; n + 8 <= count; n += 8) {
    for (int k = 0; k < 8; ++k) part[k] += static_cast<double>(term(n + k));
  }
  for (; n < count; ++n) part[0] += static_cast<double>(term(n));
  double total = 0;
  for (const double each : part) total += each;
  return total;
}

}  // namespace

double nesterov_step(std::int64_t count, const Iterate& from, const float* gradient, const float* low,
                     const float* high, float step, float carry, const NewIterate& to) {
  return sum_of(count, [&](std::int64_t n) {
    const float major = std::min(std::max(from.reference[n] - step * gradient[n], low[n]), high[n]);
    const float moved = major - from.major[n];
    to.major[n] = major;
    to.reference[n] = std::min(std::max(major + carry * moved, low[n]), high[n]);
    return gradient[n] * moved;
  });
}

void preconditioned(std::int64_t count, const float* wirelength, const float* density, const float* pins,
                    const float* area, float weight, float* gradient) {
  for (std::int64_t n = 0; n < count; ++n) {
    gradient[n] = (wirelength[n] + weight * density[n]) / std::max(pins[n] + weight * area[n], 1.0f);
  }
}

double distance(std::int64_t count, const float* a, const float* b) {
  return std::sqrt(sum_of(count, [&](std::int64_t n) { return (a[n] - b[n]) * (a[n] - b[n]); }));
}

}  // namespace placement::flat
