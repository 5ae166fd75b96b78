// Tidiness of hard macros: what a physical designer would otherwise straighten by hand. Maintained exactly while macros
// move, because all sums are of integers.
//
// Two macros side by side, or one above the other, are neighbours if the gap between them exceeds the gap that their
// halos and the design's spacing require by less than the channel's width. They are aligned if their edges across the
// gap's direction form one line.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "common/design.hpp"
#include "cost/empty_rectangle.hpp"

namespace placement {

// Counts over all hard macros, or over those to which a measure applies; each has its own total.
struct TidinessCounts {
  int macros = 0;
  int aligned = 0;                     // macros with an aligned neighbour
  int banked = 0, grouped = 0;         // macros that have others of their bank; those with a neighbour of their bank
  std::int64_t alike = 0, turned = 0;  // neighbours of one size; those in different orientations
  int sided = 0, facing = 0;           // macros whose pins are on one side; those whose pins face a macro or the edge
  int corners = 0;                     // corners of the canvas with a macro
  double notches = 0;                  // gaps narrower than the channel, in macro sides
};

class Tidiness {
 public:
  explicit Tidiness(const Design& design);

  // Counts macros in a rectangle that should become empty: the largest empty one, extended on the side where the fewest
  // macros are in the extension. Forgets the positions of macros.
  void grow_clear();
  // Largest rectangle clear of the added macros with their halos or half the spacing.
  Sides largest_empty() const;

  // Forgets the positions of macros; then add each hard macro.
  void clear();
  void add(int node, double x, double y, std::int8_t orientation);
  // Moves an added macro. take_back() undoes all moves since the last begin().
  void begin();
  void move(int node, double x, double y, std::int8_t orientation);
  void take_back();

  // At least 0; a macro without an aligned neighbour adds 1 / macros.
  double cost() const;
  TidinessCounts counts() const;
  double channel() const { return channel_; }  // µm

  // Side with most pins of a hard macro as it is placed: 0 left, 1 right, 2 low, 3 high; −1: no side.
  int pin_side(int node) const { return macros_[index_of_[node]].side; }
  // Distance in µm by which a hard macro must move off one of its sides for nothing to be in front of that side; 0:
  // nothing is.
  double covered(int node, int side) const;

 private:
  struct Macro {
    double x, y, half_width, half_height;  // µm
    Halo halo;                             // or half the spacing, if larger
    std::int32_t bank, size;
    std::int8_t orientation, side;  // side of the pins in that orientation: 0 left, 1 right, 2 low, 3 high; −1 none
  };
  struct Counters {
    std::int32_t aligned = 0, grouped = 0, facing = 0;
  };
  struct Sums {  // lengths in quanta of the shares of a side
    std::int64_t aligned = 0, grouped = 0, facing = 0, alike = 0, turned = 0;
    std::int64_t notches = 0, steps = 0, inward = 0, in_clear = 0, corners = 0;
  };
  std::vector<Sides> taken() const;
  void count_with_others(int index, int sign);
  void count_pair(int a, int b, bool across, double gap, double shared, int sign);
  void count_alone(int index, int sign);
  void put(int index, const Macro& macro);
  void change(std::int32_t& counter, int by, std::int64_t& nonzero) {
    old_counters_.emplace_back(&counter, counter);
    nonzero -= counter != 0;
    counter += by;
    nonzero += counter != 0;
  }

  const Design& design_;
  Sides clear_;
  double channel_, tolerance_;             // µm
  float near_;                             // µm: upper bound of the gap between neighbours
  std::vector<std::int32_t> index_of_;     // [N] −1: not a hard macro
  std::vector<std::int8_t> own_side_;      // [H] in orientation N
  std::vector<std::int32_t> bank_, size_;  // [H] bank −1: no other macro in it
  std::vector<Macro> macros_;              // [H]
  // [H] for a fast neighbour search: centres, half sides; far away if the macro was not added.
  std::vector<float> x_, y_, half_width_, half_height_;
  std::vector<std::int32_t> is_near_;      // [H] workspace
  std::vector<Counters> counters_;         // [H]
  int banked_ = 0, sided_ = 0;
  Sums sums_;
  // State at begin().
  Sums old_sums_;
  std::vector<std::pair<int, Macro>> old_macros_;
  std::vector<std::pair<std::int32_t*, std::int32_t>> old_counters_;
};

}  // namespace placement
