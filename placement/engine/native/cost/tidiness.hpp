// How tidily the hard macros are placed: what a physical designer would otherwise straighten by hand. Kept while macros
// move, exactly: all sums are of integers.
//
// Two macros side by side, or one above the other, are neighbours if the gap between them is below the channel's width
// beyond the gap that their halos and the design's spacing need. They are aligned if their edges across the gap's direction
// form one line.
#pragma once

#include <cstdint>
#include <vector>

#include "common/design.hpp"

namespace placement {

// Of all hard macros, or of those that the measure applies to; each count has its own total.
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

  // A rectangle that macros are to leave, µm; forgets where macros are.
  void set_clear(double left, double low, double right, double high);

  // Forgets where macros are; then add each hard macro.
  void clear();
  void add(int node, double x, double y, std::int8_t orientation);
  // Moves one that was added; to take it back, move it back.
  void move(int node, double x, double y, std::int8_t orientation);

  // From 0 on; a macro without an aligned neighbour adds 1 / macros.
  double cost() const;
  TidinessCounts counts() const;
  double channel() const { return channel_; }  // µm

 private:
  struct Macro {
    double x, y, half_width, half_height;  // µm
    Halo halo;                             // or half the spacing, where that is more
    std::int32_t bank, size;
    std::int8_t orientation, side;  // side that the pins are on in that orientation: 0 left, 1 right, 2 low, 3 high; −1 none
  };
  struct Counters {
    std::int32_t aligned = 0, grouped = 0, facing = 0;
  };
  void count_with_others(int index, int sign);
  void count_pair(int a, int b, bool across, double gap, double shared, int sign);
  void count_alone(int index, int sign);
  void change(std::int32_t& counter, int by, std::int64_t& nonzero) {
    nonzero -= counter != 0;
    counter += by;
    nonzero += counter != 0;
  }

  const Design& design_;
  double clear_left_ = 0, clear_low_ = 0, clear_right_ = 0, clear_high_ = 0;  // µm
  double channel_, tolerance_, reach_;     // µm; reach: the widest gap between neighbours
  std::vector<std::int32_t> index_of_;     // [N] −1: no hard macro
  std::vector<std::int8_t> own_side_;      // [H] in orientation N
  std::vector<std::int32_t> bank_, size_;  // [H] bank −1: the macro is alone in it
  std::vector<Macro> macros_;              // [H]
  std::vector<std::uint8_t> is_added_;     // [H]
  std::vector<Counters> counters_;         // [H]
  int banked_ = 0, sided_ = 0;
  // Sums; lengths in quanta of the shares of a side.
  std::int64_t aligned_ = 0, grouped_ = 0, facing_ = 0, alike_ = 0, turned_ = 0;
  std::int64_t notches_ = 0, steps_ = 0, inward_ = 0, in_clear_ = 0, corners_ = 0;
};

}  // namespace placement
