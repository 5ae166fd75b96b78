#include <algorithm>
#include <array>

#include "def_reader.hpp"

namespace netlist_text {

namespace {

constexpr std::array<std::string_view, 5> kDirections = {"", "INPUT", "OUTPUT", "INOUT", "FEEDTHRU"};
constexpr std::array<std::string_view, 9> kUses = {"",       "SIGNAL", "POWER", "GROUND", "CLOCK",
                                                   "TIEOFF", "ANALOG", "SCAN",  "RESET"};

// The place of a word in a list; 0 where it is not in it.
template <std::size_t N>
std::int8_t code(const std::array<std::string_view, N>& words, std::string_view word) {
  const auto* const found = std::find(words.begin(), words.end(), word);
  return found == words.end() ? std::int8_t{0} : static_cast<std::int8_t>(found - words.begin());
}

std::int32_t narrow(std::int64_t value) { return static_cast<std::int32_t>(value); }

}  // namespace

void DefReader::component() {
  DefComponents& all = out_.components;
  const auto index = static_cast<std::int32_t>(all.name.size());
  all.begin.push_back(static_cast<std::int64_t>(lexer_.offset()));
  all.name.push_back(lexer_.name("the component's name"));
  if (!component_of_.try_emplace(all.name.back(), index).second) {
    duplicate_components_.add(all.begin.back(), all.name.back());
  }
  all.master.push_back(all.masters.intern(lexer_.name("the component's master")));
  Site site;
  for (std::string_view token = lexer_.need("';'"); token != ";"; token = lexer_.need("';'")) {
    if (token == "-") throw lexer_.error_at(static_cast<std::size_t>(all.begin.back()), "this component has no ';'");
    if (token != "+") continue;
    const std::string_view option = lexer_.keyword("an option");
    if (placing(option, site)) continue;
    if (option == "HALO") {
      if (lexer_.peek() == "SOFT") lexer_.next();
      all.halo_component.push_back(index);
      for (int side = 0; side < 4; ++side) {
        all.halo.push_back(narrow(lexer_.integer("the halo's width")));
        if (all.halo.back() < 0) throw lexer_.error("a halo must be 0 or wider");
      }
    } else if (option == "REGION") {
      if (lexer_.peek() == "(") continue;
      all.region_component.push_back(index);
      all.region.push_back(all.regions.intern(lexer_.name("the region")));
    }
  }
  all.end.push_back(static_cast<std::int64_t>(lexer_.end()));
  all.status.push_back(static_cast<std::int8_t>(site.status));
  all.x.push_back(narrow(site.at.x));
  all.y.push_back(narrow(site.at.y));
  all.orientation.push_back(site.orientation);
}

void DefReader::pin() {
  DefPins& all = out_.pins;
  const auto index = static_cast<std::int32_t>(all.name.size());
  all.begin.push_back(static_cast<std::int64_t>(lexer_.offset()));
  all.name.push_back(lexer_.name("the pin's name"));
  if (!pin_of_.try_emplace(all.name.back(), index).second) duplicate_pins_.add(all.begin.back(), all.name.back());
  Site site;
  std::int32_t net = -1, layer = -1;
  std::int8_t direction = 0, use = 0;
  bool is_special = false, is_done = false;  // done: the first port is complete and another one follows
  Numbers points;
  for (std::string_view token = lexer_.need("';'"); token != ";"; token = lexer_.need("';'")) {
    if (token == "-") throw lexer_.error_at(static_cast<std::size_t>(all.begin.back()), "this pin has no ';'");
    if (token != "+") continue;
    const std::string_view option = lexer_.keyword("an option");
    if (option == "NET") {
      net = all.nets.intern(lexer_.name("the net"));
    } else if (option == "SPECIAL") {
      is_special = true;
    } else if (option == "DIRECTION") {
      direction = code(kDirections, lexer_.keyword("a direction"));
    } else if (option == "USE") {
      use = code(kUses, lexer_.keyword("a use"));
    } else if (option == "PORT") {
      is_done = site.status >= Status::kPlaced;
    } else if (option == "LAYER" || option == "POLYGON") {
      const std::string_view name = lexer_.name("the layer");
      while (lexer_.peek() != "(" && lexer_.peek() != "+" && lexer_.peek() != ";") lexer_.need("a point");
      Numbers shape;
      add_points(shape);
      if (is_done) continue;
      if (layer < 0) layer = all.layers.intern(name);
      points.insert(points.end(), shape.begin(), shape.end());
    } else if (Site found; placing(option, found) && !is_done) {
      site = found;
    }
  }
  std::array<std::int32_t, 4> box = {0, 0, 0, 0};
  for (std::size_t at = 0; at + 1 < points.size(); at += 2) {
    box[0] = at ? std::min(box[0], points[at]) : points[at];
    box[1] = at ? std::min(box[1], points[at + 1]) : points[at + 1];
    box[2] = at ? std::max(box[2], points[at]) : points[at];
    box[3] = at ? std::max(box[3], points[at + 1]) : points[at + 1];
  }
  all.box.insert(all.box.end(), box.begin(), box.end());
  all.net.push_back(net);
  all.layer.push_back(layer);
  all.status.push_back(static_cast<std::int8_t>(site.status));
  all.x.push_back(narrow(site.at.x));
  all.y.push_back(narrow(site.at.y));
  all.orientation.push_back(site.orientation);
  all.direction.push_back(direction);
  all.use.push_back(use);
  all.special.push_back(is_special);
}

void DefReader::net() {
  DefNets& all = out_.nets;
  all.begin.push_back(static_cast<std::int64_t>(lexer_.offset()));
  const std::string_view name = lexer_.name("the net's name");
  if (name != "MUSTJOIN" && !net_of_.try_emplace(name, narrow(static_cast<std::int64_t>(all.name.size()))).second) {
    duplicate_nets_.add(all.begin.back(), name);
  }
  all.name.push_back(name);
  bool in_options = false;
  std::int8_t use = 0;
  double weight = 1;
  for (std::string_view token = lexer_.need("';'"); token != ";"; token = lexer_.need("';'")) {
    if (token == "-") throw lexer_.error_at(static_cast<std::size_t>(all.begin.back()), "this net has no ';'");
    if (token == "(" && !in_options) {
      connection(all.name.size() - 1);
    } else if (token == "+") {
      in_options = true;
      const std::string_view option = lexer_.keyword("an option");
      if (option == "USE") use = code(kUses, lexer_.keyword("a use"));
      if (option == "WEIGHT") weight = lexer_.number("the weight");
      if (weight < 0) throw lexer_.error("a net's weight must be at least 0");
    } else if (!in_options) {
      throw lexer_.error("expected '(', '+' or ';' in a net, found '" + shown(token) + "'");
    }
  }
  all.use.push_back(use);
  all.weight.push_back(weight);
  all.start.push_back(narrow(static_cast<std::int64_t>(all.pin.size())));
}

void DefReader::connection(std::size_t net) {
  DefNets& all = out_.nets;
  const std::string_view owner = lexer_.name("a component or PIN");
  const std::size_t at = lexer_.offset();
  const std::string_view pin = lexer_.name("the pin's name");
  for (std::string_view token = lexer_.need("')'"); token != ")"; token = lexer_.need("')'")) {
    if (token != "+" && token != "SYNTHESIZED") throw lexer_.error("expected ')', found '" + shown(token) + "'");
  }
  const bool is_port = owner == "PIN";
  const auto& known = is_port ? pin_of_ : component_of_;
  const auto found = known.find(is_port ? pin : owner);
  if (found == known.end()) {
    std::string about = is_port ? "pin " + shown(pin) : "component " + shown(owner);
    dangling_.add(static_cast<std::int64_t>(at), about + " in net " + shown(all.name[net]));
    return;
  }
  all.component.push_back(is_port ? -1 : found->second);
  all.pin.push_back(is_port ? found->second : all.pins.intern(pin));
}

}  // namespace netlist_text
