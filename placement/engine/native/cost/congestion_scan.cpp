#include "cost/congestion_scan.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "cost/pack.hpp"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi"  // how vectors are passed matters across libraries only
#endif

namespace placement {
namespace {

constexpr int kWide = WholeRouteSteps::kWide;
constexpr int kLines = 4;  // summed up before they are smoothed, so that what was just written is not read at once
constexpr std::size_t kMostChanged = 64;  // boxes before all gcells are looked at instead
constexpr std::int32_t kLeast = std::numeric_limits<std::int32_t>::min(), kMost = std::numeric_limits<std::int32_t>::max();

typedef std::int32_t Eight __attribute__((vector_size(32)));
typedef std::int32_t FourWhole __attribute__((vector_size(16)));
typedef double Four __attribute__((vector_size(32)));

template <typename Vector, typename Value>
Vector load(const Value* from) {
  Vector vector;
  std::memcpy(&vector, from, sizeof vector);
  return vector;
}

bool any(const Eight& which) {
#if defined(__AVX2__)
  return _mm256_movemask_epi8(reinterpret_cast<__m256i>(which)) != 0;
#else
  std::int32_t some = 0;
  for (int i = 0; i < kWide; ++i) some |= which[i];
  return some != 0;
#endif
}

}  // namespace

CongestionScan::CongestionScan(const Canvas& canvas)
    : reach_(smoothing_reach(canvas)), sides_{make_side(vertical_axis(canvas)), make_side(horizontal_axis(canvas))} {
  running_.resize(std::max(sides_[0].padded, sides_[1].padded));
}

CongestionScan::Side CongestionScan::make_side(const GridAxis& axis) const {
  const int padded = (axis.length + kWide - 1) / kWide * kWide;
  const std::size_t size = static_cast<std::size_t>(axis.lines) * padded;
  Side side{axis, padded, std::vector<std::int32_t>(padded, 0), std::vector<std::int32_t>(size, kMost),
            std::vector<double>(size, std::numeric_limits<double>::quiet_NaN()),
            std::vector<std::int32_t>(static_cast<std::size_t>(kLines) * (padded + 2 * reach_ + kWide), 0)};
  for (int i = 0; i < axis.length; ++i) side.shares[i] = static_cast<std::int32_t>(axis.shares[i]);
  return side;
}

bool CongestionScan::fits(double most_demand) const {
  for (const Side& side : sides_) {
    if (!side.axis.whole_shares) return false;
    const double most_parts = *std::max_element(side.axis.shares.begin(), side.axis.shares.end());
    if (!(most_demand * most_parts * (2 * reach_ + 1) < kMost / 4)) return false;  // a step is at most twice the demand
  }
  return true;
}

void CongestionScan::block_changed(const CellBox& box) {
  if (changed_.size() >= kMostChanged) {
    changed_.clear();
    all_changed();
  }
  changed_.push_back(box);
}

int CongestionScan::find(const WholeRouteSteps& steps, const MacroCover& cover, double limit, double* to) {
  take_limit(cover, limit);
  int found = 0;
  const std::int32_t* all_steps[2] = {steps.vertical().data(), steps.horizontal().data()};
  for (int i = 0; i < 2; ++i) {
    if (reach_ == 0) found += find_in<0>(sides_[i], all_steps[i], limit, to + found);
    else if (reach_ == 2) found += find_in<2>(sides_[i], all_steps[i], limit, to + found);
    else found += find_in<-1>(sides_[i], all_steps[i], limit, to + found);
  }
  return found;
}

void CongestionScan::take_limit(const MacroCover& cover, double limit) {
  const double *vertical = cover.vertical_block().data(), *horizontal = cover.horizontal_block().data();
  if (limit != limit_) {
    limit_ = limit;
    for (int line = 0; line < sides_[0].axis.lines; ++line) take_block(sides_[0], vertical, line, 0, sides_[0].axis.length - 1);
    for (int line = 0; line < sides_[1].axis.lines; ++line) take_block(sides_[1], horizontal, line, 0, sides_[1].axis.length - 1);
    changed_.clear();
    return;
  }
  for (const CellBox& box : changed_) {
    for (int row = box.first_row; row <= box.last_row; ++row) take_block(sides_[0], vertical, row, box.first_column, box.last_column);
    for (int column = box.first_column; column <= box.last_column; ++column) {
      take_block(sides_[1], horizontal, column, box.first_row, box.last_row);
    }
  }
  changed_.clear();
}

void CongestionScan::take_block(Side& side, const double* block, int line, int first, int last) const {
  const GridAxis& axis = side.axis;
  const double* shares = block + static_cast<std::size_t>(line) * axis.length;
  const std::size_t start = static_cast<std::size_t>(line) * side.padded;
  for (int i = first; i <= last; ++i) {
    const double blocked = shares[i] * axis.block_share;
    side.blocked[start + i] = blocked;
    // Two parts less than it takes, for rounding.
    const double beyond = (limit_ - blocked) / axis.per_part - 2.0;
    side.beyond[start + i] = beyond >= kMost ? kMost : beyond > kLeast ? static_cast<std::int32_t>(beyond) : kLeast;
  }
}

// kReach −1: any.
template <int kReach>
int CongestionScan::find_in(Side& side, const std::int32_t* steps, double limit, double* to) {
  const int reach = kReach < 0 ? reach_ : kReach, padded = side.padded, length = side.axis.length, lines = side.axis.lines;
  const int stride = padded + 2 * reach + kWide;
  const std::int32_t *shares = side.shares.data(), *beyond = side.beyond.data();
  const double* blocked = side.blocked.data();
  const Four per_part = Four{} + side.axis.per_part;
  std::int32_t* running = running_.data();
  std::fill_n(running, padded, 0);
  int found = 0;
  for (int first = 0; first < lines; first += kLines) {
    const int count = std::min(kLines, lines - first);
    for (int line = 0; line < count; ++line, steps += length) {
      std::int32_t* shared = side.shared.data() + line * stride + reach;
      for (int i = 0; i < padded; i += kWide) {
        const Eight demand = load<Eight>(running + i) + load<Eight>(steps + i);
        std::memcpy(running + i, &demand, sizeof demand);
        const Eight each = kReach == 0 ? demand : demand * load<Eight>(shares + i);
        std::memcpy(shared + i, &each, sizeof each);
      }
    }
    for (int line = 0; line < count; ++line) {
      const std::int32_t* shared = side.shared.data() + line * stride;
      for (int i = 0; i < padded; i += kWide, beyond += kWide, blocked += kWide) {
        Eight sum = load<Eight>(shared + i);
#pragma GCC unroll 4
        for (int offset = 1; offset <= 2 * reach; ++offset) sum += load<Eight>(shared + i + offset);
        if (!any(sum > load<Eight>(beyond))) continue;
        FourWhole halves[2];
        std::memcpy(halves, &sum, sizeof sum);
        double values[kWide];
        for (int half = 0; half < 2; ++half) {
          const Four each = __builtin_convertvector(halves[half], Four) * per_part + load<Four>(blocked + 4 * half);
          std::memcpy(values + 4 * half, &each, sizeof each);
        }
        found += pack<false>(values, kWide, limit, to + found);
      }
    }
  }
  return found;
}

}  // namespace placement
