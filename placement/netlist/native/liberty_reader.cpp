#include "liberty_reader.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <unordered_map>

#include "liberty_syntax.hpp"

namespace netlist_text::liberty {
namespace {

constexpr std::int64_t kMostBits = 100'000;  // per bus
constexpr std::array<std::string_view, 2> kDelay = {"cell_rise", "cell_fall"};
constexpr std::array<std::string_view, 2> kSlew = {"rise_transition", "fall_transition"};
constexpr std::array<std::string_view, 2> kLimit = {"rise_constraint", "fall_constraint"};

bool parse(std::string_view text, double& value) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t' || text.front() == '+')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failure == std::errc() && end == text.data() + text.size() && std::isfinite(value);
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& letter : result) letter = letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter | 0x20) : letter;
  return result;
}

// The name and the bounds of a bit `A[3]` or a range `A[7:0]`; bounds of -1: neither.
struct Range {
  std::string name;
  std::int32_t from = -1, to = -1;
};

bool parse_bit(std::string_view text, std::int32_t& value) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failure == std::errc() && end == text.data() + text.size() && value >= 0 && value < 1'000'000'000;
}

Range range_of(std::string_view text) {
  const std::size_t open = text.rfind('[');
  if (open == text.npos || text.back() != ']') return {std::string(text)};
  const std::string_view inside = text.substr(open + 1, text.size() - open - 2);
  const std::size_t colon = inside.find(':');
  Range range{std::string(text.substr(0, open))};
  if (!parse_bit(inside.substr(0, colon), range.from) ||
      !parse_bit(inside.substr(colon == inside.npos ? 0 : colon + 1), range.to) ||
      std::abs(range.from - range.to) >= kMostBits) {
    return {std::string(text)};
  }
  return range;
}

enum class Axis { kNone, kSlew, kLoad, kClockSlew };

struct Table {
  std::vector<float> rows, columns, values;  // values row by row
};

struct Arc {
  std::int32_t from = 0, to = 0;
  ArcKind kind = ArcKind::kCombinational;
  std::int8_t sense = 0;
  std::array<Table, 4> tables;
};

class LibraryReader {
 public:
  explicit LibraryReader(std::string_view text) : text_(text), group_(read_group(text)) {
    unused_.what = "timing groups of unsupported types are ignored";
    no_table_.what = "timing arcs without a usable table are ignored";
    no_pin_.what = "timing arcs from pins that do not exist in the cell are ignored";
    negative_.what = "tables of delays or slews with negative values";
    twice_.what = "cells that the library defines twice: the first definition is used";
  }

  Library read() {
    out_.name = std::string(group_.argument());
    units();
    for (const Group& group : group_.groups) {
      if (group.type == "lu_table_template") templates_[group.argument()] = &group;
      if (group.type == "type") types_[group.argument()] = &group;
    }
    std::unordered_map<std::string_view, int> seen;
    for (const Group& group : group_.groups) {
      if (group.type != "cell") continue;
      if (seen[group.argument()]++ == 0) {
        cell(group);
      } else {
        twice_.add(group.offset, group.argument());
      }
    }
    if (out_.cells.empty()) throw error(group_.offset, "library '" + shown(group_.argument()) + "' contains no cell");
    for (Findings* kind : {&twice_, &no_pin_, &no_table_, &negative_, &unused_}) {
      if (kind->count) out_.notices.push_back(std::move(*kind));
    }
    return std::move(out_);
  }

 private:
  ParseError error(std::int64_t offset, const std::string& message) const {
    return {line_at(text_, static_cast<std::size_t>(offset)), message};
  }
  std::int64_t offset_of(std::string_view word, const Group& group) const {
    const bool is_inside = word.data() >= text_.data() && word.data() <= text_.data() + text_.size();
    return is_inside && !word.empty() ? word.data() - text_.data() : group.offset;
  }

