// The largest empty rectangle: how much whitespace is in one piece.
#pragma once

#include <vector>

namespace placement {

struct Sides {
  double left = 0, low = 0, right = 0, high = 0;  // µm
};

// Of a canvas (µm), beside all of `taken`, which may overlap each other and reach beyond it. O(n²) for n of them.
Sides largest_empty_rectangle(double width, double height, const std::vector<Sides>& taken);

}  // namespace placement
