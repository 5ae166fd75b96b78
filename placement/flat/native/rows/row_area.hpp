// Sites of rows that boxes leave free: runs of adjacent sites, and the connected pieces that they form.
#pragma once
#include <cstdint>
#include <vector>

namespace placement::flat::rows {

// A row of standard-cell sites; µm.
struct Row {
  double x, y;  // lower left corner
  double height, site;
  std::int32_t sites;
};

// An area without sites for cells; µm.
struct Box {
  double x_low, y_low, x_high, y_high;
};

// Adjacent free sites of one row.
struct Run {
  std::int32_t row, first, sites;
};

// Groups of rows with the same lower edge, from the lowest level up.
class Levels {
 public:
  explicit Levels(const std::vector<Row>& rows);

  std::int32_t count() const { return static_cast<std::int32_t>(y_.size()); }
  double y(std::int32_t level) const { return y_[static_cast<std::size_t>(level)]; }
  // The level of a row.
  std::int32_t of(std::int32_t row) const { return of_[static_cast<std::size_t>(row)]; }
  // The level whose lower edges lie at `y`; -1: none.
  std::int32_t at(double y) const;
  // The first level that is not below `y`; `count` if there is none.
  std::int32_t from(double y) const;
  // Rows by level, and from left to right within one.
  const std::vector<std::int32_t>& order() const { return order_; }

 private:
  std::vector<double> y_;
  std::vector<std::int32_t> of_, order_;
};

// A partially covered site is not free. Runs are in the order of `levels`.
std::vector<Run> free_runs(const std::vector<Row>& rows, const Levels& levels, const std::vector<Box>& boxes);

// The piece of each run, numbered from 0. Runs are connected if they touch in one row or in consecutive rows of a
// level, or overlap in x in rows that touch.
std::vector<std::int32_t> pieces(const std::vector<Row>& rows, const Levels& levels, const std::vector<Run>& runs);

}  // namespace placement::flat::rows
