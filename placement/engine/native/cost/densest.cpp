#include "cost/densest.hpp"

#include <algorithm>
#include <functional>

namespace placement {
namespace {

constexpr int kLeastNear = 24;    // values listed on each side of the smallest that counts, plus one more
constexpr int kCountPerNear = 16; // per this many that count

}  // namespace

DensestMean::DensestMean(int values, int count, double quantum)
    : values_(values), count_(count), quanta_(quantum), ranked_(values), known_(values), place_of_(values) {}

double DensestMean::operator()(const double* values) {
  double* ranked = ranked_.data();
  std::copy_n(values, values_, ranked);
  std::nth_element(ranked, ranked + (count_ - 1), ranked + values_, std::greater<double>());
  Wide sum = 0;
  for (int i = 0; i < count_; ++i) sum += quanta_.of(ranked[i]);
  return quanta_.mean(sum, count_);
}

double DensestMean::kept(const double* values) {
  if (is_known_) {
    for (const auto& [first, end] : touched_) {
      for (int at = first; at < end; ++at) {
        if (values[at] != known_[at]) change(at, values[at]);
      }
    }
    touched_.clear();
    const int rank = count_ - above_;  // rank from the largest among the listed values and ties
    if (rank >= 1 && rank <= ties_ + static_cast<int>(near_.size())) return mean_down_to(smallest_of(rank));
  }
  begin_anew(values);
  return mean_down_to(smallest_of(count_ - above_));
}

// Lists the values around the smallest that counts.
void DensestMean::begin_anew(const double* values) {
  is_known_ = true;
  touched_.clear();
  std::copy_n(values, values_, known_.begin());
  ranked_ = known_;
  const int more = kLeastNear + count_ / kCountPerNear;
  const auto first = ranked_.begin(), last = ranked_.end();
  const auto tie = first + (count_ - 1), upper = first + std::max(0, count_ - 1 - more);
  const auto lower = first + std::min(values_ - 1, count_ - 1 + more);
  std::nth_element(first, tie, last, std::greater<double>());
  std::nth_element(first, upper, tie, std::greater<double>());
  if (lower != tie) std::nth_element(tie + 1, lower, last, std::greater<double>());
  tie_ = *tie;
  high_ = *upper;
  low_ = *lower;
  above_ = ties_ = 0;
  sum_above_ = 0;
  near_.clear();
  for (int at = 0; at < values_; ++at) join(at);
}

void DensestMean::change(int at, double value) {
  leave(at);
  known_[at] = value;
  join(at);
}

void DensestMean::join(int at) {
  const double value = known_[at];
  if (value == tie_) {
    ++ties_;
  } else if (value >= high_) {
    ++above_;
    sum_above_ += quanta_.of(value);
  } else if (value > low_) {
    place_of_[at] = static_cast<std::int32_t>(near_.size());
    near_.push_back(at);
  }
}

void DensestMean::leave(int at) {
  const double value = known_[at];
  if (value == tie_) {
    --ties_;
  } else if (value >= high_) {
    --above_;
    sum_above_ -= quanta_.of(value);
  } else if (value > low_) {
    const std::int32_t other = near_.back();
    near_[place_of_[at]] = other;
    place_of_[other] = place_of_[at];
    near_.pop_back();
  }
}

// Returns the value of this rank (1: the largest) among the listed values and the ties.
double DensestMean::smallest_of(int rank) {
  double* ranked = ranked_.data();
  double* larger = ranked;  // values above the tie are stored from the front, the others from the back
  double* smaller = ranked + near_.size();
  for (const std::int32_t at : near_) {
    const double value = known_[at];
    if (value > tie_) *larger++ = value;
    else *--smaller = value;
  }
  const int over = static_cast<int>(larger - ranked);
  if (rank > over && rank <= over + ties_) return tie_;
  double* found = rank <= over ? ranked + (rank - 1) : larger + (rank - over - ties_ - 1);
  std::nth_element(rank <= over ? ranked : larger, found, rank <= over ? larger : ranked + near_.size(),
                   std::greater<double>());
  return *found;
}

double DensestMean::mean_down_to(double smallest) {
  Wide sum = sum_above_;
  int counted = above_;
  for (const std::int32_t at : near_) {
    const bool counts = known_[at] > smallest;
    sum += counts ? quanta_.of(known_[at]) : 0;
    counted += counts;
  }
  if (tie_ > smallest) {
    sum += static_cast<Wide>(quanta_.of(tie_)) * ties_;
    counted += ties_;
  }
  return quanta_.mean(sum + static_cast<Wide>(quanta_.of(smallest)) * (count_ - counted), count_);
}

}  // namespace placement
