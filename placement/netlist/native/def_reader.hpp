// Reads a DEF file (LEF/DEF 5.8 Language Reference, chapter "DEF Syntax") into columns, in one pass.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "def_contents.hpp"
#include "def_lexer.hpp"
#include "def_straps.hpp"

namespace netlist_text {

template <std::size_t N>
bool among(const std::array<std::string_view, N>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

class DefReader {
 public:
  explicit DefReader(std::string_view text) : lexer_(text) {}
  DefContents read();

 private:
  struct Point {
    std::int64_t x = 0, y = 0;
  };
  struct Site {  // location of a component or pin
    Status status = Status::kNone;
    Point at;
    std::int8_t orientation = 0;
  };

  struct End {  // end of a net: a pin of a component, or of PIN, which is the design
    std::string_view owner, pin;
    std::size_t begin = 0;
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
  void region_boxes(std::string_view name);
  void group();
  void skip_section(std::string_view keyword);
  void skip_extension();
  void skip_unknown(std::string_view keyword);

  // def_connectivity.cpp: components, pins and nets
  void component();
  void pin();
  std::int32_t new_pin(std::string_view name, std::size_t begin);
  void net(bool is_special);
  std::int32_t new_net(std::string_view name, std::size_t begin, bool is_special);
  End connection();
  void connect(std::int32_t net, const End& end);
  // The index of a declared name, else of the only one that differs from it in escapes; −1: none.
  using Declared = std::unordered_map<std::string_view, std::int32_t>;
  std::int32_t declared_as(const Declared& declared, std::unordered_map<std::string, std::int32_t>& plain, const End& end,
                           std::string_view name);
  void add_straps();
  void finish_nets();

  // Shared by both files.
  template <typename Entry>
  void section(std::string_view keyword, Entry entry);
  Point point();                 // after its opening bracket
  Point point(const Point& last);  // the same; `*` repeats a coordinate of `last`
  std::int8_t orientation();
  std::int8_t optional_orientation();
  bool placing(std::string_view keyword, Site& site);
  void add_points(Numbers& out);  // all that follow

  DefLexer lexer_;
  DefContents out_;
  std::unordered_map<std::string_view, std::int32_t> component_of_, pin_of_, net_of_;
  std::unordered_map<std::string, std::int32_t> plain_component_, plain_pin_;  // unescaped; −2: ambiguous
  std::unordered_set<std::string_view> supplies_;  // special nets of power and ground, which are omitted
  std::vector<End> ends_;  // of the current net
  StrapFinder straps_;     // of the current net
  Numbers net_of_connection_;
  Codes is_special_;    // of each net
  Codes is_connected_, is_declared_;  // of each pin
  Findings duplicate_components_{"duplicate component names"},
      dangling_{"connections to components that do not exist"};
  // Harmless; reported in DefFile.notices.
  Findings duplicate_nets_{"duplicate net names: all of these nets are kept"},
      duplicate_pins_{"duplicate pin names: the first pin is used"},
      miscounted_{"sections whose number of entries differs from the declared number: all entries are read"},
      shapeless_{"blockages without a shape are ignored"},
      undeclared_{"ports in NETS that PINS does not declare are added"},
      wildcards_{"connections of signals to all components (*) are ignored"},
      strange_{"options of components and pins are ignored"},
      repeated_{"pins have further locations, which are ignored"},
      siteless_{"rows without a site are ignored"},
      trackless_{"TRACKS whose count or step is not above 0 are ignored"},
      layerless_{"TRACKS without a LAYER are ignored"},
      foreign_{"statements that are unknown or do not concern placement are ignored"},
      escaped_{"names that are declared with different escapes are treated as equal"},
      behind_{"words after END DESIGN are ignored"};
  std::unordered_set<std::string_view> foreign_words_;
};

template <typename Entry>
void DefReader::section(std::string_view keyword, Entry entry) {
  const std::size_t opened = lexer_.offset();
  const std::int64_t declared = lexer_.integer("the number of entries");
  lexer_.expect(";");
  std::int64_t found = 0;
  while (true) {
    const std::string_view token = lexer_.need(("'END " + std::string(keyword) + "'").c_str());
    if (DefLexer::same(token, "END")) break;
    if (DefLexer::same(token, "BEGINEXT")) {
      skip_extension();
      continue;
    }
    if (token != "-") throw lexer_.error("expected '-' or 'END " + std::string(keyword) + "', found '" + shown(token) + "'");
    entry();
    ++found;
  }
  lexer_.expect(keyword);
  if (found != declared) {
    miscounted_.add(static_cast<std::int64_t>(opened), std::string(keyword) + " with " + std::to_string(found) +
                                                           ", declared " + std::to_string(declared));
  }
}

}  // namespace netlist_text