  double number(const Group& group, std::string_view name, double missing) const {
    const std::string_view word = group.value(name);
    double value = 0;
    if (word.empty()) return missing;
    if (!parse(word, value)) {
      throw error(offset_of(word, group), std::string(name) + ": expected a number, found '" + shown(word) + "'");
    }
    return value;
  }

  void units() {
    if (const std::string_view model = group_.value("delay_model"); !model.empty() && model != "table_lookup") {
      throw error(offset_of(model, group_), "delay_model '" + shown(model) +
                  "': only table_lookup (NLDM) is supported");
    }
    const std::string_view time = group_.value("time_unit");
    out_.time_unit = time.empty() ? 1000.0 : time_unit(time);
    if (time.empty()) {
      Findings none{"libraries without time_unit: 1 ns is assumed"};
      none.add(group_.offset, group_.argument());
      out_.notices.push_back(none);
    }
    const auto* load = group_.list("capacitive_load_unit");
    double count = 1;
    const std::string unit = load != nullptr && load->size() == 2 ? lower((*load)[1]) : "pf";
    const bool is_known = load == nullptr || (load->size() == 2 && parse((*load)[0], count) && count > 0 &&
                                              (unit == "pf" || unit == "ff"));
    if (!is_known) {
      throw error(group_.offset, "capacitive_load_unit must be a number and pf or ff, for example (1, pf)");
    }
    out_.capacitance_unit = count * (unit == "pf" ? 1000.0 : 1.0);
    if (load == nullptr) {
      Findings none{"libraries without capacitive_load_unit: 1 pF is assumed"};
      none.add(group_.offset, group_.argument());
      out_.notices.push_back(none);
    }
    const double low = number(group_, "slew_lower_threshold_pct_rise", 20.0);
    const double high = number(group_, "slew_upper_threshold_pct_rise", 80.0);
    const double derate = number(group_, "slew_derate_from_library", 1.0);
    if (!(low >= 0 && low < high && high <= 100 && derate > 0)) {
      throw error(group_.offset,
                  "the slew thresholds must increase within 0 to 100, and slew_derate_from_library must be above 0");
    }
    out_.slew_factor = derate * 100.0 / (high - low);
  }

  double time_unit(std::string_view word) const {
    std::size_t digits = 0;
    while (digits < word.size() && ((word[digits] >= '0' && word[digits] <= '9') || word[digits] == '.')) ++digits;
    double count = 0;
    std::string unit = lower(word.substr(digits));
    unit.erase(0, unit.find_first_not_of(' '));
    const double scale = unit == "ps" ? 1.0 : unit == "ns" ? 1000.0 : unit == "us" ? 1e6 : unit == "fs" ? 1e-3 : 0.0;
    if (!parse(word.substr(0, digits), count) || !(count > 0) || scale == 0) {
      throw error(offset_of(word, group_), "time_unit '" + shown(word) +
                  "' must be a number and a unit, for example 1ns or 1ps");
    }
    return count * scale;
  }

  void cell(const Group& group) {
    pin_of_.clear();
    arcs_.clear();
    bits_of_.clear();
    const bool is_latch = group.group("latch") != nullptr || group.group("latch_bank") != nullptr;
    // Pins first, because arcs may come from pins that follow.
    for (const Group& child : group.groups) {
      if (child.type == "type") types_[child.argument()] = &child;
    }
    for (const Group& child : group.groups) {
      if (child.type == "pin") {
        for (std::string& name : names_of(child)) add_pin(child, child, std::move(name));
      } else if (child.type == "bus") {
        add_bus(child);
      } else if (child.type == "bundle") {
        add_bundle(child);
      }
    }
    for (const Group& child : group.groups) timing_of(child, is_latch);
    out_.cells.emplace_back(group.argument());
    out_.is_latch.push_back(is_latch);
    out_.pin_start.push_back(static_cast<std::int32_t>(out_.pins.size()));
    for (const auto& [key, arc] : arcs_) add_arc(arc);
    out_.arc_start.push_back(static_cast<std::int32_t>(out_.arc_from.size()));
  }

