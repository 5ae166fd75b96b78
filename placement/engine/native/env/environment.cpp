#include "env/environment.hpp"

#include "env/snapshot.hpp"

namespace placement {
namespace {

constexpr char kMagic[] = "PLACEENV";
constexpr std::size_t kMagicSize = sizeof(kMagic) - 1;
constexpr std::uint32_t kVersion = 1;

}  // namespace

std::string Environment::snapshot() const {
  ByteWriter bytes;
  bytes.raw(kMagic, kMagicSize);
  bytes.u32(kVersion);
  bytes.u64(state_.plan().fingerprint);
  bytes.u64(random_.state());
  bytes.u8(ended_);
  bytes.u8(dead_end_);
  bytes.u32(static_cast<std::uint32_t>(state_.step()));
  for (int t = 0; t < state_.step(); ++t) bytes.u32(static_cast<std::uint32_t>(state_.cell(t)));
  bytes.f64(reward_);
  for (const double cost : costs_) bytes.f64(cost);
  const bool is_whole = state_.complete() && !dead_end_;
  bytes.u32(is_whole ? static_cast<std::uint32_t>(last_x_.size()) : 0);
  if (is_whole) {
    for (const double x : last_x_) bytes.f64(x);
    for (const double y : last_y_) bytes.f64(y);
  }
  return bytes.sealed();
}

void Environment::restore(const std::string& snapshot) {
  ByteReader bytes(snapshot);
  if (!bytes.matches(kMagic, kMagicSize)) throw std::invalid_argument("snapshot: the bytes are not a snapshot");
  const std::uint32_t version = bytes.u32();
  if (version != kVersion) {
    throw std::invalid_argument("snapshot: its version is " + std::to_string(version) +
                                "; this program reads version " +
                                std::to_string(kVersion));
  }
  if (bytes.u64() != state_.plan().fingerprint) {
    throw std::invalid_argument("snapshot: it belongs to a different design");
  }
  Environment restored = *this;  // so that a rejected snapshot changes nothing
  restored.random_.seed(bytes.u64());
  restored.ended_ = bytes.u8() != 0;
  restored.dead_end_ = bytes.u8() != 0;
  const std::uint32_t placed = bytes.u32();
  const int columns = state_.plan().canvas.columns;
  restored.state_.reset();
  for (std::uint32_t t = 0; t < placed; ++t) {
    const std::uint32_t cell = bytes.u32();
    const int row = static_cast<int>(cell / columns), column = static_cast<int>(cell % columns);
    int obstacle = -1;
    if (restored.state_.judge(row, column, &obstacle) != Verdict::legal) {
      throw std::invalid_argument("snapshot: macro " + std::to_string(t) + " is on an illegal gcell");
    }
    restored.state_.place(row, column);
  }
  restored.elapsed_step_ = static_cast<int>(placed);
  restored.reward_ = bytes.f64();
  for (double& cost : restored.costs_) cost = bytes.f64();
  const std::uint32_t nodes = bytes.u32();
  const int whole = restored.state_.complete() && !restored.dead_end_ ? state_.plan().design->nodes() : 0;
  if (nodes != static_cast<std::uint32_t>(whole)) {
    throw std::invalid_argument("snapshot: it has positions of " + std::to_string(nodes) + " nodes instead of " +
                                std::to_string(whole));
  }
  if (nodes > 0) {
    restored.last_x_.resize(nodes);
    restored.last_y_.resize(nodes);
    restored.last_design_ = restored.design_index_;
    for (double& x : restored.last_x_) x = bytes.f64();
    for (double& y : restored.last_y_) y = bytes.f64();
    restored.has_finished_ = true;
  }
  bytes.finish();
  *this = std::move(restored);
}

}  // namespace placement
