// Moves that straighten macros, proposed if tidiness has a weight.
#include <algorithm>
#include <cmath>

#include "search/moves.hpp"

namespace placement {
namespace {

constexpr int kAttempts = 4;
constexpr int kLongestRun = 12;   // maximum number of macros that move together
constexpr double kNear = 0.75;    // maximum distance between the centres of near macros, relative to their summed sides
constexpr std::size_t kMostPushed = 100;  // maximum number of macros pushed by one
constexpr double kInRun = 0.5;    // maximum offset of a macro of a run from its line, relative to the shorter side

bool straightens(const MoveProposer& proposer) {
  return proposer.cost().weights().tidy > 0 && proposer.hard().size() >= 2;
}

// Finds a random macro next to another one, each with equal probability; returns whether there is one.
bool near_by(const MoveProposer& proposer, const NodeMove& from, Random& random, NodeMove* found) {
  std::uint32_t count = 0;
  for (const std::int32_t node : proposer.hard()) {
    if (node == from.node) continue;
    const NodeMove at = proposer.cost().at(node);
    if (std::abs(at.x - from.x) > kNear * (proposer.width(at) + proposer.width(from)) ||
        std::abs(at.y - from.y) > kNear * (proposer.height(at) + proposer.height(from))) {
      continue;
    }
    if (random.below(++count) == 0) *found = at;
  }
  return count > 0;
}

double along(const NodeMove& at, bool across) { return across ? at.x : at.y; }
double length(const MoveProposer& proposer, const NodeMove& at, bool across) {
  return across ? proposer.width(at) : proposer.height(at);
}

// Puts the macro's edge on the neighbour's line, and sometimes closes the gap between them.
bool tidy_align(MoveProposer& proposer, Random& random) {
  const NodeMove from = proposer.random_hard(random);
  NodeMove beside;
  if (!near_by(proposer, from, random, &beside)) return false;
  const double apart_x = std::abs(from.x - beside.x) / (proposer.width(from) + proposer.width(beside));
  const double apart_y = std::abs(from.y - beside.y) / (proposer.height(from) + proposer.height(beside));
  const bool across = apart_x > apart_y;  // they are side by side
  const double half = length(proposer, from, !across) / 2, half_beside = length(proposer, beside, !across) / 2;
  const double step = random.below(2) != 0 ? half_beside - half : half - half_beside;
  const bool closes = random.below(2) != 0;
  const bool is_first = std::signbit(along(from, across) - along(beside, across));  // left of the other, or below it
  const double apart = (length(proposer, from, across) + length(proposer, beside, across)) / 2 +
                       (is_first ? proposer.legal().gap(from, beside, across) : proposer.legal().gap(beside, from, across));
  return proposer.add_legal(from, 1, [&](NodeMove& to) {
    (across ? to.y : to.x) = along(beside, !across) + step;
    if (closes) (across ? to.x : to.y) = along(beside, across) + std::copysign(apart, along(from, across) - along(beside, across));
    return to.x != from.x || to.y != from.y;
  });
}

// Collects the macros around `from` on its row (across) or column, with at most half a side between neighbours, in
// order.
void find_run(MoveProposer& proposer, const NodeMove& from, bool across) {
  std::vector<NodeMove>& line = proposer.line;
  line.clear();
  const double side = length(proposer, from, !across);
  for (const std::int32_t node : proposer.hard()) {
    const NodeMove at = proposer.cost().at(node);
    const double beside = std::abs(along(at, !across) - along(from, !across));
    if (beside <= kInRun * std::min(side, length(proposer, at, !across))) line.push_back(at);
  }
  std::sort(line.begin(), line.end(), [&](const NodeMove& a, const NodeMove& b) {
    return along(a, across) != along(b, across) ? along(a, across) < along(b, across) : a.node < b.node;
  });
  const auto joined = [&](const NodeMove& a, const NodeMove& b) {
    const double sides = (length(proposer, a, across) + length(proposer, b, across)) / 2;
    return along(b, across) - along(a, across) - sides < sides / 2;
  };
  std::size_t here = 0;
  while (line[here].node != from.node) ++here;
  std::size_t first = here, end = here + 1;
  while (first > 0 && joined(line[first - 1], line[first])) --first;
  while (end < line.size() && joined(line[end - 1], line[end])) ++end;
  line.erase(line.begin() + static_cast<std::ptrdiff_t>(end), line.end());
  line.erase(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(first));
}

// Cuts the run to a random stretch of at most kLongestRun macros.
void cut_run(std::vector<NodeMove>& line, Random& random) {
  const std::size_t most = std::min<std::size_t>(line.size(), kLongestRun);
  const std::size_t count = 2 + random.below(static_cast<std::uint32_t>(most - 1));
  const std::size_t first = random.below(static_cast<std::uint32_t>(line.size() - count + 1));
  line.erase(line.begin() + static_cast<std::ptrdiff_t>(first + count), line.end());
  line.erase(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(first));
}

// Whether a macro may take the orientation of another one of equal size and cover what it covered.
bool may_turn(const MoveProposer& proposer, const NodeMove& at, const NodeMove& like) {
  return swaps_sides(at.orientation) == swaps_sides(like.orientation) && proposer.width(at) == proposer.width(like) &&
         proposer.height(at) == proposer.height(like) && proposer.design().constraints.allows(at.node, like.orientation);
}

// Puts a run on one line, with its gaps closed or its macros of equal size turned alike.
bool tidy_run(MoveProposer& proposer, Random& random) {
  const NodeMove from = proposer.random_hard(random);
  const bool across = random.below(2) != 0, low = random.below(2) != 0;
  find_run(proposer, from, across);
  std::vector<NodeMove>& line = proposer.line;
  if (line.size() < 2) return false;
  cut_run(line, random);
  const auto edge = [&](const NodeMove& at) {
    return along(at, !across) + (low ? -0.5 : 0.5) * length(proposer, at, !across);
  };
  NodeMove like = line[random.below(static_cast<std::uint32_t>(line.size()))];
  const double to = edge(like);
  const bool closes = random.below(2) != 0, turns = random.below(2) != 0;
  if (turns && random.below(2) != 0) like.orientation = static_cast<std::int8_t>(like.orientation ^ (1 + random.below(3)));
  for (std::size_t i = 0; i < line.size(); ++i) {
    NodeMove at = line[i];
    (across ? at.y : at.x) += to - edge(at);
    if (turns && may_turn(proposer, at, like)) at.orientation = like.orientation;
    if (closes && i > 0) {
      const NodeMove& before = proposer.proposal.back();
      (across ? at.x : at.y) = along(before, across) + (length(proposer, before, across) + length(proposer, at, across)) / 2 +
                               proposer.legal().gap(before, at, across);
    }
    proposer.proposal.push_back(at);
  }
  return proposer.lands();
}

// Moves an unchanged run by a short distance, or up to the next obstacle.
bool tidy_shift(MoveProposer& proposer, Random& random) {
  const NodeMove from = proposer.random_hard(random);
  const bool run_across = random.below(2) != 0, across = random.below(2) != 0, forward = random.below(2) != 0;
  find_run(proposer, from, run_across);
  std::vector<NodeMove>& line = proposer.line;
  if (line.size() < 2) return false;
  cut_run(line, random);
  double distance = std::exp2(-6 * random.fraction()) * (across ? proposer.reach_x() : proposer.reach_y());
  if (random.below(2) != 0) {
    if (across == run_across) {
      distance = proposer.legal().clearance(forward ? line.back() : line.front(), across, forward);
    } else {
      for (std::size_t i = 0; i < line.size(); ++i) {
        const double clear = proposer.legal().clearance(line[i], across, forward);
        distance = i == 0 ? clear : std::min(distance, clear);
      }
    }
    if (!(distance > 0)) return false;
  }
  for (NodeMove at : line) {
    (across ? at.x : at.y) += forward ? distance : -distance;
    proposer.proposal.push_back(at);
  }
  return proposer.lands();
}

// Distance by which `at` is pushed by a macro that moves by `distance` along an axis; `whole`: columns or rows remain
// aligned.
double pushed_by(const MoveProposer& proposer, const NodeMove& by, const NodeMove& at, double distance, bool across,
                 bool forward, bool whole) {
  const double channel = proposer.cost().tidiness()->channel();
  const bool is_first = along(at, !across) < along(by, !across);
  const double beside = std::abs(along(at, !across) - along(by, !across)) -
                        (length(proposer, at, !across) + length(proposer, by, !across)) / 2 -
                        (is_first ? proposer.legal().gap(at, by, !across) : proposer.legal().gap(by, at, !across));
  const double ahead = (along(at, across) - along(by, across)) * (forward ? 1 : -1);
  if (beside < -kLengthTolerance && ahead > 0) {
    const double gap = ahead - (length(proposer, at, across) + length(proposer, by, across)) / 2 -
                       (forward ? proposer.legal().gap(by, at, across) : proposer.legal().gap(at, by, across));
    return distance - std::max(0.0, gap - channel);
  }
  return whole && beside < channel && std::abs(ahead) <= kLengthTolerance ? distance : 0.0;
}

// Moves a macro, or its whole row or column, away from what covers its pins, by a channel; it pushes the macros behind
// it.
bool tidy_part(MoveProposer& proposer, Random& random) {
  const Tidiness& tidiness = *proposer.cost().tidiness();
  const NodeMove from = proposer.random_hard(random);
  int side = tidiness.pin_side(from.node);
  if (side < 0 || random.below(4) == 0) side = static_cast<int>(random.below(4));
  const bool across = side < 2, forward = side % 2 == 0, whole = random.below(4) != 0;
  const double covered = tidiness.covered(from.node, side);
  if (!(covered > 0)) return false;
  std::vector<NodeMove>& queue = proposer.line;
  std::vector<double>& pushed = proposer.pushed;
  queue.assign(1, from);
  pushed[from.node] = covered + kLengthTolerance;
  for (std::size_t i = 0; i < queue.size() && queue.size() <= kMostPushed; ++i) {
    const NodeMove by = queue[i];
    for (const std::int32_t node : proposer.hard()) {
      const NodeMove at = proposer.cost().at(node);
      const double distance = pushed_by(proposer, by, at, pushed[by.node], across, forward, whole);
      if (distance <= pushed[node] + kLengthTolerance) continue;
      pushed[node] = distance;
      queue.push_back(at);
    }
  }
  const bool fits = queue.size() <= kMostPushed;
  for (NodeMove at : queue) {
    if (fits && pushed[at.node] > 0) {
      (across ? at.x : at.y) += forward ? pushed[at.node] : -pushed[at.node];
      proposer.proposal.push_back(at);
    }
    pushed[at.node] = 0;
  }
  return fits && proposer.lands();
}

}  // namespace

const std::vector<Move>& tidy_moves() {
  static const std::vector<Move> moves = {
      {"tidy_align", 3.0, straightens, tidy_align},       // an edge onto the line of a neighbour's
      {"tidy_run", 1.0, straightens, tidy_run},           // a row or column of macros onto one line
      {"tidy_shift", 1.5, straightens, tidy_shift, 1.0},  // a row or column together
      {"tidy_part", 0.6, straightens, tidy_part},         // away from what covers a macro's pins, by a channel
  };
  return moves;
}

}  // namespace placement