  void add_bus(const Group& group) {
    const auto type = types_.find(group.value("bus_type"));
    std::vector<std::int32_t>& bits = bits_of_[std::string(group.argument())];
    if (type == types_.end()) {
      throw error(group.offset, "the library does not define the bus_type of bus '" + shown(group.argument()) + "'");
    }
    const double from = number(*type->second, "bit_from", 0), to = number(*type->second, "bit_to", 0);
    if (!(from >= 0 && to >= 0 && std::abs(from - to) < kMostBits)) {
      throw error(type->second->offset,
                  "bit_from and bit_to must be integers of at least 0 and differ by less than 100,000");
    }
    const auto low = static_cast<std::int32_t>(std::min(from, to)), high = static_cast<std::int32_t>(std::max(from, to));
    const auto own = own_pins(group);
    for (std::int32_t bit = low; bit <= high; ++bit) {
      std::string name = std::string(group.argument()) + "[" + std::to_string(bit) + "]";
      const auto found = own.find(name);
      bits.push_back(add_pin(found == own.end() ? group : *found->second, group, std::move(name)));
    }
  }

  void add_bundle(const Group& group) {
    const auto own = own_pins(group);
    std::vector<std::string> names;
    if (const auto* members = group.list("members")) {
      for (const std::string_view member : *members) names.emplace_back(member);
    } else {
      for (const auto& [name, pin] : own) names.push_back(name);
    }
    std::vector<std::int32_t>& bits = bits_of_[std::string(group.argument())];
    for (std::string& name : names) {
      const auto found = own.find(name);
      bits.push_back(add_pin(found == own.end() ? group : *found->second, group, std::move(name)));
    }
  }

  // The names of a pin group, which may have ranges of bits, from the lowest: `pin (A, D[7:0])`.
  static std::vector<std::string> names_of(const Group& group) {
    std::vector<std::string> names;
    for (const std::string_view argument : group.arguments) {
      const Range range = range_of(argument);
      if (range.from < 0) names.push_back(range.name);
      for (std::int32_t bit = std::min(range.from, range.to); bit >= 0 && bit <= std::max(range.from, range.to); ++bit) {
        names.push_back(range.name + "[" + std::to_string(bit) + "]");
      }
    }
    return names;
  }

  // The pin groups within a bus or bundle, by name.
  static std::map<std::string, const Group*> own_pins(const Group& group) {
    std::map<std::string, const Group*> found;
    for (const Group& pin : group.groups) {
      if (pin.type != "pin") continue;
      for (std::string& name : names_of(pin)) found[std::move(name)] = &pin;
    }
    return found;
  }

  // `around` supplies what the pin's own group does not define.
  std::int32_t add_pin(const Group& group, const Group& around, std::string name) {
    const auto pin = static_cast<std::int32_t>(out_.pins.size());
    pin_of_[name] = pin;
    out_.pins.push_back(std::move(name));
    std::string_view direction = group.value("direction");
    if (direction.empty()) direction = around.value("direction");
    out_.direction.push_back(direction == "input" ? 1 : direction == "output" ? 2 : direction == "inout" ? 3 : 0);
    out_.is_clock.push_back(group.value("clock") == "true" || around.value("clock") == "true");
    const bool is_input = out_.direction.back() == 1;
    const double missing = number(group_, is_input ? "default_input_pin_cap" : "default_output_pin_cap", 0.0);
    const double all = number(group, "capacitance", number(around, "capacitance", missing));
    const double rise = number(group, "rise_capacitance", all), fall = number(group, "fall_capacitance", all);
    const double most = number(group, "max_capacitance", number(around, "max_capacitance", 0.0));
    if (rise < 0 || fall < 0) throw error(group.offset, "pin '" + shown(out_.pins.back()) + "' has a negative capacitance");
    out_.rise_capacitance.push_back(static_cast<float>(rise * out_.capacitance_unit));
    out_.fall_capacitance.push_back(static_cast<float>(fall * out_.capacitance_unit));
    out_.max_capacitance.push_back(static_cast<float>(most * out_.capacitance_unit));
    return pin;
  }

