// Reads a DEF file (LEF/DEF 5.8 Language Reference, chapter "DEF Syntax") into columns, in one pass.
#pragma once

#include <array>
#include <string_view>
#include <unordered_map>

#include "def_contents.hpp"
#include "def_lexer.hpp"

namespace netlist_text {

class DefReader {
 public:
  explicit DefReader(std::string_view text) : lexer_(text) {}
  DefContents read();

 private:
  struct Point {
    std::int64_t x = 0, y = 0;
  };
  struct Site {  // where a component or pin is located
    Status status = Status::kNone;
    Point at;
    std::int8_t orientation = 0;
  };

  // def_reader.cpp: the statements and the small sections
  bool statement(std::string_view keyword);
  bool section_of(std::string_view keyword);
  void units();
  void die_area();
  void row();
  void tracks();
  void blockage();
  void blockage_option(bool& is_soft, bool& is_pushdown, double& partial, std::int32_t& component);
  void region();
  void group();
  void skip_section(std::string_view keyword);

  // def_connectivity.cpp: components, pins and nets
  void component();
  void pin();
  void net();
  void connection(std::size_t net);

  // What they share
  template <typename Entry>
  void section(std::string_view keyword, Entry entry);
  Point point();                 // after its opening bracket
  Point point(const Point& last);  // the same; `*` repeats a coordinate of `last`
  std::int8_t orientation();
  bool placing(std::string_view keyword, Site& site);
  void add_points(Numbers& out);  // all that follow

  DefLexer lexer_;
  DefContents out_;
  std::unordered_map<std::string_view, std::int32_t> component_of_, pin_of_, net_of_;
  Findings duplicate_components_{"duplicate component names"}, duplicate_pins_{"duplicate pin names"},
      duplicate_nets_{"duplicate net names"}, dangling_{"connections to components or pins that do not exist"};
};

template <typename Entry>
void DefReader::section(std::string_view keyword, Entry entry) {
  const std::size_t opened = lexer_.offset();
  const std::int64_t declared = lexer_.integer("the number of entries");
  lexer_.expect(";");
  std::int64_t found = 0;
  while (true) {
    const std::string_view token = lexer_.need(("'END " + std::string(keyword) + "'").c_str());
    if (token == "END") break;
    if (token != "-") throw lexer_.error("expected '-' or 'END " + std::string(keyword) + "', found '" + shown(token) + "'");
    entry();
    ++found;
  }
  lexer_.expect(keyword);
  if (found != declared) {
    throw lexer_.error_at(opened, std::string(keyword) + " says " + std::to_string(declared) + " entries, but " +
                                      std::to_string(found) + " follow");
  }
}

}  // namespace netlist_text
