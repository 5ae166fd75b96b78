#include "env/state.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

namespace placement {
namespace {

// Expands eight bits to eight bytes of 0 or 1, the lowest bit first.
constexpr auto kSpread = [] {
  std::array<std::array<std::uint8_t, 8>, 256> table{};
  for (int byte = 0; byte < 256; ++byte) {
    for (int bit = 0; bit < 8; ++bit) table[byte][bit] = (byte >> bit) & 1;
  }
  return table;
}();

// Adds Σ weight · distance to the nearest point of [low, high] over the points at `centres`, for many intervals in time
// linear in intervals plus centres: each adds a line that starts where its slope begins.
class Hinges {
 public:
  Hinges(const std::vector<double>& centres, double inverse_size, double* slope, double* offset)
      : count_(static_cast<int>(centres.size())), inverse_size_(inverse_size), slope_(slope), offset_(offset) {
    std::fill(slope_, slope_ + count_ + 1, 0.0);
    std::fill(offset_, offset_ + count_ + 1, 0.0);
  }

  void add(double low, double high, double weight) {
    const int right = first_beyond(high, inverse_size_, count_);
    slope_[right] += weight;
    offset_[right] -= weight * high;
    const int left = first_beyond(low, inverse_size_, count_);  // centres before it cost weight · (low - centre)
    slope_[0] -= weight;
    offset_[0] += weight * low;
    slope_[left] += weight;
    offset_[left] -= weight * low;
  }

  void write(const std::vector<double>& centres, double* out) const {
    double slope = 0, offset = 0;
    for (int i = 0; i < count_; ++i) {
      slope += slope_[i];
      offset += offset_[i];
      out[i] = std::max(0.0, slope * centres[i] + offset);
    }
  }

