// Ranges of gcells on an axis, and sets of gcells as bits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "cost/legality.hpp"

namespace placement {

// Index of the first of `count` gcell centres beyond `at` µm, within one of rounding; in [0, count].
inline int first_beyond(double at, double inverse_size, int count) {
  return static_cast<int>(std::clamp(std::floor(at * inverse_size - 0.5) + 1, 0.0, static_cast<double>(count)));
}

// First and last index of the centres at which a macro of `own` µm would overlap the interval (centre, length);
// first > last where none would.
inline std::pair<int, int> blocked_by(const std::vector<double>& centres, double inverse_size, double own, double centre,
                               double length, double threshold) {
  const double reach = (own + length) / 2 - threshold - kLengthTolerance;
  if (reach <= 0 || std::min(own, length) <= threshold + kLengthTolerance) return {0, -1};
  const int count = static_cast<int>(centres.size());
  const auto overlaps = [&](int i) { return intervals_overlap(centres[i], own, centre, length, threshold); };
  int first = first_beyond(centre - reach, inverse_size, count);
  int last = first_beyond(centre + reach, inverse_size, count) - 1;
  // The guesses are off by at most one where a centre lies within rounding of the edge: the shared rule decides.
  if (first > 0 && overlaps(first - 1)) --first;
  if (first <= last && !overlaps(first)) ++first;
  if (last + 1 < count && overlaps(last + 1)) ++last;
  if (first <= last && !overlaps(last)) --last;
  return {first, last};
}

// Bits [first, last] of a word, those outside [0, 64) cut off.
inline std::uint64_t bits(int first, int last) {
  first = std::max(first, 0);
  last = std::min(last, 63);
  if (first > last) return 0;
  return (~std::uint64_t{0} >> (63 - last)) & (~std::uint64_t{0} << first);
}

// Takes the gcells of a rectangle, which may be empty, out of a set [R, words].
inline void block_cells(std::uint64_t* cells, int words, int first_row, int last_row, int first_column,
                        int last_column) {
  if (first_column > last_column) return;
  for (int word = first_column / 64; word <= last_column / 64; ++word) {
    const std::uint64_t free = ~bits(first_column - 64 * word, last_column - 64 * word);
    for (int row = first_row; row <= last_row; ++row) cells[row * words + word] &= free;
  }
}

}  // namespace placement
