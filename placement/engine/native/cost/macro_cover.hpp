// Coverage of gcells by macros: the density, and the routes that hard macros block.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "cost/compact_nets.hpp"
#include "common/design.hpp"

namespace placement {

// Gcells [first, last] of both axes; empty if a last is below its first.
struct CellBox {
  int first_column = 0, last_column = -1, first_row = 0, last_row = -1;
};

class MacroCover {
 public:
  explicit MacroCover(const Canvas& canvas);

  // The power of two of which all shares are multiples.
  static double quantum();
  // Shares of a gcell, summed over macros: of its area, [R, C]; of its height, for horizontal routes, [C, R]; of its
  // width, for vertical routes, [R, C]. All are multiples of a power of two, so that removals are exact.
  const std::vector<double>& density() const { return density_; }
  const std::vector<double>& horizontal_block() const { return horizontal_block_; }
  const std::vector<double>& vertical_block() const { return vertical_block_; }

  void clear();
  // Adds (sign 1) or removes (sign −1) a macro of `width` × `height` µm centred at x, y; only hard macros block.
  // Returns the gcells that it meets.
  CellBox add(double x, double y, double width, double height, bool hard, double sign);
  // Cost of the blockage of such a hard macro at a price per share: vertical [R, C], horizontal [C, R].
  double block_price(double x, double y, double width, double height, const double* vertical, const double* horizontal) const;

 private:
  struct Span {  // the gcells that a macro meets along one axis
    int first, last;
    double first_share, last_share;  // of a gcell's side; last_share is 0 if there is only one gcell
    bool partial;                    // more than one gcell, and the first or the last partially covered

    double share(int at) const { return at == first ? first_share : at == last ? last_share : 1.0; }
  };
  static Span span(double low, double high, double size, double per_size, int count);
  static void fill(const Span& span, double* shares);
  void add_block(const Span& columns, const Span& rows, double sign);

  int columns_, rows_;
  double width_, height_, cell_width_, cell_height_, per_width_, per_height_;
  Rounder rounder_;
  std::vector<double> density_, horizontal_block_, vertical_block_;
  std::vector<double> share_x_, share_y_;  // share of a gcell's width, height covered by the macro, by column, row
};

}  // namespace placement
