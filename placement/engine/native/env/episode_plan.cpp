#include "env/episode_plan.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "env/off_grid.hpp"
#include "env/snapshot.hpp"

namespace placement {
namespace {

// First and last index whose interval lies inside [0, extent]; first > last if none does.
std::pair<int, int> inside(const std::vector<double>& centres, double length, double extent) {
  int first = 0, last = static_cast<int>(centres.size()) - 1;
  while (first <= last && reaches_beyond(centres[first], length, extent)) ++first;
  while (last >= first && reaches_beyond(centres[last], length, extent)) --last;
  return {first, last};
}

// The nearest centres below the given ones at which a macro of `length` µm has its lower corner on the grid.
std::vector<double> snapped(std::vector<double> centres, double length, double pitch, double offset) {
  if (!(pitch > 0)) return centres;
  for (double& centre : centres) {
    centre = offset + pitch * pitches_below(centre - length / 2, pitch, offset) + length / 2;
  }
  return centres;
}

}  // namespace

EpisodePlan::EpisodePlan(std::shared_ptr<const Design> design_)
    : design(std::move(design_)),
      canvas(design->action_canvas()),
      cell_width(canvas.cell_width()),
      cell_height(canvas.cell_height()),
      words((canvas.columns + 63) / 64),
      share(static_cast<double>(design->nodes()) + 1),
      fingerprint(placement::fingerprint(*design)) {
  for (int column = 0; column < canvas.columns; ++column) column_x.push_back((column + 0.5) * cell_width);
  for (int row = 0; row < canvas.rows; ++row) row_y.push_back((row + 0.5) * cell_height);
  if (design->placing_order.empty()) throw UnplayableDesign(-1, "it has no movable hard macro");
  for (int node = 0; node < design->nodes(); ++node) {
    if (is_given(node) && !design->placed[node]) {
      throw UnplayableDesign(node, "is fixed but has no position in the initial placement");
    }
  }
  for (const int node : design->placing_order) plan_macro(node);
  plan_spacing();
  plan_nets();
  plan_given();
  plan_shapes();
}

bool EpisodePlan::is_given(int node) const {
  const Kind kind = design->kind_of(node);
  return design->fixed[node] || kind == Kind::port || kind == Kind::cell;
}

void EpisodePlan::plan_macro(int node) {
  const std::int8_t orientation = design->initial_orientation[node];
  MacroToPlace macro{};
  macro.node = node;
  macro.width = design->width_of(node, orientation);
  macro.height = design->height_of(node, orientation);
  const Constraints& constraints = design->constraints;
  macro.halo = constraints.halo_of(node, orientation);
  macro.keep_set = constraints.any ? constraints.keep_set[node] : -1;
  macro.grid = constraints.grid_of(node, orientation);
  if (!constraints.allows(node, orientation)) {
    throw UnplayableDesign(node, "has an orientation that is not allowed");
  }
  macros.push_back(macro);
  if (!design->off_grid) span_inside(macros.back());
}

void EpisodePlan::plan_spacing() {
  constexpr double kMostCovered = 0.5;
  double cells = 0;
  for (const MacroToPlace& macro : macros) {
    cells += std::ceil((macro.width + design->spacing) / cell_width) * std::ceil((macro.height + design->spacing) / cell_height);
  }
  if (cells <= kMostCovered * canvas.cells()) spacing = design->spacing;
}

void EpisodePlan::span_inside(MacroToPlace& macro) const {
  const SnapGrid& grid = macro.grid;
  std::tie(macro.first_column, macro.last_column) =
      inside(snapped(column_x, macro.width, grid.pitch_x, grid.offset_x), macro.width, canvas.width);
  std::tie(macro.first_row, macro.last_row) =
      inside(snapped(row_y, macro.height, grid.pitch_y, grid.offset_y), macro.height, canvas.height);
  if (macro.first_column > macro.last_column || macro.first_row > macro.last_row) {
    throw GridTooCoarse(macro.node, "extends beyond the canvas at the centre of every gcell; another grid is needed");
  }
}

void EpisodePlan::plan_nets() {
  std::vector<int> step_of(design->nodes(), -1);
  for (int step = 0; step < steps(); ++step) step_of[macros[step].node] = step;
  std::vector<std::vector<MacroNet>> nets_of(macros.size());
  std::vector<double> weight_of(macros.size(), 0.0);
  std::vector<std::int32_t> span_of(macros.size(), 0), net_of(macros.size(), -1);  // span and net of a step
  for (int net = 0; net < design->nets(); ++net) {
    Box given;
    std::vector<std::pair<int, MacroNet>> spans;  // by step
    for (int i = design->net_start[net]; i < design->net_start[net + 1]; ++i) {
      const int pin = design->net_pins[i], node = design->pin_node[pin];
      const bool turned = design->kind_of(node) == Kind::hard;
      const auto& turn = kTurn[turned ? design->initial_orientation[node] : 0];
      const double dx = turn[0] * design->pin_dx[pin] + turn[1] * design->pin_dy[pin];
      const double dy = turn[2] * design->pin_dx[pin] + turn[3] * design->pin_dy[pin];
      const int step = step_of[node];
      if (step >= 0) {
        if (net_of[step] != net) {
          net_of[step] = net;
          span_of[step] = static_cast<std::int32_t>(spans.size());
          spans.push_back({step, {0, design->net_weight[net], dx, dx, dy, dy}});
        } else {
          MacroNet& pins = spans[span_of[step]].second;
          pins = {0, pins.weight, std::min(pins.left, dx), std::max(pins.right, dx), std::min(pins.bottom, dy),
                  std::max(pins.top, dy)};
        }
      } else if (is_given(node)) {
        const double x = design->initial_x[node] + dx, y = design->initial_y[node] + dy;
        given.include(x, x, y, y);
      }
    }
    for (const auto& [step, pins] : spans) weight_of[step] += pins.weight;
    const bool can_grow = spans.size() + (given.empty() ? 0 : 1) > 1;  // otherwise it never has two placed ends
    if (!can_grow || design->net_weight[net] == 0) continue;
    for (auto& [step, pins] : spans) {
      pins.net = static_cast<std::int32_t>(given_boxes.size());
      nets_of[step].push_back(pins);
    }
    given_boxes.push_back(given);
  }
  for (int step = 0; step < steps(); ++step) {
    MacroToPlace& macro = macros[step];
    macro.first_net = static_cast<std::int32_t>(macro_nets.size());
    macro_nets.insert(macro_nets.end(), nets_of[step].begin(), nets_of[step].end());
    macro.last_net = static_cast<std::int32_t>(macro_nets.size());
    const double scale = (canvas.width + canvas.height) * weight_of[step];
    macro.wire_scale = scale > 0 ? 1 / scale : 0;
  }
}

void EpisodePlan::plan_given() {
  given_occupancy.assign(canvas.cells(), 0.0);
  given_density.assign(canvas.cells(), 0.0);
  for (int node = 0; node < design->nodes(); ++node) {
    const Kind kind = design->kind_of(node);
    if (!design->fixed[node] || (kind != Kind::hard && kind != Kind::soft)) continue;
    const std::int8_t orientation = design->initial_orientation[node];
    const Obstacle macro{design->initial_x[node], design->initial_y[node], design->width_of(node, orientation),
                         design->height_of(node, orientation), node};
    if (kind == Kind::hard) fixed_macros.push_back(macro);
    for_covered_cells(*this, macro.x, macro.y, macro.width, macro.height, [this, kind](int cell, double covered) {
      given_density[cell] += covered;
      if (kind == Kind::hard) given_occupancy[cell] += covered;
    });
  }
}

void EpisodePlan::plan_shapes() {
  std::vector<const MacroToPlace*> examples;  // [S]
  for (MacroToPlace& macro : macros) {
    const auto same = std::find_if(examples.begin(), examples.end(), [&macro](const MacroToPlace* other) {
      return other->width == macro.width && other->height == macro.height && other->halo == macro.halo &&
             other->keep_set == macro.keep_set && other->grid == macro.grid;
    });
    macro.shape = static_cast<std::int32_t>(same - examples.begin());
    if (same == examples.end()) examples.push_back(&macro);
  }
  shapes = static_cast<int>(examples.size());
  if (!design->off_grid && design->constraints.snaps()) {
    for (const MacroToPlace* macro : examples) {
      const SnapGrid& grid = macro->grid;
      const auto across = snapped(column_x, macro->width, grid.pitch_x, grid.offset_x);
      const auto up = snapped(row_y, macro->height, grid.pitch_y, grid.offset_y);
      snapped_x.insert(snapped_x.end(), across.begin(), across.end());
      snapped_y.insert(snapped_y.end(), up.begin(), up.end());
    }
  }
  const MacroToPlace* without = plan_places(examples);
  if (without != nullptr && spacing > 0) {
    spacing = 0;
    without = plan_places(examples);
  }
  if (without != nullptr && design->constraints.any) {
    if (design->off_grid) {
      throw UnplayableDesign(without->node, "has no legal position between constraints and fixed macros");
    }
    throw GridTooCoarse(without->node,
                        "has no legal gcell between constraints and fixed macros; a finer grid may have one");
  }
  if (!design->off_grid) plan_reaches(examples);
}

const MacroToPlace* EpisodePlan::plan_places(const std::vector<const MacroToPlace*>& examples) {
  const auto set = static_cast<std::size_t>(canvas.rows) * words;
  const auto is_empty = [set](const std::uint64_t* cells) {
    return std::all_of(cells, cells + set, [](std::uint64_t word) { return word == 0; });
  };
  if (!design->off_grid) {
    plan_free_cells(examples);
    for (int shape = 0; shape < shapes; ++shape) {
      if (is_empty(free_cells.data() + shape * set)) return examples[shape];
    }
    return nullptr;
  }
  if (!design->constraints.any && spacing == 0) return nullptr;
  OffGrid off_grid(*this);
  std::vector<std::uint64_t> cells(set);
  for (const MacroToPlace* macro : examples) {
    off_grid.begin(*macro);
    off_grid.forbid_given(*macro);
    off_grid.find(cells.data());
    if (is_empty(cells.data())) return macro;
  }
  return nullptr;
}

void EpisodePlan::plan_reaches(const std::vector<const MacroToPlace*>& examples) {
  const auto reach = [this](double own, double other, double gap, double size, double pitch, int count) {
    const double share = allowed_share(gap, canvas.overlap_threshold);
    const double nearer = pitch > 0 ? pitch + kLengthTolerance : 0;  // snapping may bring them closer by this much
    std::int32_t apart = 0;
    while (apart < count && intervals_overlap(0, own, std::max(0.0, apart * size - nearer), other, share)) ++apart;
    return apart - 1;
  };
  const SnapGrid& grid = design->constraints.coarsest;
  for (const MacroToPlace* macro : examples) {
    for (const MacroToPlace* other : examples) {
      const auto across = [&](double halos) {
        return reach(macro->width, other->width, halos, cell_width, grid.pitch_x, canvas.columns);
      };
      const auto up = [&](double halos) {
        return reach(macro->height, other->height, halos, cell_height, grid.pitch_y, canvas.rows);
      };
      const Halo &own = macro->halo, &theirs = other->halo;
      const CellReach all{across(gap_across(own, theirs)), across(gap_across(theirs, own)), up(gap_up(own, theirs)),
                          up(gap_up(theirs, own))};
      const bool never = std::max(all.left, all.right) < 0 || std::max(all.below, all.above) < 0;
      reaches.push_back(never ? CellReach{} : all);
    }
  }
}

// Removes from a set the gcells whose centres may be inside an open rectangle enlarged by a pitch of the snapping grid.
void EpisodePlan::block_band(double x, double y, double reach_x, double reach_y, std::uint64_t* cells) const {
  const SnapGrid& grid = design->constraints.coarsest;
  const auto within = [](const std::vector<double>& centres, double size, double at, double reach, double pitch) {
    const double low = at - reach + kLengthTolerance, high = at + reach - kLengthTolerance + pitch;
    const int count = static_cast<int>(centres.size());
    int first = static_cast<int>(std::clamp(std::floor(low / size - 0.5), 0.0, static_cast<double>(count)));
    int last = static_cast<int>(std::clamp(std::ceil(high / size - 0.5), -1.0, count - 1.0));
    while (first <= last && centres[first] <= low) ++first;
    while (last >= first && centres[last] >= high) --last;
    return std::pair<int, int>{first, last};
  };
  const auto [first_row, last_row] = within(row_y, cell_height, y, reach_y, std::max(grid.pitch_y, 0.0));
  const auto [first_column, last_column] = within(column_x, cell_width, x, reach_x, std::max(grid.pitch_x, 0.0));
  block_cells(cells, words, first_row, last_row, first_column, last_column);
}

void EpisodePlan::block_channels(const MacroToPlace& macro, const HardBox& other, std::uint64_t* cells) const {
  const Constraints& constraints = design->constraints;
  for_channel_bands(macro.width, macro.height, macro.halo, other, constraints.channel, constraints.coarsest,
                    [&](double x, double y, double reach_x, double reach_y) { block_band(x, y, reach_x, reach_y, cells); });
}

void EpisodePlan::plan_free_cells(const std::vector<const MacroToPlace*>& examples) {
  const Constraints& constraints = design->constraints;
  const auto set = static_cast<std::size_t>(canvas.rows) * words;
  free_cells.assign(shapes * set, 0);
  for (int shape = 0; shape < shapes; ++shape) {
    const MacroToPlace& macro = *examples[shape];
    std::uint64_t* cells = free_cells.data() + shape * set;
    for (int row = macro.first_row; row <= macro.last_row; ++row) {
      for (int word = 0; word < words; ++word) {
        cells[row * words + word] = bits(macro.first_column - 64 * word, macro.last_column - 64 * word);
      }
    }
    // Gcells where the macro would overlap an interval (centre, length) by more than `share`.
    const auto blocked = [&](bool across, double centre, double length, double share) {
      const std::vector<double>& centres = across ? column_x : row_y;
      const double own = across ? macro.width : macro.height;
      if (snapped_x.empty()) return blocked_by(centres, 1 / (across ? cell_width : cell_height), own, centre, length, share);
      int first = 0, last = static_cast<int>(centres.size()) - 1;
      const auto overlaps = [&](int i) {
        return intervals_overlap(across ? x_of(shape, i) : y_of(shape, i), own, centre, length, share);
      };
      while (first <= last && !overlaps(first)) ++first;
      while (last >= first && !overlaps(last)) --last;
      return std::pair<int, int>{first, last};
    };
    for (const Obstacle& fixed : fixed_macros) {
      const std::int8_t orientation = design->initial_orientation[fixed.node];
      const Halo halo = constraints.halo_of(fixed.node, orientation);
      // Allowed overlaps with the macro on the lower and on the higher side, expressed as one obstacle between them.
      const auto blocked_beside = [&](bool across, double centre, double length, double gap_low, double gap_high) {
        const double low = allowed_share(gap_low, canvas.overlap_threshold);
        const double high = allowed_share(gap_high, canvas.overlap_threshold);
        return blocked(across, centre + (low - high) / 2, length, (low + high) / 2);
      };
      const auto [first_row, last_row] =
          blocked_beside(false, fixed.y, fixed.height, gap_up(macro.halo, halo), gap_up(halo, macro.halo));
      const auto [first_column, last_column] =
          blocked_beside(true, fixed.x, fixed.width, gap_across(macro.halo, halo), gap_across(halo, macro.halo));
      block_cells(cells, words, first_row, last_row, first_column, last_column);
      if (!constraints.channel.is_set()) continue;
      block_channels(macro, hard_box(*design, fixed.node, fixed.x, fixed.y, orientation), cells);
    }
    if (constraints.channel.is_set()) {
      for_channel_edges(macro.width, macro.height, canvas, constraints.channel, constraints.coarsest,
                        [&](double x, double y, double reach_x, double reach_y) { block_band(x, y, reach_x, reach_y, cells); });
    }
    constraints.for_keep_outs(macro.node, [&](const KeepOut& off) {
      const auto [first_row, last_row] = blocked(false, off.y, off.height, 0);
      const auto [first_column, last_column] = blocked(true, off.x, off.width, 0);
      block_cells(cells, words, first_row, last_row, first_column, last_column);
    });
  }
}

}  // namespace placement
