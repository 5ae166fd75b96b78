// The largest empty rectangle: the amount of contiguous whitespace.
#pragma once

#include <vector>

namespace placement {

struct Sides {
  double left = 0, low = 0, right = 0, high = 0;  // µm
};

// Largest rectangle of a canvas (µm) clear of all of `taken`, which may overlap and extend beyond it. O(n²) for n of
// them.
Sides largest_empty_rectangle(double width, double height, const std::vector<Sides>& taken);

}  // namespace placement
