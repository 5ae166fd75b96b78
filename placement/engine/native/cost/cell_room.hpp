// Whether the clusters' cells have room beside the hard macros, and how far they must go where they have none.
#pragma once

#include <vector>

#include "common/design.hpp"

namespace placement {

// The way that overfull area must go is bounded by blocks of gcells: what is too much in a block of side s has to leave
// it, and so goes about s, at every size of blocks from one gcell to the canvas, each doubling the last (as in
// embeddings of the earth mover's distance: Indyk, Thaper, 2003).
class CellRoom {
 public:
  explicit CellRoom(const Canvas& canvas);

  // µm³: area beyond the free room times its way. hard, soft [R, C]: shares of each gcell that macros cover.
  double way(const std::vector<double>& hard, const std::vector<double>& soft);

 private:
  int columns_, rows_;
  double cell_area_, side_;
  std::vector<double> spare_;  // by blocks: area that is too much, or too little
};

}  // namespace placement
