#include "cost/largest.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "check.hpp"
#include "common/random.hpp"
#include "cost/densest.hpp"

using namespace placement;

namespace {

double by_sorting(std::vector<double> values, int count) {
  std::sort(values.begin(), values.end(), std::greater<double>());
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += values[i];
  return sum / count;
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST(largest_mean_is_that_of_the_sorted_values) {
  constexpr int kValues = 200, kCount = 20;
  LargestMean largest(kValues, kCount);
  Random random(7);
  std::vector<double> values(kValues);
  for (int call = 0; call < 100; ++call) {
    for (double& value : values) value = random.fraction() * (call % 10);
    CHECK(std::abs(largest(values.data()) - by_sorting(values, kCount)) < 1e-12);
  }
}

TEST(largest_mean_leaves_nan_out_and_is_nan_where_too_few_values_are_left) {
  std::vector<double> values = {3, kNan, 5, 1, kNan, 4};
  LargestMean largest(6, 3);
  CHECK(largest(values.data()) == 4);
  values[0] = values[2] = kNan;
  CHECK(std::isnan(largest(values.data())));
  std::fill(values.begin(), values.end(), kNan);
  CHECK(std::isnan(largest(values.data())));
  values = {3, 2, 5, 1, 0, 4};
  CHECK(largest(values.data()) == 4);  // independent of earlier calls
}

TEST(largest_mean_takes_infinities) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::vector<double> high = {1, kInfinity, 2, 3}, low = {1, -kInfinity, 2, 3};
  LargestMean largest(4, 2);
  CHECK(largest(high.data()) == kInfinity);
  CHECK(largest(low.data()) == 2.5);
}

TEST(largest_mean_of_kept_marks_is_that_of_a_fresh_look) {
  constexpr int kValues = 203, kCount = 20;  // the last block is not full
  LargestMean kept(kValues, kCount), fresh(kValues, kCount);
  Random random(11);
  std::vector<double> values(kValues, 0.5);
  kept.keep();
  for (int call = 0; call < 300; ++call) {
    const int changes = static_cast<int>(random.below(call % 7 == 0 ? 150 : 4));
    for (int i = 0; i < changes; ++i) {
      const int at = static_cast<int>(random.below(kValues));
      values[at] = random.below(40) == 0 ? kNan : random.fraction() * (1 + call % 3);
      kept.touch(at, at + 1);
    }
    const double expected = fresh(values.data()), found = kept.kept(values.data());
    CHECK(found == expected || (std::isnan(found) && std::isnan(expected)));
  }
}

TEST(a_maintained_densest_mean_is_that_of_a_fresh_look) {
  constexpr int kValues = 400, kCount = 40;
  constexpr double kQuantum = 0x1.0p-44;
  DensestMean kept(kValues, kCount, kQuantum), fresh(kValues, kCount, kQuantum);
  Random random(5);
  // Many gcells are empty, many are fully covered, as under macros.
  auto draw = [&] {
    const double values[3] = {0.0, 1.0, std::floor(random.fraction() * 0x1.0p45) * kQuantum};
    return values[random.below(3)];
  };
  std::vector<double> values(kValues);
  for (int call = 0; call < 2000; ++call) {
    const bool many = call % 97 == 0, empties = call / 300 % 2 == 1;  // alternately few and many are above the tie
    const int changes = static_cast<int>(random.below(many ? 300 : 9));
    for (int i = 0; i < changes; ++i) {
      const int first = static_cast<int>(random.below(kValues - 3));
      for (int at = first; at < first + 3; ++at) values[at] = empties && random.below(2) == 0 ? 0.0 : draw();
      kept.touch(first, first + 3);
    }
    CHECK(kept.kept(values.data()) == fresh(values.data()));
    CHECK(std::abs(fresh(values.data()) - by_sorting(values, kCount)) < 1e-12);
  }
}

TEST(a_densest_mean_of_few_values_counts_all_of_them) {
  const std::vector<double> values = {0.5, 0.25, 1.0};
  DensestMean all(3, 3, 0x1.0p-44), one(3, 1, 0x1.0p-44);
  CHECK(all.kept(values.data()) == 1.75 / 3 && all(values.data()) == 1.75 / 3);
  CHECK(one.kept(values.data()) == 1.0 && one(values.data()) == 1.0);
}

TEST(packing_keeps_the_order) {
  Random random(3);
  for (int count = 0; count < 30; ++count) {
    std::vector<double> values(count), from, above, to(count + 4);
    for (double& value : values) value = random.below(9) == 0 ? kNan : static_cast<double>(random.below(5));
    for (const double value : values) {
      if (value >= 2) from.push_back(value);
      if (value > 2) above.push_back(value);
    }
    to.resize(pack<false>(values.data(), count, 2, to.data()));
    CHECK(to == from);
    to.resize(count + 4);
    to.resize(pack<true>(values.data(), count, 2, to.data()));
    CHECK(to == above);
  }
}