  void timing_of(const Group& group, bool is_latch) {
    std::vector<std::int32_t> pins;
    if (group.type == "pin") {
      for (const std::string& name : names_of(group)) {
        if (const auto pin = pin_of_.find(name); pin != pin_of_.end()) pins.push_back(pin->second);
      }
    } else if (group.type == "bus" || group.type == "bundle") {
      pins = bits_of_.at(std::string(group.argument()));
    } else {
      return;
    }
    for (const Group& child : group.groups) {
      if (child.type == "timing" && !pins.empty()) timing(child, pins, is_latch);
      if (child.type == "pin") timing_of(child, is_latch);
    }
  }

  void timing(const Group& group, const std::vector<std::int32_t>& to, bool is_latch) {
    const std::string_view type = group.value("timing_type");
    Arc arc;
    if (type.empty() || type.substr(0, 13) == "combinational" || type.substr(0, 18) == "three_state_enable") {
      arc.kind = is_latch ? ArcKind::kTransparent : ArcKind::kCombinational;
    } else if (type == "rising_edge" || type == "falling_edge") {
      arc.kind = type == "rising_edge" ? ArcKind::kRisingEdge : ArcKind::kFallingEdge;
    } else if (type == "setup_rising" || type == "recovery_rising") {
      arc.kind = ArcKind::kSetupRising;
    } else if (type == "setup_falling" || type == "recovery_falling") {
      arc.kind = ArcKind::kSetupFalling;
    } else {
      if (type.substr(0, 4) != "hold" && type.substr(0, 3) != "min" && type.substr(0, 7) != "removal") unused_.add(group.offset, type);
      return;
    }
    const std::string_view sense = group.value("timing_sense");
    arc.sense = sense == "positive_unate" ? 1 : sense == "negative_unate" ? -1 : 0;
    const bool is_check = arc.kind == ArcKind::kSetupRising || arc.kind == ArcKind::kSetupFalling;
    bool has_table = false;
    for (std::size_t edge = 0; edge < 2; ++edge) {
      const std::string_view other = edge == 0 ? "_fall" : "_rise";  // `combinational_fall` has no rising output
      if (type.size() > 5 && type.substr(type.size() - 5) == other) continue;
      has_table |= read_table(group, is_check ? kLimit[edge] : kDelay[edge], is_check, false, arc.tables[edge]);
      if (!is_check) read_table(group, kSlew[edge], false, true, arc.tables[2 + edge]);
    }
    if (!has_table) {
      no_table_.add(group.offset, out_.pins[static_cast<std::size_t>(to.front())]);
      return;
    }
    for (const char* name : {"related_pin", "related_bus_pins"}) {
      const std::string_view related = group.value(name);
      for (std::size_t at = 0; at < related.size();) {
        const std::size_t end = std::min(related.find(' ', at), related.size());
        if (end > at) connect(group, related.substr(at, end - at), to, arc, std::string_view(name) == "related_pin");
        at = end + 1;
      }
    }
  }

  // Adds the arc from a pin, or from each bit of a bus, bundle or range: with `by_bit`, bit to bit if the numbers are
  // equal; else all to all.
  void connect(const Group& group, std::string_view related, const std::vector<std::int32_t>& to, Arc arc, bool by_bit) {
    std::vector<std::int32_t> from;
    if (const auto bus = bits_of_.find(std::string(related)); bus != bits_of_.end()) {
      from = bus->second;
    } else {
      Group range;
      range.arguments = {related};
      for (const std::string& name : names_of(range)) {
        if (const auto pin = pin_of_.find(name); pin != pin_of_.end()) from.push_back(pin->second);
      }
    }
    if (from.empty()) {
      no_pin_.add(group.offset, related);
      return;
    }
    const ArcKind kind = arc.kind;
    for (std::size_t target = 0; target < to.size(); ++target) {
      for (std::size_t source = 0; source < from.size(); ++source) {
        if (by_bit && from.size() > 1 && from.size() == to.size() && source != target) continue;
        arc.from = from[source];
        arc.to = to[target];
        // The clock passes through the gate of a cell with a latch; only data is held.
        const bool is_clock = out_.is_clock[static_cast<std::size_t>(arc.from)] != 0;
        arc.kind = kind == ArcKind::kTransparent && is_clock ? ArcKind::kCombinational : kind;
        merge(arc);
      }
    }
  }

