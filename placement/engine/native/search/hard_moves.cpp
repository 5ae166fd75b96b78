// Moves of hard macros.
#include <algorithm>
#include <cmath>

#include "cost/legality.hpp"
#include "search/moves.hpp"

namespace placement {
namespace {

constexpr int kAttempts = 8;          // attempts to find a legal position
constexpr std::size_t kMostBrought = 60;  // maximum number of soft macros that move with a hard macro
constexpr int kMostRolled = 8;        // maximum number of positions that a macro moves along its row

template <int kMacros>
bool has_hard(const MoveProposer& proposer) {
  return proposer.hard().size() >= kMacros;
}

bool has_both(const MoveProposer& proposer) { return !proposer.hard().empty() && !proposer.soft().empty(); }

bool hard_shift(MoveProposer& proposer, Random& random) {
  return proposer.add_legal(proposer.random_hard(random), kAttempts, [&](NodeMove& to) {
    proposer.go_near(to, to.x, to.y, random);
    return true;
  });
}

bool hard_slide(MoveProposer& proposer, Random& random) {
  const NodeMove from = proposer.random_hard(random);
  const bool across = random.below(2) != 0, forward = random.below(2) != 0;
  const double clearance = proposer.legal().clearance(from, across, forward);
  if (clearance <= kLengthTolerance) return false;
  const double distance = random.below(2) != 0 ? clearance : clearance * random.fraction();
  return proposer.add_legal(from, 1, [&](NodeMove& to) {
    (across ? to.x : to.y) += forward ? distance : -distance;
    return true;
  });
}

bool hard_align(MoveProposer& proposer, Random& random) {
  const NodeMove from = proposer.random_hard(random);
  const auto centred = [&](double at, double length, double cell, double reach) {
    const double cells = std::ceil(length / cell - 1e-9);
    const double first = std::round((at + random.both_ways() * reach) / cell - cells / 2);
    return (first + cells / 2) * cell;
  };
  const std::uint32_t axes = random.below(3);
  return proposer.add_legal(from, kAttempts, [&](NodeMove& to) {
    if (axes != 0) to.x = centred(to.x, proposer.width(to), proposer.cell_width(), proposer.reach_x());
    if (axes != 1) to.y = centred(to.y, proposer.height(to), proposer.cell_height(), proposer.reach_y());
    proposer.clamp(to);
    return to.x != from.x || to.y != from.y;
  });
}

bool hard_jump(MoveProposer& proposer, Random& random) {
  return proposer.add_legal(proposer.random_hard(random), 2 * kAttempts, [&](NodeMove& to) {
    to.x = random.fraction() * proposer.design().canvas.width;
    to.y = random.fraction() * proposer.design().canvas.height;
    return true;
  });
}

bool hard_pull(MoveProposer& proposer, Random& random) {
  const NodeMove from = proposer.random_hard(random);
  double x, y, spread = 0;
  if (!proposer.neighbour(from.node, random, &x, &y)) return false;
  return proposer.add_legal(from, kAttempts, [&](NodeMove& to) {
    spread += 1.0;
    to.x = x + random.both_ways() * spread * proposer.reach_x();
    to.y = y + random.both_ways() * spread * proposer.reach_y();
    return true;
  });
}

bool hard_abut(MoveProposer& proposer, Random& random) {
  return proposer.add_legal(proposer.random_hard(random), kAttempts, [&](NodeMove& to) {
    const NodeMove beside = proposer.random_hard(random);
    if (beside.node == to.node) return false;
    const std::uint32_t side = random.below(4);
    const LegalPositions& legal = proposer.legal();
    const bool is_first = side % 2 != 0;  // to the left of the other, or below it
    const NodeMove &first = is_first ? to : beside, &second = is_first ? beside : to;
    const double across = (proposer.width(to) + proposer.width(beside)) / 2 + legal.gap(first, second, true);
    const double up = (proposer.height(to) + proposer.height(beside)) / 2 + legal.gap(first, second, false);
    to.x = beside.x + (side == 0 ? across : side == 1 ? -across : 0.0);
    to.y = beside.y + (side == 2 ? up : side == 3 ? -up : 0.0);
    return true;
  });
}

bool exchange(MoveProposer& proposer, Random& random, int count) {
  std::vector<NodeMove>& macros = proposer.proposal;
  for (int i = 0; i < kAttempts; ++i) {
    macros.clear();
    for (int j = 0; j < count; ++j) macros.push_back(proposer.random_hard(random));
    bool distinct = true;
    for (int j = 0; j < count; ++j) {
      for (int k = 0; k < j; ++k) distinct &= macros[j].node != macros[k].node;
    }
    if (!distinct) continue;
    const NodeMove first = macros[0];
    for (int j = 0; j < count; ++j) {
      const NodeMove& next = j + 1 < count ? macros[j + 1] : first;
      macros[j].x = next.x;
      macros[j].y = next.y;
    }
    if (proposer.lands()) return true;
  }
  return false;
}

bool hard_swap(MoveProposer& proposer, Random& random) { return exchange(proposer, random, 2); }

bool hard_permute(MoveProposer& proposer, Random& random) {
  return exchange(proposer, random, 3 + static_cast<int>(random.below(2)));
}

// Keeps the order of the gaps between the macros.
bool hard_roll(MoveProposer& proposer, Random& random) {
  const NodeMove from = proposer.random_hard(random);
  const bool across = random.below(2) != 0;
  const auto along = [&](const NodeMove& at) { return across ? at.x : at.y; };
  const auto aside = [&](const NodeMove& at) { return across ? at.y : at.x; };
  const auto length = [&](const NodeMove& at) { return across ? proposer.width(at) : proposer.height(at); };
  const double reach = (across ? proposer.height(from) : proposer.width(from)) / 2;
  std::vector<NodeMove>& line = proposer.line;
  line.clear();
  for (const std::int32_t node : proposer.hard()) {
    const NodeMove at = proposer.cost().at(node);
    if (std::abs(aside(at) - aside(from)) < reach) line.push_back(at);
  }
  std::sort(line.begin(), line.end(), [&](const NodeMove& a, const NodeMove& b) {
    return along(a) != along(b) ? along(a) < along(b) : a.node < b.node;
  });
  const int count = static_cast<int>(line.size());
  int here = 0;
  while (line[here].node != from.node) ++here;
  const int positions = 1 + static_cast<int>(random.below(kMostRolled));
  const bool forward = random.below(2) != 0;
  const int there = forward ? here + positions : here - positions;
  if (there < 0 || there >= count) return false;
  const int first = std::min(here, there), last = std::max(here, there);
  double at = along(line[first]) - length(line[first]) / 2;
  for (int i = first; i <= last; ++i) {
    NodeMove to = i == there ? line[here] : forward ? line[i + 1] : line[i - 1];
    (across ? to.y : to.x) = aside(line[i]);
    (across ? to.x : to.y) = at + length(to) / 2;
    proposer.proposal.push_back(to);
    at += length(to);
    if (i < last) at += along(line[i + 1]) - along(line[i]) - (length(line[i]) + length(line[i + 1])) / 2;
  }
  return proposer.lands();
}

bool hard_mirror(MoveProposer& proposer, Random& random) {
  NodeMove to = proposer.random_hard(random);
  const int sides = to.orientation & 4, turn = 1 + static_cast<int>(random.below(3));
  to.orientation = static_cast<std::int8_t>(sides | ((to.orientation & 3) ^ turn));
  const bool rotates = proposer.rotates() && random.below(2) != 0;
  if (rotates) to.orientation = static_cast<std::int8_t>(to.orientation ^ 4);
  if (!proposer.design().constraints.allows(to.node, to.orientation)) return false;
  const bool moves = rotates || !proposer.design().constraints.own_grids.empty();  // onto the orientation's grid
  if (moves) return proposer.add_legal(to, 1, [](NodeMove&) { return true; });
  proposer.proposal.push_back(to);
  return true;
}

// Soft macros under the new position of the hard macro go to its old one: by the reversed move or, where the two
// positions overlap, mirrored at the point between them.
void bring_back(MoveProposer& proposer, const NodeMove& from) {
  const NodeMove to = proposer.proposal[0];  // a copy, because the proposal grows
  const double half_width = proposer.width(to) / 2, half_height = proposer.height(to) / 2;
  const auto under = [&](const NodeMove& macro, const NodeMove& soft) {
    return std::abs(soft.x - macro.x) < half_width && std::abs(soft.y - macro.y) < half_height;
  };
  const bool overlap = std::abs(from.x - to.x) < 2 * half_width && std::abs(from.y - to.y) < 2 * half_height;
  for (const std::int32_t node : proposer.soft()) {
    NodeMove back = proposer.cost().at(node);
    if (!under(to, back) || under(from, back)) continue;
    back.x = overlap ? from.x + to.x - back.x : back.x + from.x - to.x;
    back.y = overlap ? from.y + to.y - back.y : back.y + from.y - to.y;
    proposer.clamp(back);
    if (proposer.on_blockage(back)) continue;
    proposer.proposal.push_back(back);
    if (proposer.proposal.size() > kMostBrought) return;
  }
}

bool hard_trade(MoveProposer& proposer, Random& random) {
  const NodeMove from = proposer.random_hard(random);
  const bool found = proposer.add_legal(from, kAttempts, [&](NodeMove& to) {
    double x, y;
    if (random.below(2) != 0 && proposer.neighbour(from.node, random, &x, &y)) {
      to.x = x + random.both_ways() * 2 * proposer.cell_width();
      to.y = y + random.both_ways() * 2 * proposer.cell_height();
    } else {
      const double scale = MoveProposer::random_scale(random);
      to.x += scale * random.both_ways() * proposer.reach_x();
      to.y += scale * random.both_ways() * proposer.reach_y();
    }
    return true;
  });
  if (found) bring_back(proposer, from);
  return found;
}

}  // namespace

const std::vector<Move>& hard_moves() {
  static const std::vector<Move> moves = {
      {"hard_shift", 3.0, has_hard<1>, hard_shift, 1.0, true},  // by a short distance, to any point
      {"hard_slide", 1.0, has_hard<1>, hard_slide},        // along an axis, up to the next obstacle
      {"hard_align", 1.0, has_hard<1>, hard_align},        // to the centre of a block of gcells near by
      {"hard_jump", 0.5, has_hard<1>, hard_jump},          // anywhere
      {"hard_pull", 0.5, has_hard<1>, hard_pull, 2.0},     // near another pin of one of its nets
      {"hard_abut", 0.5, has_hard<2>, hard_abut},          // next to another hard macro
      {"hard_swap", 2.0, has_hard<2>, hard_swap},          // exchanges two positions
      {"hard_permute", 0.3, has_hard<4>, hard_permute},    // exchanges three or four positions cyclically
      {"hard_roll", 1.0, has_hard<4>, hard_roll},          // moves one along its row or column; those in between close the gap
      {"hard_mirror", 1.0, has_hard<1>, hard_mirror},      // mirrors one (or rotates it, if allowed)
      {"hard_trade", 2.0, has_both, hard_trade, 2.0},      // exchanges places with the soft macros there
  };
  return moves;
}

}  // namespace placement
