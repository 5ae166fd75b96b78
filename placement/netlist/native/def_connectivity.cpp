#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <string>

#include "def_reader.hpp"

namespace netlist_text {

namespace {

constexpr std::array<std::string_view, 5> kDirections = {"", "INPUT", "OUTPUT", "INOUT", "FEEDTHRU"};
constexpr std::array<std::string_view, 9> kUses = {"",       "SIGNAL", "POWER", "GROUND", "CLOCK",
                                                   "TIEOFF", "ANALOG", "SCAN",  "RESET"};

// Options that do not concern placement.
constexpr std::array<std::string_view, 7> kComponentOptions = {"EEQMASTER", "GENERATE", "SOURCE",   "WEIGHT",
                                                               "FOREIGN",   "PROPERTY", "MASKSHIFT"};
constexpr std::array<std::string_view, 5> kPinOptions = {"NETEXPR", "SUPPLYSENSITIVITY", "GROUNDSENSITIVITY", "VIA",
                                                         "PROPERTY"};

// Index of a word in a list; 0 if it is not in the list.
template <std::size_t N>
std::int8_t code(const std::array<std::string_view, N>& words, std::string_view word) {
  const auto* const found = std::find(words.begin(), words.end(), word);
  return found == words.end() ? std::int8_t{0} : static_cast<std::int8_t>(found - words.begin());
}

std::int32_t narrow(std::int64_t value) { return static_cast<std::int32_t>(value); }

bool is_supply(std::int8_t use) { return use == code(kUses, "POWER") || use == code(kUses, "GROUND"); }

// Whether a token is an option whose `+` has no space after it.
bool is_glued(std::string_view token) {
  return token.size() > 1 && token[0] == '+' && ((token[1] | 32) >= 'a' && (token[1] | 32) <= 'z');
}

// The pin that owns an additional location: NAME[3] for NAME.extra2[3]; empty if the name is not that of one.
std::string owner_of(std::string_view name) {
  const std::size_t at = name.find(".extra");
  if (at == name.npos) return {};
  const std::size_t end = name.find_first_not_of("0123456789", at + 6);
  if (end == at + 6 || (end != name.npos && name[end] != '[' && name[end] != '<' && name[end] != '\\')) return {};
  return std::string(name.substr(0, at)) + std::string(end == name.npos ? "" : name.substr(end));
}

// A name without its escapes.
std::string unescaped(std::string_view name) {
  std::string plain;
  for (std::size_t at = 0; at < name.size(); ++at) {
    if (name[at] == '\\' && at + 1 < name.size()) ++at;
    plain += name[at];
  }
  return plain;
}

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
    if (is_glued(token)) strange_.add(all.begin.back(), shown(token) + " of " + shown(all.name.back()));
    if (token != "+") continue;
    const std::string_view option = lexer_.keyword("an option");
    if (placing(option, site)) continue;
    if (option == "HALO") {
      if (DefLexer::same(lexer_.peek(), "SOFT")) lexer_.next();
      all.halo_component.push_back(index);
      for (int side = 0; side < 4; ++side) {
        while (lexer_.peek() == "(" || lexer_.peek() == ")") lexer_.next();  // as in files of old versions of OpenROAD
        all.halo.push_back(narrow(lexer_.integer("the halo's width")));
        if (all.halo.back() < 0) throw lexer_.error("the widths of a halo must be at least 0");
      }
    } else if (option == "REGION") {
      const bool has_points = lexer_.peek() == "(";  // as in DEF 5.4 and older
      const std::string_view region = has_points ? all.name.back() : lexer_.name("the region");
      if (has_points) region_boxes(region);
      all.region_component.push_back(index);
      all.region.push_back(all.regions.intern(region));
    } else if (!among(kComponentOptions, option)) {
      strange_.add(all.begin.back(), shown(option) + " of " + shown(all.name.back()));
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
  const std::size_t begin = lexer_.offset();
  const std::string_view name = lexer_.name("the pin's name");
  Site site;
  std::int32_t net = -1, layer = -1;
  std::int8_t direction = 0, use = 0;
  bool is_special = false, is_done = false;  // done: the first port is complete and another one follows
  bool is_repeated = false;  // whether another port is placed, too
  Numbers points;
  for (std::string_view token = lexer_.need("';'"); token != ";"; token = lexer_.need("';'")) {
    if (token == "-") throw lexer_.error_at(begin, "this pin has no ';'");
    if (is_glued(token)) strange_.add(static_cast<std::int64_t>(begin), shown(token) + " of " + shown(name));
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
    } else if (Site found; placing(option, found)) {
      if (!is_done) site = found;
      is_repeated = is_repeated || (is_done && found.status >= Status::kPlaced);
    } else if (!among(kPinOptions, option) && option.substr(0, 7) != "ANTENNA") {
      strange_.add(static_cast<std::int64_t>(begin), shown(option) + " of " + shown(name));
    }
  }
  // An additional location of a pin is not a pin.
  if (const std::string owner = owner_of(name); !owner.empty() && pin_of_.count(owner)) {
    const bool is_new = pin_of_.try_emplace(name, pin_of_.at(owner)).second;
    if (!is_new) duplicate_pins_.add(static_cast<std::int64_t>(begin), name);
    if (is_new && !is_supply(use)) repeated_.add(static_cast<std::int64_t>(begin), name);
    return;
  }
  if (is_repeated && !is_supply(use)) repeated_.add(static_cast<std::int64_t>(begin), name);
  const auto known = pin_of_.find(name);
  const std::int32_t index = known == pin_of_.end() ? new_pin(name, begin) : known->second;
  if (is_declared_[index]) return duplicate_pins_.add(static_cast<std::int64_t>(begin), name);
  is_declared_[index] = 1;
  all.begin[index] = static_cast<std::int64_t>(begin);
  for (std::size_t at = 0; at + 1 < points.size(); at += 2) {
    std::int32_t* const box = &all.box[4 * static_cast<std::size_t>(index)];
    box[0] = at ? std::min(box[0], points[at]) : points[at];
    box[1] = at ? std::min(box[1], points[at + 1]) : points[at + 1];
    box[2] = at ? std::max(box[2], points[at]) : points[at];
    box[3] = at ? std::max(box[3], points[at + 1]) : points[at + 1];
  }
  all.net[index] = net;
  all.layer[index] = layer;
  all.status[index] = static_cast<std::int8_t>(site.status);
  all.x[index] = narrow(site.at.x);
  all.y[index] = narrow(site.at.y);
  all.orientation[index] = site.orientation;
  all.direction[index] = direction;
  all.use[index] = use;
  all.special[index] = is_special;
}

// Adds a pin that is not declared yet. One that occurs only in NETS, as written by OpenROAD, remains undeclared.
std::int32_t DefReader::new_pin(std::string_view name, std::size_t begin) {
  DefPins& all = out_.pins;
  all.begin.push_back(static_cast<std::int64_t>(begin));
  all.name.push_back(name);
  all.box.insert(all.box.end(), 4, 0);
  for (Numbers* column : {&all.net, &all.layer}) column->push_back(-1);
  for (Numbers* column : {&all.x, &all.y}) column->push_back(0);
  for (Codes* column : {&all.status, &all.orientation, &all.direction, &all.use, &all.special}) column->push_back(0);
  is_declared_.push_back(0);
  return pin_of_[name] = narrow(static_cast<std::int64_t>(all.name.size()) - 1);
}

void DefReader::net(bool is_special) {
  DefNets& all = out_.nets;
  const std::size_t begin = lexer_.offset();
  const std::string_view name = lexer_.name("the net's name");
  bool in_options = false, is_everywhere = false;
  std::int8_t use = 0;
  double weight = 1;
  ends_.clear();
  straps_.begin();
  for (std::string_view token = lexer_.need("';'"); token != ";"; token = lexer_.need("';'")) {
    if (token == "-") throw lexer_.error_at(begin, "this net has no ';'");
    if (token == "(" && !in_options) {
      ends_.push_back(connection());
      is_everywhere = is_everywhere || ends_.back().owner == "*";
    } else if (token == "+") {
      in_options = true;
      const std::string_view option = lexer_.keyword("an option");
      if (option == "USE") use = code(kUses, lexer_.keyword("a use"));
      if (option == "WEIGHT") weight = lexer_.number("the weight");
      if (weight < 0) throw lexer_.error("a net's weight must be at least 0");
      if (is_special) straps_.take(option);
    } else if (!in_options) {
      throw lexer_.error("expected '(', '+' or ';' in a net, found '" + shown(token) + "'");
    } else if (is_special) {
      straps_.take(token);
    }
  }
  if (is_special && (is_supply(use) || (use == 0 && is_everywhere))) {
    supplies_.insert(name);
    add_straps();
    return;
  }
  // A special net and a regular one of its name are one net; two regular ones are not.
  const auto known = net_of_.find(name);
  const bool joins = known != net_of_.end() && static_cast<bool>(is_special_[known->second]) != is_special;
  if (known != net_of_.end() && !joins) duplicate_nets_.add(static_cast<std::int64_t>(begin), name);
  const std::int32_t net = joins ? known->second : new_net(name, begin, is_special);
  if (use != 0) all.use[net] = use;
  if (weight != 1) all.weight[net] = weight;
  for (const End& end : ends_) connect(net, end);
}

void DefReader::add_straps() {
  DefStraps& all = out_.straps;
  const auto net = narrow(static_cast<std::int64_t>(supplies_.size()));
  std::set<std::array<std::int64_t, 6>> known;
  for (const Strap& strap : straps_.straps()) {
    const bool is_vertical = strap.from[0] == strap.to[0];
    if (is_vertical == (strap.from[1] == strap.to[1])) continue;  // slanted, or a point
    const int along = is_vertical ? 1 : 0;
    const std::int64_t low = std::min(strap.from[along], strap.to[along]), high = std::max(strap.from[along], strap.to[along]);
    const std::int32_t layer = all.layers.intern(strap.layer);
    if (!known.insert({layer, strap.width, strap.from[1 - along], low, high, is_vertical}).second) continue;
    all.net.push_back(net);
    all.layer.push_back(layer);
    all.width.push_back(narrow(strap.width));
    all.at.push_back(narrow(strap.from[1 - along]));
    all.low.push_back(narrow(low));
    all.high.push_back(narrow(high));
    all.is_vertical.push_back(is_vertical);
  }
}

std::int32_t DefReader::new_net(std::string_view name, std::size_t begin, bool is_special) {
  DefNets& all = out_.nets;
  const std::int32_t net = narrow(static_cast<std::int64_t>(all.name.size()));
  if (!DefLexer::same(name, "MUSTJOIN")) net_of_.try_emplace(name, net);
  all.begin.push_back(static_cast<std::int64_t>(begin));
  all.name.push_back(name);
  all.use.push_back(0);
  all.weight.push_back(1);
  is_special_.push_back(is_special);
  return net;
}

DefReader::End DefReader::connection() {
  End end;
  end.owner = lexer_.name("a component or PIN");
  end.begin = lexer_.offset();
  end.pin = lexer_.name("the pin's name");
  for (std::string_view token = lexer_.need("')'"); token != ")"; token = lexer_.need("')'")) {
    if (token != "+" && !DefLexer::same(token, "SYNTHESIZED")) throw lexer_.error("expected ')', found '" + shown(token) + "'");
  }
  return end;
}

std::int32_t DefReader::declared_as(const Declared& declared, std::unordered_map<std::string, std::int32_t>& plain,
                                    const End& end, std::string_view name) {
  if (const auto found = declared.find(name); found != declared.end()) return found->second;
  if (plain.empty()) {
    for (const auto& [written, index] : declared) {
      if (const auto [at, is_new] = plain.try_emplace(unescaped(written), index); !is_new) at->second = -2;
    }
  }
  const auto found = plain.find(unescaped(name));
  if (found == plain.end() || found->second < 0) return -1;
  escaped_.add(static_cast<std::int64_t>(end.begin), name);
  return found->second;
}

void DefReader::connect(std::int32_t net, const End& end) {
  DefNets& all = out_.nets;
  if (end.owner == "*") {
    wildcards_.add(static_cast<std::int64_t>(end.begin), shown(end.pin) + " in net " + shown(all.name[net]));
    return;
  }
  std::int32_t pin = 0, component = -1;
  if (DefLexer::same(end.owner, "PIN") && !component_of_.count(end.owner)) {
    pin = declared_as(pin_of_, plain_pin_, end, end.pin);
    if (pin < 0) pin = new_pin(end.pin, end.begin);
    is_connected_.resize(out_.pins.name.size());
    if (is_connected_[pin] && owner_of(end.pin).size()) return;  // another location of a pin that is already on the net
    is_connected_[pin] = 1;
  } else if (component = declared_as(component_of_, plain_component_, end, end.owner); component >= 0) {
    pin = all.pins.intern(end.pin);
  } else {
    dangling_.add(static_cast<std::int64_t>(end.begin),
                  "component " + shown(end.owner) + " in net " + shown(all.name[net]));
    return;
  }
  all.component.push_back(component);
  all.pin.push_back(pin);
  net_of_connection_.push_back(net);
}

// Connects pins that no net names to the nets that they name, and sorts the connections by net.
void DefReader::finish_nets() {
  DefNets& all = out_.nets;
  const DefPins& pins = out_.pins;
  is_connected_.resize(pins.name.size());
  for (std::size_t pin = 0; pin < pins.name.size(); ++pin) {
    if (!is_declared_[pin]) undeclared_.add(pins.begin[pin], pins.name[pin]);
    if (pins.net[pin] < 0 || is_connected_[pin] || is_supply(pins.use[pin])) continue;
    const std::string_view name = pins.nets.names[pins.net[pin]];
    if (supplies_.count(name)) continue;
    const auto known = net_of_.find(name);
    const std::int32_t net = known == net_of_.end() ? new_net(name, pins.begin[pin], false) : known->second;
    all.component.push_back(-1);
    all.pin.push_back(narrow(static_cast<std::int64_t>(pin)));
    net_of_connection_.push_back(net);
  }
  all.start.assign(all.name.size() + 1, 0);
  for (const std::int32_t net : net_of_connection_) ++all.start[net + 1];
  std::partial_sum(all.start.begin(), all.start.end(), all.start.begin());
  if (std::is_sorted(net_of_connection_.begin(), net_of_connection_.end())) return;
  Numbers next = all.start, component(all.component.size()), pin(all.pin.size());
  for (std::size_t at = 0; at < net_of_connection_.size(); ++at) {
    const std::int32_t to = next[net_of_connection_[at]]++;
    component[to] = all.component[at];
    pin[to] = all.pin[at];
  }
  all.component = std::move(component);
  all.pin = std::move(pin);
}

}  // namespace netlist_text