 private:
  int count_;
  double inverse_size_;
  double *slope_, *offset_;
};

}  // namespace

PlacementState::PlacementState(std::shared_ptr<const EpisodePlan> plan) : plan_(std::move(plan)) {
  const Canvas& canvas = plan_->canvas;
  words_ = plan_->words;
  legal_.resize(static_cast<std::size_t>(canvas.rows) * words_);
  placed_.resize(plan_->macros.size());
  cells_.resize(plan_->macros.size());
  saved_boxes_.resize(plan_->macro_nets.size());
  hinges_.resize(2 * (std::max(canvas.columns, canvas.rows) + 1));
  if (plan_->design->off_grid) off_grid_.emplace(*plan_);
  shown_.resize(2 * plan_->given_occupancy.size());
  reset();
}

void PlacementState::reset() {
  step_ = 0;
  boxes_ = plan_->given_boxes;
  occupancy_ = plan_->given_occupancy;
  density_ = plan_->given_density;
  for (std::size_t cell = 0; cell < occupancy_.size(); ++cell) show(cell);
  find_legal();
}

void PlacementState::place(int row, int column) {
  const MacroToPlace& macro = plan_->macros[step_];
  Obstacle placed{plan_->x_of(macro.shape, column), plan_->y_of(macro.shape, row), macro.width, macro.height,
                  macro.node};
  if (off_grid_) {
    const auto at = off_grid_->place(row, column).value();
    placed.x = at[0];
    placed.y = at[1];
  }
  for (int i = macro.first_net; i < macro.last_net; ++i) {
    const MacroNet& pins = plan_->macro_nets[i];
    Box& box = boxes_[pins.net];
    saved_boxes_[i] = box;
    box.include(placed.x + pins.left, placed.x + pins.right, placed.y + pins.bottom, placed.y + pins.top);
  }
  add_area(placed, 1.0);
  placed_[step_] = placed;
  cells_[step_] = {row, column, macro.shape};
  ++step_;
  find_legal();
}

void PlacementState::undo() {
  --step_;
  const MacroToPlace& macro = plan_->macros[step_];
  for (int i = macro.first_net; i < macro.last_net; ++i) boxes_[plan_->macro_nets[i].net] = saved_boxes_[i];
  add_area(placed_[step_], -1.0);
  find_legal();
}

void PlacementState::add_area(const Obstacle& macro, double sign) {
  for_covered_cells(*plan_, macro.x, macro.y, macro.width, macro.height, [this, sign](int cell, double covered) {
    occupancy_[cell] += sign * covered;
    density_[cell] += sign * covered;
    show(cell);
  });
}

void PlacementState::find_legal() {
  const Canvas& canvas = plan_->canvas;
  legal_cells_ = 0;
  if (complete()) {
    std::fill(legal_.begin(), legal_.end(), 0);
    return;
  }
  if (off_grid_) return find_legal_off_grid();
  const std::int32_t shape = plan_->macros[step_].shape;
  std::copy_n(plan_->free_cells.data() + shape * legal_.size(), legal_.size(), legal_.data());
  const CellReach* reach_of = plan_->reaches.data() + static_cast<std::ptrdiff_t>(shape) * plan_->shapes;
  for (int t = 0; t < step_; ++t) {
    const auto [row, column, other] = cells_[t];
    const CellReach& reach = reach_of[other];
    block_cells(legal_.data(), words_, std::max(row - reach.below, 0), std::min(row + reach.above, canvas.rows - 1),
                std::max(column - reach.left, 0), std::min(column + reach.right, canvas.columns - 1));
  }
  if (plan_->design->constraints.channel.is_set()) {
    for (int t = 0; t < step_; ++t) plan_->block_channels(plan_->macros[step_], placed_box(t), legal_.data());
  }
  for (const std::uint64_t word : legal_) legal_cells_ += __builtin_popcountll(word);
}

HardBox PlacementState::placed_box(int t) const {
  const Obstacle& at = placed_[t];
  return hard_box(*plan_->design, at.node, at.x, at.y, plan_->design->initial_orientation[at.node]);
}

void PlacementState::find_legal_off_grid() {
  const MacroToPlace& macro = plan_->macros[step_];
  off_grid_->begin(macro);
  off_grid_->forbid_given(macro);
  for (int t = 0; t < step_; ++t) {
    off_grid_->forbid_beside(macro, placed_box(t), plan_->spacing);
  }
  off_grid_->find(legal_.data());
  for (const std::uint64_t word : legal_) legal_cells_ += __builtin_popcountll(word);
}

std::pair<int, int> PlacementState::nth_legal(int n) const {
  std::size_t index = 0;
  for (int count; n >= (count = __builtin_popcountll(legal_[index])); ++index) n -= count;
  std::uint64_t word = legal_[index];
  for (; n > 0; --n) word &= word - 1;
  const int row = static_cast<int>(index) / words_;
  return {row, 64 * (static_cast<int>(index) % words_) + __builtin_ctzll(word)};
}

Verdict PlacementState::judge(int row, int column, int* obstacle) const {
  const Canvas& canvas = plan_->canvas;
  if (row < 0 || row >= canvas.rows || column < 0 || column >= canvas.columns) return Verdict::out_of_range;
  if (complete()) return Verdict::all_placed;
  if (is_legal(row, column)) return Verdict::legal;
  const MacroToPlace& macro = plan_->macros[step_];
  if (off_grid_) return off_grid_->reaches(row, column) ? why_not(row, column, obstacle) : Verdict::outside_canvas;
  if (row < macro.first_row || row > macro.last_row || column < macro.first_column || column > macro.last_column) {
    return Verdict::outside_canvas;
  }
  return why_not(row, column, obstacle);
}

// The reason why a gcell inside the canvas is illegal.
Verdict PlacementState::why_not(int row, int column, int* obstacle) const {
  const Design& design = *plan_->design;
  const MacroToPlace& macro = plan_->macros[step_];
  const auto box_of = [&design](const Obstacle& at) {
    return hard_box(design, at.node, at.x, at.y, design.initial_orientation[at.node]);
  };
  Obstacle here{plan_->x_of(macro.shape, column), plan_->y_of(macro.shape, row), macro.width, macro.height, macro.node};
  if (off_grid_) {
    const auto at = off_grid_->centre(row, column);
    here.x = at[0];
    here.y = at[1];
  }
  const HardBox box = box_of(here);
  const double threshold = design.canvas.overlap_threshold;
  Verdict verdict = Verdict::too_close;
  const auto in_the_way = [&](const Obstacle& other, double spacing) {
    if (!too_close(box, box_of(other), spacing, threshold)) return;
    *obstacle = other.node;
    const bool apart = !intervals_overlap(here.x, here.width, other.x, other.width, threshold) ||
                       !intervals_overlap(here.y, here.height, other.y, other.height, threshold);
    verdict = apart ? Verdict::too_close : Verdict::overlaps;
  };
  for (const Obstacle& other : plan_->fixed_macros) in_the_way(other, plan_->spacing);
  for (int t = 0; t < step_; ++t) in_the_way(placed_[t], plan_->spacing);
  if (*obstacle >= 0) return verdict;
  if (const Channel& channel = design.constraints.channel; channel.is_set()) {
    const auto narrow = [&](const Obstacle& other) {
      if (breaks_channel(box, box_of(other), channel, design.constraints.coarsest)) *obstacle = other.node;
    };
    for (const Obstacle& other : plan_->fixed_macros) narrow(other);
    for (int t = 0; t < step_; ++t) narrow(placed_[t]);
    if (*obstacle >= 0) return Verdict::narrow_channel;
    if (breaks_channel_at_edge(box, design.canvas, channel, design.constraints.coarsest)) return Verdict::narrow_channel;
  }
  design.constraints.for_keep_outs(macro.node, [&](const KeepOut& off) {
    if (!stands_on(box, off, 0)) return;
    verdict = off.kind == KeepOutKind::blockage ? Verdict::on_blockage
              : off.kind == KeepOutKind::region ? Verdict::off_region
                                                : Verdict::near_port;
  });
  if (verdict != Verdict::too_close) return verdict;
  if (off_grid_) return Verdict::off_lines;  // it fits at the centre, but not on the snapping grid
  // The mask has a margin of one pitch of the snapping grid; the obstacle is whatever the mask counts as met.
  const CellReach* reach_of = plan_->reaches.data() + static_cast<std::ptrdiff_t>(macro.shape) * plan_->shapes;
  for (int t = 0; t < step_; ++t) {
    const CellReach& reach = reach_of[cells_[t].shape];
    const int up = row - cells_[t].row, across = column - cells_[t].column;
    if (up >= -reach.below && up <= reach.above && across >= -reach.left && across <= reach.right) {
      *obstacle = placed_[t].node;
    }
  }
  // Channels are the only reason left.
  if (*obstacle < 0 && design.constraints.channel.is_set()) return Verdict::narrow_channel;
  return verdict;
}

void PlacementState::wire_mask(double* column_wire, double* row_wire) const {
  const Canvas& canvas = plan_->canvas;
  if (complete()) {
    std::fill(column_wire, column_wire + canvas.columns, 0.0);
    std::fill(row_wire, row_wire + canvas.rows, 0.0);
    return;
  }
  const MacroToPlace& macro = plan_->macros[step_];
  const auto sum = [&](bool horizontal, const std::vector<double>& centres, double size, double* out) {
    Hinges hinges(centres, 1 / size, hinges_.data(), hinges_.data() + centres.size() + 1);
    for (int i = macro.first_net; i < macro.last_net; ++i) {
      const MacroNet& pins = plan_->macro_nets[i];
      const Box& box = boxes_[pins.net];
      if (box.empty()) continue;
      // The macro's pins span [centre + left, centre + right]; the part outside the box is added.
      if (horizontal) {
        hinges.add(box.low_x - pins.left, box.high_x - pins.right, pins.weight);
      } else {
        hinges.add(box.low_y - pins.bottom, box.high_y - pins.top, pins.weight);
      }
    }
    hinges.write(centres, out);
  };
  sum(true, plan_->column_x, plan_->cell_width, column_wire);
  sum(false, plan_->row_y, plan_->cell_height, row_wire);
}

void PlacementState::write_mask(std::uint8_t* mask, int stride) const {
  const Canvas& canvas = plan_->canvas;
  for (int row = 0; row < canvas.rows; ++row) {
    std::uint8_t* out = mask + static_cast<std::ptrdiff_t>(row) * stride;
    const auto spread_at = [words = &legal_[row * words_]](int column) {
      return kSpread[static_cast<std::uint8_t>(words[column / 64] >> (column % 64))].data();
    };
    int column = 0;
    for (; column + 8 <= canvas.columns; column += 8) std::memcpy(out + column, spread_at(column), 8);
    if (column < canvas.columns) std::memcpy(out + column, spread_at(column), canvas.columns - column);
  }
}

}  // namespace placement
