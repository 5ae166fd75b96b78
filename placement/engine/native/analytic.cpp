#include "analytic.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lanes.hpp"

namespace placement {
namespace {

constexpr float kLeastGain = 1e-6F;   // proxy cost; smaller gains are rounding
constexpr float kSlack = 1e-3F;       // of a gcell's side: a macro this much larger still counts as one gcell's

// values[i] += factor · amounts[i], for whole lanes.
inline void add_scaled(float* values, const float* amounts, float factor, int lanes) {
  const Lanes by = Lanes::all(factor);
  for (int i = 0; i < lanes; i += Lanes::kCount) (Lanes::load(values + i) + Lanes::load(amounts + i) * by).store(values + i);
}

// values[i] += factor · |amounts[i] − zero|.
inline void add_distances(float* values, const float* amounts, float zero, float factor, int lanes) {
  const Lanes by = Lanes::all(factor), from = Lanes::all(zero);
  for (int i = 0; i < lanes; i += Lanes::kCount) {
    const Lanes ahead = Lanes::load(amounts + i) - from, behind = from - Lanes::load(amounts + i);
    (Lanes::load(values + i) + max(ahead, behind) * by).store(values + i);
  }
}

// values[i] += factor · distance of at[i] from the interval [low, high].
inline void add_excess(float* values, const float* at, float low, float high, float factor, int lanes) {
  const Lanes by = Lanes::all(factor), first = Lanes::all(low), last = Lanes::all(high), zero = Lanes::all(0);
  for (int i = 0; i < lanes; i += Lanes::kCount) {
    const Lanes here = Lanes::load(at + i);
    (Lanes::load(values + i) + max(max(first - here, here - last), zero) * by).store(values + i);
  }
}

float between(float first, float last, float share) { return first * std::pow(last / first, share); }

Softness between(const Softness& first, const Softness& last, float share) {
  return {between(first.density, last.density, share), between(first.congestion, last.congestion, share),
          between(first.density_weight, last.density_weight, share),
          between(first.congestion_weight, last.congestion_weight, share)};
}

}  // namespace

Analytic::Analytic(std::shared_ptr<const Design> design, AnalyticOptions options)
    : design_(std::move(design)),
      options_(options),
      nets_(*design_),
      evaluator_(design_),
      maps_(*design_, options_.weights),
      start_(design_, options_.start_iterations) {
  const Canvas& canvas = design_->canvas;
  soft_of_.assign(design_->nodes(), -1);
  for (std::size_t i = 0; i < start_.nodes().size(); ++i) soft_of_[start_.nodes()[i]] = static_cast<std::int32_t>(i);
  build_incidences();
  spots_.resize(nets_.points());
  boxes_.resize(start_.nodes().size());
  x_.resize(boxes_.size());
  y_.resize(boxes_.size());
  stamp_.assign(canvas.cells(), 0);
  sinks_in_column_.resize(canvas.columns);
  drivers_in_row_.resize(canvas.rows);
  cover_x_.resize(canvas.columns);
  cover_y_.resize(canvas.rows);
}

void Analytic::build_incidences() {
  const double per_um = options_.weights.wirelength * nets_.per_wirelength;
  std::vector<std::vector<std::int32_t>> nets_of(start_.nodes().size());
  for (int net = 0; net < nets_.nets(); ++net) {
    for (int i = nets_.net_start[net]; i < nets_.net_start[net + 1]; ++i) {
      const int soft = soft_of_[nets_.point_node[nets_.net_points[i]]];
      if (soft >= 0 && (nets_of[soft].empty() || nets_of[soft].back() != net)) nets_of[soft].push_back(net);
    }
  }
  incidence_start_.push_back(0);
  for (std::size_t soft = 0; soft < nets_of.size(); ++soft) {
    for (const int net : nets_of[soft]) {
      Incidence incidence{static_cast<std::int32_t>(others_.size()), 0, -1, false, 0, 0, 0, 0, 0, 0};
      for (int i = nets_.net_start[net]; i < nets_.net_start[net + 1]; ++i) {
        const int point = nets_.net_points[i];
        if (nets_.point_node[point] != start_.nodes()[soft]) {
          others_.push_back(point);
          continue;
        }
        const auto dx = static_cast<float>(nets_.point_dx[point]), dy = static_cast<float>(nets_.point_dy[point]);
        const bool first = incidence.own < 0;
        if (first) incidence.own = point;
        incidence.drives |= i == nets_.net_start[net];
        incidence.low_dx = first ? dx : std::min(incidence.low_dx, dx);
        incidence.high_dx = first ? dx : std::max(incidence.high_dx, dx);
        incidence.low_dy = first ? dy : std::min(incidence.low_dy, dy);
        incidence.high_dy = first ? dy : std::max(incidence.high_dy, dy);
      }
      incidence.others_end = static_cast<std::int32_t>(others_.size());
      incidence.wire_price = static_cast<float>(per_um * nets_.wire_weight[net]);
      incidence.route_weight = static_cast<float>(nets_.route_weight[net]);
      if (incidence.others_end > incidence.others_start) incidences_.push_back(incidence);
    }
    incidence_start_.push_back(static_cast<std::int32_t>(incidences_.size()));
  }
}

void Analytic::set_box(int soft, const std::int8_t* orientation) {
  const Canvas& canvas = design_->canvas;
  const int node = start_.nodes()[soft];
  const double width = design_->width_of(node, orientation[node]), height = design_->height_of(node, orientation[node]);
  Box& box = boxes_[soft];
  box.width = static_cast<float>(width);
  box.height = static_cast<float>(height);
  const double low_x = std::min(width, canvas.width) / 2, low_y = std::min(height, canvas.height) / 2;
  box.low_x = static_cast<float>(low_x);
  box.high_x = static_cast<float>(canvas.width - low_x);
  box.low_y = static_cast<float>(low_y);
  box.high_y = static_cast<float>(canvas.height - low_y);
  box.first_column = canvas.column_of(box.low_x);
  box.last_column = canvas.column_of(box.high_x);
  box.first_row = canvas.row_of(box.low_y);
  box.last_row = canvas.row_of(box.high_y);
  box.one_cell = width <= canvas.cell_width() * (1 + kSlack) && height <= canvas.cell_height() * (1 + kSlack);
}

void Analytic::set_points(int node, const double* x, const double* y, const std::int8_t* orientation) {
  const bool hard = design_->kind_of(node) == Kind::hard;
  const auto& turn = kTurn[hard ? orientation[node] : 0];
  for (int point = nets_.point_start[node]; point < nets_.point_start[node + 1]; ++point) {
    const double dx = nets_.point_dx[point], dy = nets_.point_dy[point];
    const double px = x[node] + turn[0] * dx + turn[1] * dy, py = y[node] + turn[2] * dx + turn[3] * dy;
    const int column = design_->canvas.column_of(px), row = design_->canvas.row_of(py);
    spots_[point] = {static_cast<float>(px), static_cast<float>(py), static_cast<std::int16_t>(column),
                     static_cast<std::int16_t>(row), row * design_->canvas.columns + column};
  }
}

// Puts a soft macro's centre at (x, y).
void Analytic::stand(int soft, float x, float y) {
  x_[soft] = x;
  y_[soft] = y;
  const int node = start_.nodes()[soft];
  for (int point = nets_.point_start[node]; point < nets_.point_start[node + 1]; ++point) {
    const double px = x + nets_.point_dx[point], py = y + nets_.point_dy[point];
    const int column = design_->canvas.column_of(px), row = design_->canvas.row_of(py);
    spots_[point] = {static_cast<float>(px), static_cast<float>(py), static_cast<std::int16_t>(column),
                     static_cast<std::int16_t>(row), row * design_->canvas.columns + column};
  }
}

// Lays the window over the gcells around the macro that it may go to.
void Analytic::open_window(int soft) {
  const Canvas& canvas = design_->canvas;
  const Box& box = boxes_[soft];
  const auto lay = [](int here, int first, int last, int& start, int& count) {
    count = std::min(kWindow, last - first + 1);
    start = std::clamp(here - count / 2, first, last - count + 1);
  };
  Window& w = window_;
  lay(canvas.column_of(x_[soft]), box.first_column, box.last_column, w.column, w.columns);
  lay(canvas.row_of(y_[soft]), box.first_row, box.last_row, w.row, w.rows);
  w.lanes = round_up_to_lanes(w.columns);
  w.row_lanes = round_up_to_lanes(w.rows);
  const auto cell_width = static_cast<float>(canvas.cell_width()), cell_height = static_cast<float>(canvas.cell_height());
  for (int i = 0; i < w.lanes; ++i) {
    w.x[i] = std::min(std::max((static_cast<float>(w.column + i) + 0.5F) * cell_width, box.low_x), box.high_x);
    w.by_column[i] = 0;
  }
  for (int i = 0; i < w.row_lanes; ++i) {
    w.y[i] = std::min(std::max((static_cast<float>(w.row + i) + 0.5F) * cell_height, box.low_y), box.high_y);
    w.by_row[i] = 0;
  }
}

// Wirelength, and those parts of the routes' prices that depend on the column or the row alone. Collects the columns
// of the sinks it drives and the rows of its drivers for the rest.
void Analytic::price_nets(int soft) {
  Window& w = window_;
  std::fill(sinks_in_column_.begin(), sinks_in_column_.end(), 0.0F);
  std::fill(drivers_in_row_.begin(), drivers_in_row_.end(), 0.0F);
  sinks_weight_ = drivers_weight_ = 0;
  for (int i = incidence_start_[soft]; i < incidence_start_[soft + 1]; ++i) {
    const Incidence& net = incidences_[i];
    const Spot& first = spots_[others_[net.others_start]];
    float left = first.x, right = first.x, low = first.y, high = first.y;
    for (int k = net.others_start + 1; k < net.others_end; ++k) {
      const Spot& spot = spots_[others_[k]];
      left = std::min(left, spot.x);
      right = std::max(right, spot.x);
      low = std::min(low, spot.y);
      high = std::max(high, spot.y);
    }
    left -= net.low_dx;
    right -= net.high_dx;
    low -= net.low_dy;
    high -= net.high_dy;
    add_excess(w.by_column, w.x, left, right, net.wire_price, w.lanes);
    add_excess(w.by_row, w.y, low, high, net.wire_price, w.row_lanes);
    const float weight = net.route_weight;
    if (!net.drives) {  // along the driver's row, then along the own column
      const float* sums = maps_.horizontal_sum_row(first.row);
      const float there = sums[first.column];
      add_distances(w.by_column, sums + w.column, there, weight, w.lanes);
      drivers_in_row_[first.row] += weight;
      drivers_weight_ += weight;
      continue;
    }
    ++visit_;
    for (int k = net.others_start; k < net.others_end; ++k) {  // along the own row, then along the sink's column
      const Spot& spot = spots_[others_[k]];
      if (std::exchange(stamp_[spot.cell], visit_) == visit_) continue;
      const float* sums = maps_.vertical_sum_column(spot.column);
      const float there = sums[spot.row];
      add_distances(w.by_row, sums + w.row, there, weight, w.row_lanes);
      sinks_in_column_[spot.column] += weight;
      sinks_weight_ += weight;
    }
  }
}

// Routes along the own row to the sinks' columns, and the row's part of the total.
void Analytic::price_horizontal() {
  Window& w = window_;
  // Reaching all sinks from the window's first column, row by row.
  float beyond = sinks_weight_;
  for (int c = 0; c < maps_.columns(); ++c) {
    beyond -= sinks_in_column_[c];
    const float crossing = c < w.column ? sinks_weight_ - beyond : beyond;
    add_scaled(w.by_row, maps_.horizontal_price_column(c) + w.row, crossing, w.row_lanes);
  }
  // Going one column to the right nears the sinks beyond and leaves the others behind.
  alignas(32) float slope[kWindow];
  float behind = 0;
  for (int c = 0; c < w.column; ++c) behind += sinks_in_column_[c];
  for (int c = 0; c < w.columns; ++c) {
    behind += sinks_in_column_[w.column + c];
    slope[c] = 2 * behind - sinks_weight_;
  }
  for (int r = 0; r < w.rows; ++r) {
    const float* prices = maps_.horizontal_price_row(w.row + r) + w.column;
    float* total = w.total[r];
    float sum = w.by_row[r];
    for (int c = 0; c < w.columns; ++c) {
      total[c] = sum;
      sum += prices[c] * slope[c];
    }
  }
}

// Routes along the own column from the drivers' rows, and the column's part of the total.
void Analytic::price_vertical() {
  Window& w = window_;
  float beyond = drivers_weight_;
  for (int r = 0; r < maps_.rows(); ++r) {
    beyond -= drivers_in_row_[r];
    const float crossing = r < w.row ? drivers_weight_ - beyond : beyond;
    add_scaled(w.by_column, maps_.vertical_price_row(r) + w.column, crossing, w.lanes);
  }
  float behind = 0;
  for (int r = 0; r < w.row; ++r) behind += drivers_in_row_[r];
  for (int r = 0; r < w.rows; ++r) {
    add_scaled(w.total[r], w.by_column, 1, w.lanes);
    behind += drivers_in_row_[w.row + r];
    add_scaled(w.by_column, maps_.vertical_price_row(w.row + r) + w.column, 2 * behind - drivers_weight_, w.lanes);
  }
}

// The soft macro's own area is not in the map meanwhile.
void Analytic::price_density(int soft) {
  Window& w = window_;
  const Canvas& canvas = design_->canvas;
  const float soften = softness_.density, price = maps_.density_price(softness_);
  const Lanes start = Lanes::all(maps_.density_threshold() - soften), twice = Lanes::all(2 * soften);
  const Lanes curve = Lanes::all(price / (4 * soften)), slope = Lanes::all(price), zero = Lanes::all(0);
  const auto add = [&](int row_shift, int column_shift, float share) {
    const Lanes area = Lanes::all(share);
    for (int r = 0; r < w.rows; ++r) {
      const int row = w.row + r + row_shift;
      if (row < 0 || row >= canvas.rows) continue;
      const float* density = maps_.density_row(row) + w.column + column_shift;
      float* total = w.total[r];
      for (int c = 0; c < w.lanes; c += Lanes::kCount) {
        const Lanes before = Lanes::load(density + c) - start, after = before + area;
        const Lanes ramp_before = max(min(before, twice), zero), ramp_after = max(min(after, twice), zero);
        const Lanes above_before = max(before - twice, zero), above_after = max(after - twice, zero);
        (Lanes::load(total + c) + curve * (ramp_after * ramp_after - ramp_before * ramp_before) +
         slope * (above_after - above_before))
            .store(total + c);
      }
    }
  };
  const Box& box = boxes_[soft];
  const auto width = static_cast<float>(canvas.cell_width()), height = static_cast<float>(canvas.cell_height());
  if (box.one_cell) {
    add(0, 0, box.width * box.height / (width * height));
    return;
  }
  // Standing in the middle of a gcell, it covers the same shares of the gcells around wherever that is.
  const auto share = [](float size, float cell, int shift) {
    const float low = std::max(-size / 2, (static_cast<float>(shift) - 0.5F) * cell);
    const float high = std::min(size / 2, (static_cast<float>(shift) + 0.5F) * cell);
    return std::max(0.0F, high - low) / cell;
  };
  const int reach_x = std::min(PriceMaps::kPad - 1, static_cast<int>(box.width / width / 2 + 0.5F));
  const int reach_y = static_cast<int>(box.height / height / 2 + 0.5F);
  for (int i = -reach_y; i <= reach_y; ++i) {
    for (int j = -reach_x; j <= reach_x; ++j) {
      const float covered = share(box.height, height, i) * share(box.width, width, j);
      if (covered > 0) add(i, j, covered);
    }
  }
}

void Analytic::add_density(int soft, float sign) {
  const Canvas& canvas = design_->canvas;
  const Box& box = boxes_[soft];
  const auto width = static_cast<float>(canvas.cell_width()), height = static_cast<float>(canvas.cell_height());
  if (box.one_cell) {
    maps_.density_row(canvas.row_of(y_[soft]))[canvas.column_of(x_[soft])] +=
        sign * box.width * box.height / (width * height);
    return;
  }
  const float left = x_[soft] - box.width / 2, right = x_[soft] + box.width / 2;
  const float low = y_[soft] - box.height / 2, high = y_[soft] + box.height / 2;
  for (int row = canvas.row_of(low); row <= canvas.row_of(high); ++row) {
    const auto bottom = static_cast<float>(row) * height;
    const float up = std::max(0.0F, std::min(high, bottom + height) - std::max(low, bottom)) / height;
    for (int column = canvas.column_of(left); column <= canvas.column_of(right); ++column) {
      const auto start = static_cast<float>(column) * width;
      const float across = std::max(0.0F, std::min(right, start + width) - std::max(left, start)) / width;
      maps_.density_row(row)[column] += sign * up * across;
    }
  }
}

// Adds (sign 1) or takes away (−1) the routes that end at the soft macro, as a star from each net's driver.
void Analytic::add_routes(int soft, float sign) {
  for (int i = incidence_start_[soft]; i < incidence_start_[soft + 1]; ++i) {
    const Incidence& net = incidences_[i];
    const Spot own = spots_[net.own];
    const float weight = sign * net.route_weight;
    ++visit_;
    stamp_[own.cell] = visit_;
    if (net.drives) {
      for (int k = net.others_start; k < net.others_end; ++k) {
        const Spot& sink = spots_[others_[k]];
        if (std::exchange(stamp_[sink.cell], visit_) == visit_) continue;
        maps_.add_horizontal(own.row, own.column, sink.column, weight);
        maps_.add_vertical(sink.column, own.row, sink.row, weight);
      }
      continue;
    }
    bool reached = false;  // the driver or another sink is in the same gcell
    for (int k = net.others_start; k < net.others_end; ++k) reached |= spots_[others_[k]].cell == own.cell;
    if (reached) continue;
    const Spot& driver = spots_[others_[net.others_start]];
    maps_.add_horizontal(driver.row, driver.column, own.column, weight);
    maps_.add_vertical(own.column, driver.row, own.row, weight);
  }
}

// Moves the soft macro to the best gcell of its window; returns whether that is another one.
bool Analytic::improve(int soft) {
  open_window(soft);
  add_density(soft, -1);
  price_nets(soft);
  price_horizontal();
  price_vertical();
  price_density(soft);
  const Window& w = window_;
  const int row = design_->canvas.row_of(y_[soft]) - w.row, column = design_->canvas.column_of(x_[soft]) - w.column;
  alignas(32) float least[kWindow];  // in each column
  std::copy(w.total[0], w.total[0] + w.lanes, least);
  for (int r = 1; r < w.rows; ++r) {
    for (int c = 0; c < w.lanes; c += Lanes::kCount) {
      min(Lanes::load(least + c), Lanes::load(w.total[r] + c)).store(least + c);
    }
  }
  const int best_column = static_cast<int>(std::min_element(least, least + w.columns) - least);
  const bool moves = least[best_column] < w.total[row][column] - kLeastGain;
  if (moves) {
    int best_row = 0;
    while (w.total[best_row][best_column] != least[best_column]) ++best_row;
    add_routes(soft, -1);
    stand(soft, w.x[best_column], w.y[best_row]);
    add_routes(soft, 1);
  }
  add_density(soft, 1);
  return moves;
}

void Analytic::place(double* x, double* y, const std::int8_t* orientation) {
  const Canvas& canvas = design_->canvas;
  const auto& nodes = start_.nodes();
  const int count = static_cast<int>(nodes.size());
  if (count == 0) return;
  for (int node = 0; node < design_->nodes(); ++node) {
    if (soft_of_[node] < 0) set_points(node, x, y, orientation);
  }
  start_.place(x, y, orientation);
  for (int i = 0; i < count; ++i) {
    set_box(i, orientation);
    const Box& box = boxes_[i];
    const int column = std::clamp(canvas.column_of(x[nodes[i]]), box.first_column, box.last_column);
    const int row = std::clamp(canvas.row_of(y[nodes[i]]), box.first_row, box.last_row);
    stand(i, std::clamp(static_cast<float>((column + 0.5) * canvas.cell_width()), box.low_x, box.high_x),
          std::clamp(static_cast<float>((row + 0.5) * canvas.cell_height()), box.low_y, box.high_y));
    x[nodes[i]] = x_[i];
    y[nodes[i]] = y_[i];
  }
  evaluator_.evaluate(x, y, orientation, options_.weights);
  maps_.load(evaluator_);
  for (int sweep = 0; sweep < options_.sweeps; ++sweep) {
    const float share = options_.sweeps > 1 ? static_cast<float>(sweep) / static_cast<float>(options_.sweeps - 1) : 1;
    softness_ = between(options_.first, options_.last, share);
    maps_.set_thresholds();
    maps_.set_prices(softness_);
    int moves = 0;
    for (int i = 0; i < count; ++i) {
      if (!improve(i)) continue;
      ++moves;
      if (moves % options_.moves_per_threshold == 0) maps_.set_thresholds();
      if (moves % options_.moves_per_pricing == 0) maps_.set_prices(softness_);
    }
  }
  for (int i = 0; i < count; ++i) {
    x[nodes[i]] = x_[i];
    y[nodes[i]] = y_[i];
  }
}

}  // namespace placement
