// The syntax of Liberty: groups `type (arguments) { … }` with attributes `name : value ;` and `name (arguments) ;`.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "text.hpp"

namespace netlist_text::liberty {

struct Group {
  std::string_view type;
  std::int64_t offset = 0;
  std::vector<std::string_view> arguments;  // without quotes
  std::vector<std::pair<std::string_view, std::string_view>> attributes;
  // Attributes with arguments: values of tables, units.
  std::vector<std::pair<std::string_view, std::vector<std::string_view>>> lists;
  std::vector<Group> groups;

  std::string_view argument() const { return arguments.empty() ? std::string_view() : arguments.front(); }
  // The value of an attribute; empty if there is none.
  std::string_view value(std::string_view name) const;
  const std::vector<std::string_view>* list(std::string_view name) const;
  const Group* group(std::string_view type) const;
};

// The first group of a text, which must be a library. Groups unrelated to timing are skipped.
Group read_group(std::string_view text);

}  // namespace netlist_text::liberty
