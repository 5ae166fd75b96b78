// The power straps in the wires of special nets: segments of SHAPE STRIPE.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "def_lexer.hpp"

namespace netlist_text {

// A segment between two points, in database units.
struct Strap {
  std::string_view layer;
  std::int64_t width;
  std::array<std::int64_t, 2> from, to;
};

// Receives the tokens of a special net after its connections, one after the other, and finds its straps. Accepts tokens
// in any order and ignores unknown ones.
class StrapFinder {
 public:
  void begin() {
    straps_.clear();
    next_ = Next::kNothing;
    is_stripe_ = false;
  }
  void take(std::string_view token) {
    switch (next_) {
      case Next::kLayer:
        strap_.layer = token;
        next_ = Next::kWidth;
        return;
      case Next::kWidth:
        strap_.width = number(token);
        next_ = Next::kNothing;
        return;
      case Next::kShape:
        is_stripe_ = DefLexer::same(token, "STRIPE");
        next_ = Next::kNothing;
        return;
      case Next::kX:
      case Next::kY:
        if (token != "*") point_[next_ == Next::kX ? 0 : 1] = number(token);
        next_ = next_ == Next::kX ? Next::kY : Next::kNothing;
        if (next_ == Next::kNothing) end_point();
        return;
      case Next::kNothing: break;
    }
    if (token == "(") {
      next_ = Next::kX;
    } else if (DefLexer::same(token, "ROUTED") || DefLexer::same(token, "NEW") || DefLexer::same(token, "FIXED") ||
               DefLexer::same(token, "COVER")) {
      next_ = Next::kLayer;
      has_point_ = is_stripe_ = false;
    } else if (DefLexer::same(token, "SHAPE")) {
      next_ = Next::kShape;
    } else if (DefLexer::same(token, "RECT") || DefLexer::same(token, "POLYGON") || DefLexer::same(token, "VIA")) {
      is_stripe_ = false;
    }
  }
  const std::vector<Strap>& straps() const { return straps_; }

 private:
  enum class Next { kNothing, kLayer, kWidth, kShape, kX, kY };

  static std::int64_t number(std::string_view token) {
    double value = 0;
    return DefLexer::parse(token, value) && std::abs(value) < 2e9 ? static_cast<std::int64_t>(value) : 0;
  }
  void end_point() {
    if (has_point_ && is_stripe_ && strap_.width > 0) {
      straps_.push_back({strap_.layer, strap_.width, last_, point_});
    }
    last_ = point_;
    has_point_ = true;
  }

  Next next_ = Next::kNothing;
  Strap strap_ = {};
  std::array<std::int64_t, 2> point_ = {}, last_ = {};
  bool is_stripe_ = false, has_point_ = false;
  std::vector<Strap> straps_;
};

}  // namespace netlist_text
