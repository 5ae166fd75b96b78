#include "search/moves.hpp"

#include <algorithm>
#include <cmath>

#include "cost/legality.hpp"

namespace placement {

const std::vector<Move>& all_moves() {
  static const std::vector<Move> moves = [] {
    std::vector<Move> all = hard_moves();
    all.insert(all.end(), tidy_moves().begin(), tidy_moves().end());
    all.insert(all.end(), soft_moves().begin(), soft_moves().end());
    return all;
  }();
  return moves;
}

MoveProposer::MoveProposer(const IncrementalCost& cost, const MoveOptions& options)
    : cost_(cost),
      design_(cost.design()),
      legal_(design_, options.spacing),
      rotates_(options.rotate),
      snaps_(design_.constraints.snaps()),
      cell_width_(design_.canvas.cell_width()),
      cell_height_(design_.canvas.cell_height()) {
  pushed.assign(design_.nodes(), 0.0);
  for (const Move& move : all_moves()) reach.push_back(move.reach);
  for (int node = 0; node < design_.nodes(); ++node) {
    if (design_.fixed[node]) continue;
    if (design_.kind_of(node) == Kind::hard) hard_.push_back(node);
    if (design_.kind_of(node) == Kind::soft && options.moves_soft) soft_.push_back(node);
  }
  for (const KeepOut& off : design_.constraints.keep_outs) blocks_ |= off.kind == KeepOutKind::blockage;
  reset();
}

int MoveProposer::propose(int move, Random& random) {
  move_ = move;
  proposal.clear();
  if (!all_moves()[move].propose(*this, random)) return 0;
  for (const NodeMove& macro : proposal) {
    if (design_.kind_of(macro.node) == Kind::soft && on_blockage(macro)) return 0;
  }
  return static_cast<int>(proposal.size());
}

void MoveProposer::reset() { legal_.place(cost_.x().data(), cost_.y().data(), cost_.orientation().data()); }

void MoveProposer::accepted(int count) {
  for (int i = 0; i < count; ++i) legal_.place(proposal[i]);
  for (int i = 0; i < count && targets_; ++i) targets_->moved(proposal[i]);
}

void MoveProposer::find_congested() {
  const Canvas& canvas = design_.canvas;
  const int cells = canvas.cells(), count = std::max(1, cells / 10);
  std::vector<std::pair<double, int>> busy;
  for (int i = 0; i < cells; ++i) busy.emplace_back(-cost_.vertical_map()[i], i);
  for (int i = 0; i < cells; ++i) busy.emplace_back(-cost_.horizontal_map()[i], cells + i);
  std::nth_element(busy.begin(), busy.begin() + (count - 1), busy.end());
  std::sort(busy.begin(), busy.begin() + count);
  congested_rows_.clear();
  congested_columns_.clear();
  for (int i = 0; i < count; ++i) {
    const int cell = busy[i].second;
    if (cell >= cells) congested_rows_.push_back((cell - cells) % canvas.rows);
    else congested_columns_.push_back(cell % canvas.columns);
  }
}

bool MoveProposer::lands(NodeMove* moves, int count) const {
  if (count == 1 && legal_.has_channels()) {
    legal_.settle(moves[0]);
    clamp(moves[0]);
  }
  if (snaps_) {
    for (int i = 0; i < count; ++i) snap(moves[i]);
  }
  return legal_.fits(moves, count);
}

// Moves to the nearest position inside the canvas whose lower left corner is on the grid.
void MoveProposer::snap(NodeMove& move) const {
  const auto onto = [](double at, double length, double extent, double pitch, double offset) {
    if (!(pitch > 0)) return at;
    const double first = std::ceil((-offset - kLengthTolerance) / pitch);
    const double last = pitches_below(extent - length, pitch, offset);
    const double nearest = std::round((at - length / 2 - offset) / pitch);
    return offset + pitch * std::max(first, std::min(nearest, last)) + length / 2;
  };
  const SnapGrid& grid = design_.constraints.grid_of(move.node, move.orientation);
  move.x = onto(move.x, width(move), design_.canvas.width, grid.pitch_x, grid.offset_x);
  move.y = onto(move.y, height(move), design_.canvas.height, grid.pitch_y, grid.offset_y);
}

void MoveProposer::clamp(NodeMove& macro) const {
  const auto into = [](double at, double length, double extent) {
    const double margin = std::min(length, extent) / 2;
    return std::min(std::max(at, margin), extent - margin);
  };
  macro.x = into(macro.x, width(macro), design_.canvas.width);
  macro.y = into(macro.y, height(macro), design_.canvas.height);
}

void MoveProposer::go_near(NodeMove& macro, double x, double y, Random& random) const {
  const std::uint32_t axes = random.below(3);
  const double scale = random_scale(random);
  if (axes != 0) macro.x = x + scale * random.both_ways() * reach_x();
  if (axes != 1) macro.y = y + scale * random.both_ways() * reach_y();
}

bool MoveProposer::neighbour(int node, Random& random, double* x, double* y) const {
  const int start = cost_.node_net_start()[node], nets = cost_.node_net_start()[node + 1] - start;
  if (nets == 0) return false;
  const CompactNets& all = *cost_.nets();
  const int net = cost_.node_nets()[start + random.below(static_cast<std::uint32_t>(nets))], points = all.size(net);
  const int first = static_cast<int>(random.below(static_cast<std::uint32_t>(points)));
  for (int i = 0; i < points; ++i) {
    const int point = all.net_points[all.net_start[net] + (first + i) % points];
    if (all.point_node[point] == node) continue;
    *x = cost_.places()[point].x;
    *y = cost_.places()[point].y;
    return true;
  }
  return false;
}

}  // namespace placement
