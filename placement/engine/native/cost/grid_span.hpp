// The columns (or rows) of a grid that an interval meets, and how much of each it covers.
#pragma once

#include <algorithm>

namespace placement {

struct GridSpan {
  int first, last;   // none where low >= high
  double low, high;  // in columns, within the grid

  // An interval of `size` µm about `centre`, on a grid of `count` columns, `per_side` of them to the µm.
  GridSpan(double centre, double size, double per_side, int count)
      : low(std::max(0.0, (centre - size / 2) * per_side)),
        high(std::min(static_cast<double>(count), (centre + size / 2) * per_side)) {
    first = static_cast<int>(std::min(low, count - 1.0));  // an interval may lie farther off than whole numbers go
    last = low < high ? std::min(static_cast<int>(high), count - 1) : first - 1;
  }
  // Of a column in [first, last], the share that is covered.
  double share(int column) const {
    return std::max(0.0, std::min(high, column + 1.0) - std::max(low, static_cast<double>(column)));
  }
};

}  // namespace placement
