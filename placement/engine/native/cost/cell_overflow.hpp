// Overflow: whether the clusters' cells fit beside the hard macros, and how far they must move if they do not.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "common/design.hpp"
#include "cost/compact_nets.hpp"

namespace placement {

// The displacement of overflowing area is bounded over blocks of bins: the excess in a block of side s has to leave it,
// and so moves about s, for every block size from one bin to the canvas, each twice the last (as in embeddings of the
// earth mover's distance: Indyk, Thaper, 2003). Cells may be dense in a few bins, but in a large block they must leave
// the whitespace to which a flow spreads them. The excess over that counts, too, less the overflow of the largest
// block, the canvas, which counts once, in part. All sizes are maintained while macros are added and removed, in
// multiples of a power of two, so that a removal is exact.
class CellOverflow {
 public:
  // `most`: number of bins that all macros together could fill.
  CellOverflow(const Canvas& bins, double most);

  void clear();
  // Adds (sign 1) or removes (sign −1) a macro of `width` × `height` µm centred at x, y.
  void add(double x, double y, double width, double height, bool hard, double sign);

  int columns() const { return levels_.front().columns; }
  int rows() const { return levels_.front().rows; }
  // [rows, columns] cell area less the area that hard macros leave, over the bin's area; positive: overflow.
  const std::vector<double>& spare() const { return levels_.front().full.spare; }

  // Sum over the overflowing area of area times displacement, µm³.
  double displacement() const;

  // A macro to be moved elsewhere: centre and size, µm.
  struct Mover {
    double x, y, width, height;
  };
  static constexpr int kMostPoints = 16;
  // Writes the rise of displacement(), µm³, if a soft macro were removed and its area put into the bin of a point:
  // prices [rows, kMostPoints] for the points xs [columns] × ys [rows], at most kMostPoints each. If the whole canvas
  // overflows, the prices omit a constant common to all points. Columns are read and written in whole lanes: those
  // beyond `columns` are meaningless. Exact but for rounding if the macro lies within one bin before and after; most
  // macros meet several.
  void price(const Mover& soft, const float* xs, int columns, const float* ys, int rows, float* prices) const;

 private:
  struct Points;
  struct Overfull {  // in bins
    double area = 0;            // overflow, summed over the blocks
    std::vector<double> spare;  // [blocks] excess area; negative: spare area
    void clear();
    // Adds `areas` [rows, columns] to the blocks from `first` on, whose lines are `stride` apart.
    void add(const double* areas, int first, int stride, int columns, int rows);
    void add(double more, int block) {
      double& here = spare[block];
      const double before = std::max(0.0, here);
      here += more;
      area += std::max(0.0, here) - before;
    }
    // Adds to `line` the change of the overflow, times `weight`, if `area` bins were added to the blocks of the points'
    // row, after as much was removed from the current block.
    void price(const Points& points, int row, int stride, float area, float weight, float* line) const;
  };
  struct Level {  // blocks of one size
    int columns, rows;
    double side;       // bins
    Overfull full;     // cells fill the whitespace
    Overfull spread;   // cells fill it to the target density; large blocks only
  };
  void change(int first_column, int first_row, int columns, int rows, bool hard);
  void change_one(std::size_t size, int column, int row, bool hard);

  double per_width_, per_height_;  // bins per µm
  double scale_;                   // µm³ for one bin moved by a bin's side
  Rounder rounder_;
  std::vector<double> hard_;  // [bins] share under hard macros
  std::vector<Level> levels_;
  std::vector<double> across_;          // [columns] covered share of each bin's width, from a macro's first bin on
  std::vector<double> areas_, folded_;  // [rows, columns] area added to a box of bins; to the blocks twice as large
  std::vector<double> spread_;          // [rows, columns] areas_, spread to the target density
};

}  // namespace placement