  // Merges an arc into that of the same pins, kind and sense, if its tables have the same axes: the slower number of
  // each.
  void merge(const Arc& arc) {
    const std::array<std::int32_t, 4> key = {arc.from, arc.to, static_cast<std::int32_t>(arc.kind), arc.sense};
    const auto [begin, end] = arcs_.equal_range(key);
    for (auto known = begin; known != end; ++known) {
      bool fits = true;
      for (std::size_t table = 0; table < 4; ++table) {
        const Table &a = known->second.tables[table], &b = arc.tables[table];
        fits &= a.values.empty() || b.values.empty() || (a.rows == b.rows && a.columns == b.columns);
      }
      if (!fits) continue;
      for (std::size_t table = 0; table < 4; ++table) {
        Table& a = known->second.tables[table];
        const Table& b = arc.tables[table];
        if (a.values.empty()) a = b;
        for (std::size_t at = 0; at < b.values.size(); ++at) a.values[at] = std::max(a.values[at], b.values[at]);
      }
      return;
    }
    arcs_.emplace(key, arc);
  }

  void add_arc(const Arc& arc) {
    out_.arc_from.push_back(arc.from);
    out_.arc_to.push_back(arc.to);
    out_.arc_kind.push_back(static_cast<std::int8_t>(arc.kind));
    out_.arc_sense.push_back(arc.sense);
    for (const Table& table : arc.tables) out_.arc_tables.push_back(add_table(table));
  }

  std::int32_t add_table(const Table& table) {
    if (table.values.empty()) return -1;
    std::vector<float> all = table.rows;
    all.insert(all.end(), table.columns.begin(), table.columns.end());
    all.insert(all.end(), table.values.begin(), table.values.end());
    std::vector<float> key = {static_cast<float>(table.rows.size())};
    key.insert(key.end(), all.begin(), all.end());
    const auto [entry, is_new] = table_of_.try_emplace(std::move(key), static_cast<std::int32_t>(out_.rows.size()));
    if (is_new) {
      out_.rows.push_back(static_cast<std::int32_t>(table.rows.size()));
      out_.columns.push_back(static_cast<std::int32_t>(table.columns.size()));
      out_.offset.push_back(static_cast<std::int32_t>(out_.numbers.size()));
      out_.numbers.insert(out_.numbers.end(), all.begin(), all.end());
    }
    return entry->second;
  }

  static Axis axis_of(std::string_view variable) {
    if (variable == "total_output_net_capacitance") return Axis::kLoad;
    if (variable == "related_pin_transition") return Axis::kClockSlew;
    if (variable == "input_net_transition" || variable == "input_transition_time") return Axis::kSlew;
    return variable == "constrained_pin_transition" ? Axis::kLoad : Axis::kNone;  // the second axis of limits
  }

