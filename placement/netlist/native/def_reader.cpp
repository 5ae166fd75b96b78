#include "def_reader.hpp"

#include <algorithm>
#include <limits>

namespace netlist_text {

namespace {

constexpr std::array<std::string_view, 8> kOrientations = {"N", "FN", "S", "FS", "E", "FE", "W", "FW"};
// Sections of the wires' shapes and of properties, which every flow writes and no placement depends on.
constexpr std::array<std::string_view, 8> kWireSections = {
    "PROPERTYDEFINITIONS", "VIAS", "STYLES", "NONDEFAULTRULES", "PINPROPERTIES", "SLOTS", "FILLS", "VIARULES"};
constexpr std::array<std::string_view, 10> kForeignSections = {
    "SCANCHAINS", "IOTIMINGS",   "FLOORPLANCONSTRAINTS", "TIMINGDISABLES", "PARTITIONS",
    "DEFAULTCAP", "CONSTRAINTS", "ASSERTIONS",           "ALIAS",          "NETEXPRESSIONS"};
constexpr std::array<std::string_view, 6> kSkippedStatements = {
    "NAMESCASESENSITIVE", "TECHNOLOGY", "ARRAY", "FLOORPLAN", "GCELLGRID", "COMPONENTMASKSHIFT"};
constexpr std::int64_t kMostRows = 1'000'000;

std::int32_t narrow(std::int64_t value) { return static_cast<std::int32_t>(value); }

std::string_view unquoted(std::string_view token) {
  return token.size() >= 2 && token.front() == '"' ? token.substr(1, token.size() - 2) : token;
}

}  // namespace

DefContents read_def(std::string_view text) { return DefReader(text).read(); }

DefContents DefReader::read() {
  while (true) {
    const std::string_view keyword = lexer_.capitals(lexer_.next());
    if (keyword.empty()) throw lexer_.error("the file ends without 'END DESIGN'; it appears to be truncated");
    if (keyword == "END") {
      if (foreign_words_.count(lexer_.capitals(lexer_.peek()))) {
        lexer_.next();
        continue;
      }
      lexer_.expect("DESIGN");
      if (const std::string_view word = lexer_.next(); !word.empty()) {
        behind_.add(static_cast<std::int64_t>(lexer_.offset()), shown(word));
      }
      break;
    }
    if (!statement(keyword) && !section_of(keyword)) skip_unknown(keyword);
  }
  finish_nets();
  for (Findings* found : {&duplicate_components_, &dangling_, &duplicate_pins_, &duplicate_nets_, &miscounted_,
                          &shapeless_, &undeclared_, &strange_, &repeated_, &wildcards_, &siteless_, &layerless_, &trackless_, &foreign_, &escaped_, &behind_}) {
    if (found->count) out_.findings.push_back(std::move(*found));
  }
  return std::move(out_);
}

bool DefReader::statement(std::string_view keyword) {
  if (keyword == "VERSION") {
    out_.header.version = lexer_.name("the version");
    lexer_.expect(";");
  } else if (keyword == "DIVIDERCHAR") {
    out_.header.divider = unquoted(lexer_.name("the divider"));
    if (out_.header.divider.size() != 1) throw lexer_.error("DIVIDERCHAR must be one character in quotes");
    lexer_.expect(";");
  } else if (keyword == "BUSBITCHARS") {
    out_.header.bus_bits = unquoted(lexer_.name("the bus brackets"));
    if (out_.header.bus_bits.size() != 2) throw lexer_.error("BUSBITCHARS must be two characters in quotes");
    lexer_.expect(";");
  } else if (keyword == "DESIGN") {
    out_.header.design = lexer_.name("the design's name");
    lexer_.expect(";");
  } else if (keyword == "UNITS") {
    units();
  } else if (keyword == "DIEAREA") {
    die_area();
  } else if (keyword == "ROW") {
    row();
  } else if (keyword == "TRACKS") {
    tracks();
  } else if (among(kSkippedStatements, keyword)) {
    lexer_.skip_statement("';'");
  } else if (keyword == "HISTORY") {
    lexer_.skip_text();
  } else if (keyword == "BEGINEXT") {
    skip_extension();
  } else {
    return false;
  }
  return true;
}

bool DefReader::section_of(std::string_view keyword) {
  if (keyword == "COMPONENTS") {
    section(keyword, [this] { component(); });
  } else if (keyword == "PINS") {
    section(keyword, [this] { pin(); });
  } else if (keyword == "NETS") {
    section(keyword, [this] { net(false); });
  } else if (keyword == "SPECIALNETS") {
    section(keyword, [this] { net(true); });
  } else if (keyword == "BLOCKAGES") {
    section(keyword, [this] { blockage(); });
  } else if (keyword == "REGIONS") {
    section(keyword, [this] { region(); });
  } else if (keyword == "GROUPS") {
    section(keyword, [this] { group(); });
  } else if (among(kWireSections, keyword)) {
    skip_section(keyword);
  } else if (among(kForeignSections, keyword)) {
    foreign_.add(static_cast<std::int64_t>(lexer_.offset()), keyword);
    skip_section(keyword);
  } else {
    return false;
  }
  return true;
}

void DefReader::skip_section(std::string_view keyword) {
  const std::size_t opened = lexer_.offset();
  std::string_view before;
  for (std::string_view token = lexer_.next(); !token.empty(); token = lexer_.next()) {
    if (DefLexer::same(before, "END") && DefLexer::same(token, keyword)) return;
    before = token;
  }
  throw lexer_.error_at(opened, "the " + std::string(keyword) + " section that begins here has no 'END " +
                                    std::string(keyword) + "'; the file appears to be truncated");
}

void DefReader::skip_extension() {
  while (!DefLexer::same(lexer_.need("'ENDEXT'"), "ENDEXT")) {
  }
}

// Skips a statement of another tool or version, up to its `;`, or the entries of a section of that name.
void DefReader::skip_unknown(std::string_view keyword) {
  const std::string_view written = lexer_.text().substr(lexer_.offset(), keyword.size());
  const bool is_def = !out_.header.version.empty() || !out_.header.design.empty() || out_.header.units > 0;
  if (!is_def || (keyword == "-" && foreign_words_.empty())) {
    throw lexer_.error("'" + shown(written) + "' is not a DEF statement");
  }
  if (keyword != "-" && foreign_words_.insert(keyword).second) {
    foreign_.add(static_cast<std::int64_t>(lexer_.offset()), written);
  }
  lexer_.skip_statement("';'");
}

void DefReader::units() {
  lexer_.expect("DISTANCE");
  lexer_.expect("MICRONS");
  out_.header.units = lexer_.number("database units per micron");
  if (!(out_.header.units > 0)) throw lexer_.error("database units per micron must be above 0");
  lexer_.expect(";");
}

void DefReader::die_area() {
  out_.header.die.clear();
  add_points(out_.header.die);
  lexer_.expect(";");
  if (out_.header.die.size() < 4) throw lexer_.error("DIEAREA must have at least two points");
}

void DefReader::row() {
  DefRows& rows = out_.rows;
  const std::size_t begin = lexer_.offset();
  const std::string_view name = lexer_.name("the row's name"), site = lexer_.name("the row's site");
  const std::int64_t x = lexer_.integer("x"), y = lexer_.integer("y");
  const std::int8_t turned = orientation();
  std::array<std::int64_t, 4> repeat = {1, 1, 0, 0};
  std::string_view token = lexer_.need("';'");
  if (DefLexer::same(token, "DO")) {
    repeat[0] = lexer_.integer("the number of sites");
    lexer_.expect("BY");
    repeat[1] = lexer_.integer("the number of sites");
    token = lexer_.need("';'");
    if (DefLexer::same(token, "STEP")) {
      repeat[2] = lexer_.integer("the step");
      repeat[3] = lexer_.integer("the step");
      token = lexer_.need("';'");
    }
  }
  if (token != ";" && token != "+") throw lexer_.error("expected ';' after the row, found '" + shown(token) + "'");
  if (token == "+") lexer_.skip_statement("';'");
  if (repeat[0] < 1 || repeat[1] < 1) return siteless_.add(static_cast<std::int64_t>(begin), name);
  // One statement may define several rows above each other.
  const bool is_array = repeat[0] > 1 && repeat[1] > 1;
  if (is_array && (repeat[3] == 0 || repeat[1] > kMostRows)) {
    throw lexer_.error("a ROW that is repeated in y needs a y STEP above 0 and a number of rows of at most " +
                       std::to_string(kMostRows));
  }
  for (std::int64_t row = 0; row < (is_array ? repeat[1] : 1); ++row) {
    rows.name.push_back(name);
    rows.site.push_back(rows.sites.intern(site));
    rows.x.push_back(narrow(x));
    rows.y.push_back(narrow(y + row * repeat[3]));
    rows.orientation.push_back(turned);
    rows.count_x.push_back(narrow(repeat[0]));
    rows.count_y.push_back(narrow(is_array ? 1 : repeat[1]));
    rows.step_x.push_back(narrow(repeat[2]));
    rows.step_y.push_back(narrow(is_array ? 0 : repeat[3]));
  }
}

void DefReader::tracks() {
  const std::size_t begin = lexer_.offset();
  const std::string_view axis = lexer_.keyword("X or Y");
  if (axis != "X" && axis != "Y") throw lexer_.error("expected X or Y after TRACKS, found '" + shown(axis) + "'");
  const std::int64_t start = lexer_.integer("the first track");
  lexer_.expect("DO");
  const std::int64_t count = lexer_.integer("the number of tracks");
  lexer_.expect("STEP");
  const std::int64_t step = lexer_.integer("the step");
  const bool is_empty = count < 1 || step < 0 || (step == 0 && count > 1);
  if (is_empty) trackless_.add(static_cast<std::int64_t>(begin), axis);
  bool in_layers = false;
  for (std::string_view token = lexer_.need("';'"); token != ";"; token = lexer_.need("';'")) {
    if (DefLexer::same(token, "LAYER")) {
      in_layers = true;
    } else if (in_layers && !is_empty) {
      out_.tracks.layer.push_back(out_.tracks.layers.intern(token));
      out_.tracks.is_x.push_back(axis == "X");
      out_.tracks.start.push_back(narrow(start));
      out_.tracks.count.push_back(narrow(count));
      out_.tracks.step.push_back(narrow(step));
    }
  }
  if (!in_layers) layerless_.add(static_cast<std::int64_t>(begin), axis);
}

void DefReader::blockage() {
  DefBlockages& all = out_.blockages;
  all.begin.push_back(static_cast<std::int64_t>(lexer_.offset()));
  const std::string_view kind = lexer_.keyword("LAYER or PLACEMENT");
  if (kind != "LAYER" && kind != "PLACEMENT") throw lexer_.error("a blockage must be LAYER or PLACEMENT");
  all.layer.push_back(kind == "LAYER" ? all.layers.intern(lexer_.name("the layer")) : -1);
  bool is_soft = false, is_pushdown = false;
  double partial = std::numeric_limits<double>::quiet_NaN();
  std::int32_t component = -1;
  for (std::string_view token = lexer_.need("';'"); token != ";"; token = lexer_.need("';'")) {
    const bool is_rectangle = DefLexer::same(token, "RECT");
    if (is_rectangle || DefLexer::same(token, "POLYGON")) {
      const std::size_t before = all.points.size();
      add_points(all.points);
      const std::size_t points = (all.points.size() - before) / 2;
      if (is_rectangle ? points != 2 : points < 3) {
        throw lexer_.error("a RECT must have 2 points and a POLYGON at least 3");
      }
      all.polygon_start.push_back(narrow(static_cast<std::int64_t>(all.points.size() / 2)));
    } else if (token == "+" && !DefLexer::same(lexer_.peek(), "RECT") && !DefLexer::same(lexer_.peek(), "POLYGON")) {
      blockage_option(is_soft, is_pushdown, partial, component);
    }
  }
  if (static_cast<std::size_t>(all.start.back()) + 1 == all.polygon_start.size()) {
    shapeless_.add(all.begin.back(), all.layer.back() < 0 ? "PLACEMENT" : "LAYER");
  }
  all.is_soft.push_back(is_soft);
  all.is_pushdown.push_back(is_pushdown);
  all.partial.push_back(partial);
  all.component.push_back(component);
  all.start.push_back(narrow(static_cast<std::int64_t>(all.polygon_start.size()) - 1));
}

void DefReader::blockage_option(bool& is_soft, bool& is_pushdown, double& partial, std::int32_t& component) {
  const std::string_view option = lexer_.keyword("an option");
  if (option == "SOFT") {
    is_soft = true;
  } else if (option == "PUSHDOWN") {
    is_pushdown = true;
  } else if (option == "PARTIAL") {
    partial = lexer_.number("the density in per cent");
    if (!(partial >= 0 && partial <= 100)) throw lexer_.error("PARTIAL must be from 0 to 100");
  } else if (option == "COMPONENT") {
    component = out_.blockages.components.intern(lexer_.name("the component"));
  }
}

void DefReader::region() {
  DefRegions& regions = out_.regions;
  region_boxes(lexer_.name("the region's name"));
  for (std::string_view token = lexer_.need("';'"); token != ";"; token = lexer_.need("';'")) {
    if (DefLexer::same(token, "GUIDE")) regions.is_guide.back() = 1;
    if (DefLexer::same(token, "FENCE")) regions.is_fence.back() = 1;
  }
}

// Reads the boxes of a region.
void DefReader::region_boxes(std::string_view name) {
  DefRegions& regions = out_.regions;
  regions.name.push_back(name);
  const std::size_t before = regions.boxes.size();
  add_points(regions.boxes);
  if (regions.boxes.size() == before || (regions.boxes.size() - before) % 4) {
    throw lexer_.error("a region must consist of pairs of points");
  }
  regions.is_guide.push_back(0);
  regions.is_fence.push_back(0);
  regions.start.push_back(narrow(static_cast<std::int64_t>(regions.boxes.size() / 4)));
}

void DefReader::group() {
  DefGroups& groups = out_.groups;
  groups.begin.push_back(static_cast<std::int64_t>(lexer_.offset()));
  groups.name.push_back(lexer_.name("the group's name"));
  groups.region.emplace_back();
  bool in_options = false;
  for (std::string_view token = lexer_.need("';'"); token != ";"; token = lexer_.need("';'")) {
    if (token == "+") {
      in_options = true;
      if (lexer_.keyword("an option") != "REGION") continue;
      const bool has_points = lexer_.peek() == "(";  // as in DEF 5.4 and older
      groups.region.back() = has_points ? groups.name.back() : lexer_.name("the region");
      if (has_points) region_boxes(groups.name.back());
    } else if (!in_options) {
      groups.patterns.push_back(token);
    }
  }
  groups.start.push_back(narrow(static_cast<std::int64_t>(groups.patterns.size())));
}

DefReader::Point DefReader::point() { return point(Point{}); }

DefReader::Point DefReader::point(const Point& last) {
  Point found = last;
  if (lexer_.peek() == "*") {
    lexer_.next();
  } else {
    found.x = lexer_.integer("x");
  }
  if (lexer_.peek() == "*") {
    lexer_.next();
  } else {
    found.y = lexer_.integer("y");
  }
  lexer_.expect(")");
  return found;
}

void DefReader::add_points(Numbers& out) {
  Point last;
  while (lexer_.peek() == "(") {
    lexer_.next();
    last = point(last);
    out.push_back(narrow(last.x));
    out.push_back(narrow(last.y));
  }
}

std::int8_t DefReader::orientation() {
  const std::string_view token = lexer_.need("the orientation");
  const auto* const found = std::find(kOrientations.begin(), kOrientations.end(), lexer_.capitals(token));
  if (found == kOrientations.end()) {
    throw lexer_.error("orientation '" + shown(token) + "' must be one of N, FN, S, FS, E, FE, W, FW");
  }
  return static_cast<std::int8_t>(found - kOrientations.begin());
}

// Returns N if no orientation is given.
std::int8_t DefReader::optional_orientation() {
  const std::string_view token = lexer_.peek();
  return token == "+" || token == ";" ? std::int8_t{0} : orientation();
}

bool DefReader::placing(std::string_view keyword, Site& site) {
  if (keyword == "UNPLACED") {
    site = {Status::kUnplaced, {}, 0};
    if (lexer_.peek() == "(") {  // an ignored location
      lexer_.next();
      point();
      optional_orientation();
    }
    return true;
  }
  if (keyword != "PLACED" && keyword != "FIXED" && keyword != "COVER") return false;
  site.status = keyword == "PLACED" ? Status::kPlaced : keyword == "FIXED" ? Status::kFixed : Status::kCover;
  lexer_.expect("(");
  site.at = point();
  site.orientation = optional_orientation();
  return true;
}

}  // namespace netlist_text
