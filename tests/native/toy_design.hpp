// A small design for tests: a port, four macros, a soft macro and nets between them on a grid of gcells of 10 µm.
#pragma once

#include <memory>

#include "common/design.hpp"

inline std::shared_ptr<const placement::Design> toy_design(int columns = 8, int rows = 6) {
  placement::Design design;
  design.canvas = {columns * 10.0, rows * 10.0, columns, rows, 2.0, 2.0, 1.0, 1.0, 1, 0.0};
  const auto add = [&design](placement::Kind kind, double width, double height, bool fixed) {
    design.kind.push_back(static_cast<std::int8_t>(kind));
    design.node_width.push_back(width);
    design.node_height.push_back(height);
    design.initial_x.push_back(5.0);
    design.initial_y.push_back(5.0);
    design.initial_orientation.push_back(0);
    design.placed.push_back(1);
    design.fixed.push_back(fixed);
    design.pin_node.push_back(static_cast<std::int32_t>(design.kind.size()) - 1);
    design.pin_dx.push_back(width / 4);
    design.pin_dy.push_back(-height / 4);
  };
  add(placement::Kind::port, 0, 0, true);
  add(placement::Kind::hard, 20, 20, false);
  add(placement::Kind::hard, 20, 10, false);
  add(placement::Kind::hard, 10, 10, false);
  add(placement::Kind::hard, 7, 5, false);
  add(placement::Kind::soft, 8, 8, false);
  design.net_start = {0, 3, 5, 8};
  design.net_pins = {0, 1, 2, 3, 4, 5, 1, 4};
  design.net_weight = {1.0, 2.0, 0.5};
  design.placing_order = {1, 2, 3, 4};
  return std::make_shared<const placement::Design>(std::move(design));
}
