#include "soft/soft_springs.hpp"

#include "check.hpp"

using namespace placement;

namespace {

// One net, of a pin of each of `count` movable soft macros.
Design one_net(int count) {
  Design design;
  design.canvas = {100.0, 100.0, 10, 10, 2.0, 2.0, 1.0, 1.0, 0, 0.0};
  design.net_start = {0, count};
  design.net_weight = {3.0};
  for (int node = 0; node < count; ++node) {
    design.kind.push_back(static_cast<std::int8_t>(Kind::soft));
    design.fixed.push_back(0);
    design.pin_node.push_back(node);
    design.pin_dx.push_back(0);
    design.pin_dy.push_back(0);
    design.net_pins.push_back(node);
  }
  return design;
}

}  // namespace

TEST(a_small_net_is_a_clique) {
  const SoftSprings springs = make_soft_springs(one_net(256), SpringModel::clique);
  CHECK(springs.other.size() == 256u * 255u);
  CHECK(springs.weight.front() == static_cast<float>(3.0 / 255));
}

TEST(springs_of_a_large_net_grow_with_its_pins) {
  const SoftSprings springs = make_soft_springs(one_net(10'000), SpringModel::clique);
  CHECK(springs.other.size() == 2u * 9'999u);
  for (const float weight : springs.weight) CHECK(weight == 3.0f);
}

TEST(springs_are_made_once_for_each_design_and_model) {
  const Design design = one_net(3), copy = design;
  const auto cliques = shared_soft_springs(design, SpringModel::clique), stars = shared_soft_springs(design, SpringModel::star);
  CHECK(shared_soft_springs(design, SpringModel::clique) == cliques);
  CHECK(shared_soft_springs(design, SpringModel::star) == stars);
  CHECK(cliques->other.size() == 6u && stars->other.size() == 4u);
  CHECK(shared_soft_springs(copy, SpringModel::clique) != cliques);
  CHECK(shared_soft_springs(design, SpringModel::star, 2.0) != stars);
}
