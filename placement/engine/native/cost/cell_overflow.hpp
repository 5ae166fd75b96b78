// Whether the clusters' cells fit beside the hard macros, and how far they must go where they do not.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "common/design.hpp"
#include "cost/compact_nets.hpp"

namespace placement {

// The displacement of overflowing area is bounded by blocks of bins: what is too much in a block of side s has to leave
// it, and so goes about s, at every size of blocks from one bin to the canvas, each doubling the last (as in
// embeddings of the earth mover's distance: Indyk, Thaper, 2003). Cells may be dense in a few bins, but a large block has
// to leave them the whitespace that a flow spreads them to: what is beyond that counts, too, less the overflow of the
// largest block, which holds the canvas; that counts once, in part. Kept for all sizes while macros come and go, in multiples of
// a power of two: taking away leaves no trace.
class CellOverflow {
 public:
  // `most`: bins that all macros together could fill.
  CellOverflow(const Canvas& bins, double most);

  void clear();
  // Adds (sign 1) or takes away (sign −1) a macro of `width` × `height` µm centred at x, y.
  void add(double x, double y, double width, double height, bool hard, double sign);

  int columns() const { return levels_.front().columns; }
  int rows() const { return levels_.front().rows; }
  // [rows, columns] of each bin, over its area: cells less the area that hard macros leave; above 0 it overflows.
  const std::vector<double>& spare() const { return levels_.front().full.spare; }

  // µm³: overflowing area times its displacement.
  double displacement() const;

  // A macro that is to go elsewhere: µm, its centre and size.
  struct Mover {
    double x, y, width, height;
  };
  static constexpr int kMostPoints = 16;
  // What displacement() would rise by, µm³, up to a number that all points share where the whole canvas overflows, were a soft macro
  // taken away and its area put into the bin of a point: of the points xs [columns] × ys [rows], at most kMostPoints each.
  // Writes prices [rows, kMostPoints]. Columns are read and written in whole lanes: those beyond `columns` are of no use.
  // Exact, but for rounding, where the macro lies within one bin before and after; most macros meet several.
  void price(const Mover& soft, const float* xs, int columns, const float* ys, int rows, float* prices) const;

 private:
  struct Points;
  struct Overfull {  // in bins
    double area = 0;            // overflow, summed over the blocks
    std::vector<double> spare;  // [blocks] area that is too much, or too little (below 0)
    void clear();
    // Adds `areas` [rows, columns] to the blocks from `first` on, of lines of `stride`.
    void add(const double* areas, int first, int stride, int columns, int rows);
    void add(double more, int block) {
      double& here = spare[block];
      const double before = std::max(0.0, here);
      here += more;
      area += std::max(0.0, here) - before;
    }
    // Adds to `line` what `area` bins more in the blocks of the points' row would add to the overflow, times
    // `weight`, after as much is taken from the block where it is now.
    void price(const Points& points, int row, int stride, float area, float weight, float* line) const;
  };
  struct Level {  // blocks of one size
    int columns, rows;
    double side;       // bins
    Overfull full;     // where cells fill the whitespace
    Overfull spread;   // where they fill it to the target density; of large blocks only
  };
  void change(int first_column, int first_row, int columns, int rows, bool hard);
  void change_one(std::size_t size, int column, int row, bool hard);

  double per_width_, per_height_;  // bins per µm
  double scale_;                   // µm³ for a bin that goes a bin's side
  Rounder rounder_;
  std::vector<double> hard_;  // [bins] share under hard macros
  std::vector<Level> levels_;
  std::vector<double> across_;          // [columns] share of a macro's bins that it covers across, its first one first
  std::vector<double> areas_, folded_;  // [rows, columns] of a box of bins, what is added; of the blocks one size larger
  std::vector<double> spread_;          // [rows, columns] areas_, spread to the target density
};

}  // namespace placement