  // Returns false if the group has no such table; rows become slews (of a limit: the clock's), columns loads (the
  // data's).
  bool read_table(const Group& timing, std::string_view name, bool is_check, bool holds_slews, Table& into) {
    const Group* group = timing.group(name);
    if (group == nullptr || group->list("values") == nullptr) return false;
    const auto found = templates_.find(group->argument());
    const Group* shape = found == templates_.end() ? nullptr : found->second;
    if (shape == nullptr && group->argument() != "scalar") {
      throw error(group->offset, "the library does not define lu_table_template '" + shown(group->argument()) + "'");
    }
    std::array<Axis, 2> axes = {Axis::kNone, Axis::kNone};
    std::array<std::vector<float>, 2> index = {std::vector<float>{0.0F}, std::vector<float>{0.0F}};
    for (std::size_t axis = 0; axis < 2 && shape != nullptr; ++axis) {
      const std::string_view variable = shape->value(axis == 0 ? "variable_1" : "variable_2");
      if (variable.empty()) break;
      axes[axis] = axis_of(variable);
      if (axes[axis] == Axis::kNone) {
        throw error(shape->offset, "the table variable '" + shown(variable) + "' is not supported");
      }
      const char* key = axis == 0 ? "index_1" : "index_2";
      const auto* own = group->list(key);
      const auto* words = own != nullptr ? own : shape->list(key);
      if (words == nullptr) throw error(group->offset, std::string("the table has no ") + key);
      const bool is_load = axes[axis] == Axis::kLoad && !is_check;
      index[axis] = numbers(*words, *group, is_load ? out_.capacitance_unit : out_.time_unit * out_.slew_factor);
      for (std::size_t at = 1; at < index[axis].size(); ++at) {
        if (index[axis][at] <= index[axis][at - 1]) {
          throw error(group->offset, std::string(key) + " of the table must increase");
        }
      }
    }
    if (shape != nullptr && !shape->value("variable_3").empty()) {
      throw error(shape->offset, "tables of three variables are not supported");
    }
    std::vector<float> values = numbers(*group->list("values"), *group, out_.time_unit * (holds_slews ? out_.slew_factor : 1.0));
    if (values.size() != index[0].size() * index[1].size() || values.empty()) {
      throw error(group->offset, "the table has " + std::to_string(values.size()) + " values instead of " +
                                     std::to_string(index[0].size()) + " × " + std::to_string(index[1].size()));
    }
    if (!is_check && *std::min_element(values.begin(), values.end()) < 0) negative_.add(group->offset, name);
    into = oriented(axes, index, values);
    return true;
  }

  static Table oriented(const std::array<Axis, 2>& axes, std::array<std::vector<float>, 2>& index, std::vector<float>& values) {
    if (axes[0] != Axis::kLoad) return {std::move(index[0]), std::move(index[1]), std::move(values)};
    Table turned{std::move(index[1]), std::move(index[0]), std::vector<float>(values.size())};
    const std::size_t rows = turned.rows.size(), columns = turned.columns.size();
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t column = 0; column < columns; ++column) {
        turned.values[row * columns + column] = values[column * rows + row];
      }
    }
    return turned;
  }

  std::vector<float> numbers(const std::vector<std::string_view>& words, const Group& group, double factor) const {
    std::vector<float> found;
    for (const std::string_view word : words) {
      const char* at = word.data();
      const char* const end = at + word.size();
      while (at < end) {
        if (*at == ',' || *at == ' ' || *at == '\\' || (*at >= '\t' && *at <= '\r') || *at == '+') {
          ++at;
          continue;
        }
        double value = 0;
        const auto [stop, failure] = std::from_chars(at, end, value);
        if (failure != std::errc() || !std::isfinite(value)) {
          throw error(offset_of(word, group) + (at - word.data()), "expected a number in a table, found '" +
                          shown(word.substr(static_cast<std::size_t>(at - word.data()), 20)) + "'");
        }
        found.push_back(static_cast<float>(value * factor));
        at = stop;
      }
    }
    return found;
  }

  std::string_view text_;
  Group group_;
  Library out_;
  std::unordered_map<std::string_view, const Group*> templates_, types_;
  std::unordered_map<std::string, std::int32_t> pin_of_;
  std::unordered_map<std::string, std::vector<std::int32_t>> bits_of_;
  std::multimap<std::array<std::int32_t, 4>, Arc> arcs_;
  std::map<std::vector<float>, std::int32_t> table_of_;
  Findings unused_, no_table_, no_pin_, negative_, twice_;
};

}  // namespace

Library read_library(std::string_view text) { return LibraryReader(text).read(); }

}  // namespace netlist_text::liberty
