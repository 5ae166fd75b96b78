// Portable byte format: little-endian integers and IEEE 754 doubles, with a checksum at the end.
//
// A snapshot of an environment, version 1: "PLACEENV", u32 version, u64 fingerprint of the design, u64 state of the
// random numbers, u8 ended, u8 dead end, u32 macros placed, u32 gcell of each (row · columns + column of the design's
// own grid), f64 reward, 5 f64 costs, u32 number of nodes (0 unless all macros are placed) and their f64 x and y, u64
// checksum of all before.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/design.hpp"

namespace placement {

// FNV-1a over 64 bits.
class Checksum {
 public:
  void add(const void* data, std::size_t size) {
    const auto* bytes = static_cast<const unsigned char*>(data);
    for (std::size_t i = 0; i < size; ++i) hash_ = (hash_ ^ bytes[i]) * 0x100000001b3u;
  }
  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325u;
};

class ByteWriter {
 public:
  void raw(const char* text, std::size_t size) { bytes_.append(text, size); }
  void u8(std::uint8_t value) { bytes_.push_back(static_cast<char>(value)); }
  void u32(std::uint32_t value) { little_endian(value, 4); }
  void u64(std::uint64_t value) { little_endian(value, 8); }
  void f64(double value) {
    std::uint64_t bits;
    std::memcpy(&bits, &value, 8);
    u64(bits);
  }
  std::string sealed() {
    Checksum checksum;
    checksum.add(bytes_.data(), bytes_.size());
    u64(checksum.value());
    return bytes_;
  }

 private:
  void little_endian(std::uint64_t value, int size) {
    for (int i = 0; i < size; ++i) u8(static_cast<std::uint8_t>(value >> (8 * i)));
  }
  std::string bytes_;
};

// Throws std::invalid_argument if bytes are missing or left over, or the checksum differs.
class ByteReader {
 public:
  explicit ByteReader(const std::string& bytes) : bytes_(bytes) {
    if (bytes.size() < 8) throw std::invalid_argument("snapshot: it is truncated");
    Checksum checksum;
    checksum.add(bytes.data(), bytes.size() - 8);
    at_ = bytes.size() - 8;
    end_ = bytes.size();
    if (u64() != checksum.value()) {
      throw std::invalid_argument("snapshot: it is truncated or damaged (its checksum differs)");
    }
    at_ = 0;
    end_ = bytes.size() - 8;
  }
  bool matches(const char* text, std::size_t size) {
    need(size);
    at_ += size;
    return bytes_.compare(at_ - size, size, text, size) == 0;
  }
  std::uint8_t u8() { return static_cast<std::uint8_t>(little_endian(1)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(little_endian(4)); }
  std::uint64_t u64() { return little_endian(8); }
  double f64() {
    const std::uint64_t bits = u64();
    double value;
    std::memcpy(&value, &bits, 8);
    return value;
  }
  void finish() const {
    if (at_ != end_) throw std::invalid_argument("snapshot: it has extra bytes at its end");
  }

 private:
  void need(std::size_t size) const {
    if (end_ - at_ < size) throw std::invalid_argument("snapshot: it is truncated");
  }
  std::uint64_t little_endian(int size) {
    need(static_cast<std::size_t>(size));
    std::uint64_t value = 0;
    for (int i = 0; i < size; ++i) value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes_[at_++])) << (8 * i);
    return value;
  }
  const std::string& bytes_;
  std::size_t at_ = 0, end_ = 0;
};

// A number that two designs share only if an episode plays the same in both.
inline std::uint64_t fingerprint(const Design& design) {
  ByteWriter bytes;
  const Canvas& canvas = design.canvas;
  for (const double value : {canvas.width, canvas.height, canvas.routes_horizontal, canvas.routes_vertical,
                             canvas.macro_routes_horizontal, canvas.macro_routes_vertical, canvas.overlap_threshold}) {
    bytes.f64(value);
  }
  for (const int value : {canvas.columns, canvas.rows, canvas.smoothing}) bytes.u32(static_cast<std::uint32_t>(value));
  if (design.action_scale != 1) bytes.u32(static_cast<std::uint32_t>(design.action_scale));
  if (design.off_grid) bytes.u8(1);
  if (design.spacing > 0) bytes.f64(design.spacing);
  const auto add = [&bytes](const auto& values) {
    bytes.u64(values.size());
    for (const auto value : values) bytes.f64(static_cast<double>(value));
  };
  add(design.kind), add(design.node_width), add(design.node_height), add(design.pin_node), add(design.pin_dx);
  add(design.pin_dy), add(design.net_weight), add(design.net_start), add(design.net_pins), add(design.initial_x);
  add(design.initial_y), add(design.initial_orientation), add(design.placed), add(design.fixed);
  add(design.placing_order);
  if (const Constraints& kept = design.constraints; kept.any) {
    add(kept.halo_x), add(kept.halo_y), add(kept.orientations), add(kept.keep_set), add(kept.set_start), add(kept.items);
    for (const KeepOut& off : kept.keep_outs) {
      add(std::vector<double>{off.x, off.y, off.width, off.height, static_cast<double>(off.kind)});
    }
    add(std::vector<double>{kept.grid.pitch_x, kept.grid.pitch_y, kept.grid.offset_x, kept.grid.offset_y});
    if (!kept.halo_shift_x.empty()) add(kept.halo_shift_x), add(kept.halo_shift_y);
    if (!kept.own_grids.empty()) add(kept.own_grid);
    for (const SnapGrid& grid : kept.own_grids) {
      add(std::vector<double>{grid.pitch_x, grid.pitch_y, grid.offset_x, grid.offset_y});
    }
    if (kept.channel.is_set()) add(std::vector<double>{kept.channel.x, kept.channel.y});
  }
  const std::string all = bytes.sealed();
  Checksum checksum;
  checksum.add(all.data(), all.size());
  return checksum.value();
}

}  // namespace placement
