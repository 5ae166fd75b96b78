#include "cost/congestion_scan.hpp"

#include <algorithm>
#include <cstring>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi"  // the vector calling convention matters across libraries only
#endif

namespace placement {
namespace {

constexpr int kWide = WholeRouteSteps::kWide;
constexpr int kLines = 4;  // lines summed before they are smoothed, so that values are not read right after they are
                           // written
constexpr std::size_t kMostChanged = 64;  // maximum number of boxes before all gcells are scanned instead
constexpr std::int32_t kLeast = std::numeric_limits<std::int32_t>::min(), kMost = std::numeric_limits<std::int32_t>::max();

typedef std::int32_t Eight __attribute__((vector_size(32)));

template <typename Vector, typename Value>
Vector load(const Value* from) {
  Vector vector;
  std::memcpy(&vector, from, sizeof vector);
  return vector;
}

// Bit i: integer i of eight is marked.
std::uint8_t bits_of(const Eight& marked) {
#if defined(__AVX2__)
  return static_cast<std::uint8_t>(_mm256_movemask_ps(reinterpret_cast<__m256>(marked)));
#else
  unsigned bits = 0;
  for (int i = 0; i < kWide; ++i) bits |= static_cast<unsigned>(marked[i] != 0) << i;
  return static_cast<std::uint8_t>(bits);
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
  Side side;
  side.axis = axis;
  side.padded = padded;
  side.shares.assign(padded, 0);
  side.beyond.assign(size, kMost);
  side.blocked.assign(size, 0.0);
  side.shared.assign(static_cast<std::size_t>(kLines) * (padded + 2 * reach_ + kWide), 0);
  side.sums.resize(size);
  side.marks.assign((size / kWide + 7) / 8 * 8, 0);
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
    if (reach_ == 0) sum_up<0>(sides_[i], all_steps[i]);
    else if (reach_ == 2) sum_up<2>(sides_[i], all_steps[i]);
    else sum_up<-1>(sides_[i], all_steps[i]);
    found += pick(sides_[i], limit, to + found);
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
  const double* covered = block + static_cast<std::size_t>(line) * axis.length;
  const std::size_t start = static_cast<std::size_t>(line) * side.padded;
  for (int i = first; i <= last; ++i) {
    const double blocked = covered[i] * axis.block_share;
    side.blocked[start + i] = blocked;
    // Two units lower, for rounding.
    const double beyond = (limit_ - blocked) / axis.per_unit - 2.0;
    side.beyond[start + i] = beyond >= kMost ? kMost : beyond > kLeast ? static_cast<std::int32_t>(beyond) : kLeast;
  }
}

// kReach −1: any reach.
template <int kReach>
void CongestionScan::sum_up(Side& side, const std::int32_t* steps) {
  const int reach = kReach < 0 ? reach_ : kReach, padded = side.padded, length = side.axis.length, lines = side.axis.lines;
  const int stride = padded + 2 * reach + kWide;
  const std::int32_t *shares = side.shares.data(), *beyond = side.beyond.data();
  std::int32_t *running = running_.data(), *sums = side.sums.data();
  std::uint8_t* marks = side.marks.data();
  std::fill_n(running, padded, 0);
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
      for (int i = 0; i < padded; i += kWide, beyond += kWide, sums += kWide) {
        Eight sum = load<Eight>(shared + i);
#pragma GCC unroll 4
        for (int offset = 1; offset <= 2 * reach; ++offset) sum += load<Eight>(shared + i + offset);
        std::memcpy(sums, &sum, sizeof sum);
        *marks++ = bits_of(sum > load<Eight>(beyond));
      }
    }
  }
}

// Writes the marked values from `limit` on.
int CongestionScan::pick(const Side& side, double limit, double* to) const {
  const double per_unit = side.axis.per_unit;
  int found = 0;
  for (std::size_t first = 0; first < side.marks.size(); first += 8) {
    std::uint64_t bits = 0;
    for (int byte = 7; byte >= 0; --byte) bits = bits << 8 | side.marks[first + byte];
    const std::int32_t* sums = side.sums.data() + first * kWide;
    const double* blocked = side.blocked.data() + first * kWide;
    for (; bits != 0; bits &= bits - 1) {
      const int i = __builtin_ctzll(bits);
      const double value = sums[i] * per_unit + blocked[i];
      to[found] = value;
      found += value >= limit;
    }
  }
  return found;
}

void CongestionScan::write(double* maps) const {
  for (const Side& side : sides_) {
    const double per_unit = side.axis.per_unit;
    for (int line = 0; line < side.axis.lines; ++line, maps += side.axis.length) {
      const std::int32_t* sums = side.sums.data() + static_cast<std::size_t>(line) * side.padded;
      const double* blocked = side.blocked.data() + static_cast<std::size_t>(line) * side.padded;
      for (int i = 0; i < side.axis.length; ++i) maps[i] = sums[i] * per_unit + blocked[i];
    }
  }
}

}  // namespace placement
