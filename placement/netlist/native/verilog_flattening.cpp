#include "verilog_flattening.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_set>

namespace netlist_text::verilog {
namespace {

constexpr int kMostLevels = 1000;
constexpr std::int64_t kMostNets = 1'000'000'000;
constexpr std::int64_t kMostInstances = 100'000'000;

// Disjoint sets of bits that are one net; the lowest bit represents its set.
class Nets {
 public:
  std::int32_t add(std::int64_t count) {
    const std::size_t first = parent_.size();
    parent_.resize(first + static_cast<std::size_t>(count));
    std::iota(parent_.begin() + static_cast<std::ptrdiff_t>(first), parent_.end(), static_cast<std::int32_t>(first));
    return static_cast<std::int32_t>(first);
  }

  std::int32_t find(std::int32_t bit) {
    while (parent_[static_cast<std::size_t>(bit)] != bit) {
      std::int32_t& up = parent_[static_cast<std::size_t>(bit)];
      up = parent_[static_cast<std::size_t>(up)];
      bit = up;
    }
    return bit;
  }

  void join(std::int32_t a, std::int32_t b) {
    a = find(a);
    b = find(b);
    parent_[static_cast<std::size_t>(std::max(a, b))] = std::min(a, b);
  }

  std::int64_t count() const { return static_cast<std::int64_t>(parent_.size()); }

 private:
  std::vector<std::int32_t> parent_;
};

// Bits 0 and 1 of all nets are the constants; bit -1 is an open pin.
constexpr std::int32_t kConstants = 2;

std::int32_t global(std::int32_t bit, std::int32_t base) {
  return bit >= 0 ? base + bit : bit == kZero ? 0 : bit == kOne ? 1 : -1;
}

std::string with_index(std::string_view name, std::int32_t index) {
  return std::string(name) + "[" + std::to_string(index) + "]";
}

class Flattening {
 public:
  Flattening(std::string_view text, const std::vector<Module>& modules, const Leaves& leaves)
      : text_(text), modules_(modules), leaves_(leaves) {
    for (const Module& module : modules) {
      if (!module_of_.emplace(module.name, &module).second) {
        throw error(module.offset, "module '" + shown(module.name) + "' is defined twice");
      }
    }
    twice_.what = "repeated component names";
    unknown_.what = "masters that are defined neither by a LEF file nor by a module";
    no_pins_.what = "connections to pins that do not exist in their masters";
    widths_.what = "connections whose width differs from their port's: the lowest bits are connected";
    boxes_.what = "instances of empty modules without a LEF definition (black boxes) are ignored";
    inner_.what = "modules that LEF files also define: the LEF definitions are used";
  }

  FlatNetlist run(std::string_view top) {
    const Module& first = *top_module(top);
    out_.top = first.name;
    nets_.add(kConstants);
    const std::int32_t base = nets_.add(first.num_bits);
    add_ports(first, base);
    expand(first, base, "", 0);
    collect();
    for (Findings* kind : {&unknown_, &no_pins_, &twice_}) {
      if (kind->count) out_.faults.push_back(std::move(*kind));
    }
    for (Findings* kind : {&inner_, &boxes_, &widths_}) {
      if (kind->count) out_.notices.push_back(std::move(*kind));
    }
    return std::move(out_);
  }

 private:
  ParseError error(std::int64_t offset, const std::string& message) const {
    return {line_at(text_, static_cast<std::size_t>(offset)), message};
  }

  const Module* top_module(std::string_view wanted) const {
    if (const auto found = module_of_.find(wanted); found != module_of_.end()) return found->second;
    std::unordered_set<std::string_view> used;
    for (const Module& module : modules_) {
      for (const Instance& instance : module.instances) used.insert(instance.master);
    }
    std::vector<const Module*> tops;
    for (const Module& module : modules_) {
      if (used.count(module.name) == 0 && leaf(module.name) == nullptr) tops.push_back(&module);
    }
    if (tops.size() == 1) return tops.front();
    if (tops.empty()) throw ParseError(1, "there is no top module: every module is instantiated by another one");
    throw error(tops[1]->offset, "both '" + shown(tops[0]->name) + "' and '" + shown(tops[1]->name) +
                                     "' are top modules: the DEF file's DESIGN must name one of them");
  }

  const LeafPorts* leaf(std::string_view name) const {
    const auto found = leaves_.find(name);
    return found == leaves_.end() ? nullptr : &found->second;
  }

  void add_ports(const Module& top, std::int32_t base) {
    for (const std::string_view port : top.ports) {
      const Signal* signal = top.find(port);
      if (signal == nullptr || signal->direction == Direction::kNone) {
        throw error(top.offset, "port '" + shown(port) + "' of module '" + shown(top.name) + "' has no direction");
      }
      for (std::int32_t bit = signal->width() - 1; bit >= 0; --bit) {
        port_bit_.push_back(base + signal->first + bit);
        out_.ports.push_back(signal->is_bus ? with_index(port, signal->index(bit)) : std::string(port));
        out_.direction.push_back(static_cast<std::int8_t>(signal->direction));
      }
    }
  }

  void expand(const Module& module, std::int32_t base, const std::string& path, int level) {
    for (const auto& [a, b] : module.assigned) nets_.join(base + a, global(b, base));
    for (const Instance& instance : module.instances) {
      if (++instances_ > kMostInstances) {
        throw error(instance.offset, "the hierarchy has more than 100,000,000 instances");
      }
      std::string name = path + std::string(instance.name);
      const auto defined = module_of_.find(instance.master);
      const Module* inner = defined == module_of_.end() ? nullptr : defined->second;
      if (const LeafPorts* ports = leaf(instance.master)) {
        if (inner != nullptr && !inner->instances.empty() && told_.insert(instance.master).second) {
          inner_.add(inner->offset, instance.master);
        }
        add_leaf(module, base, instance, inner, *ports, std::move(name));
      } else if (inner == nullptr) {
        if (told_.insert(instance.master).second) unknown_.add(instance.offset, instance.master);
      } else {
        if (level >= kMostLevels) throw error(instance.offset, "module '" + shown(inner->name) + "' contains itself");
        if (inner->instances.empty() && inner->assigned.empty()) boxes_.add(instance.offset, name + " (" + std::string(inner->name) + ")");
        if (nets_.count() + inner->num_bits > kMostNets) {
          throw error(instance.offset, "the hierarchy has more than 1,000,000,000 nets");
        }
        const std::int32_t inside = nets_.add(inner->num_bits);
        for (std::size_t at = instance.first; at < instance.last; ++at) {
          join_port(module, base, instance, at, *inner, inside);
        }
        expand(*inner, inside, name + "/", level + 1);
      }
    }
  }

  // The port that a connection names, or the one at its position in the header; nullptr if there is none.
  const Signal* port_of(const Module& module, const Instance& instance, std::size_t at, const Module& inner) const {
    const std::string_view name = module.connections[at].port;
    if (!name.empty()) {
      const Signal* signal = inner.find(name);
      return signal != nullptr && signal->direction != Direction::kNone ? signal : nullptr;
    }
    const std::size_t place = at - instance.first;
    return place < inner.ports.size() ? inner.find(inner.ports[place]) : nullptr;
  }

  void join_port(const Module& module, std::int32_t base, const Instance& instance, std::size_t at, const Module& inner,
                 std::int32_t inside) {
    const Connection& connection = module.connections[at];
    const auto width = static_cast<std::int32_t>(connection.end - connection.begin);
    if (width == 0) return;
    const Signal* port = port_of(module, instance, at, inner);
    if (port == nullptr) {
      no_pins_.add(instance.offset, pin_text(connection, instance));
      return;
    }
    if (width != port->width()) widths_.add(instance.offset, pin_text(connection, instance));
    for (std::int32_t bit = 0; bit < std::min(width, port->width()); ++bit) {
      const std::int32_t outside = global(bit_of(module, connection, bit), base);
      if (outside >= 0) nets_.join(outside, inside + port->first + bit);
    }
  }

  static std::string pin_text(const Connection& connection, const Instance& instance) {
    const std::string port = connection.port.empty() ? "a port by position" : std::string(connection.port);
    return port + " of " + std::string(instance.name) + " (" + std::string(instance.master) + ")";
  }

  // The bit of a connection that is `place` above its lowest.
  static std::int32_t bit_of(const Module& module, const Connection& connection, std::int32_t place) {
    return module.bits[static_cast<std::size_t>(connection.end - 1 - place)];
  }

  void add_leaf(const Module& module, std::int32_t base, const Instance& instance, const Module* stub,
                const LeafPorts& ports, std::string name) {
    const auto component = static_cast<std::int32_t>(out_.names.size());
    out_.names.push_back(std::move(name));
    out_.offset.push_back(instance.offset);
    const auto [entry, is_new] = master_of_.try_emplace(instance.master, static_cast<std::int32_t>(out_.masters.size()));
    if (is_new) out_.masters.emplace_back(instance.master);
    out_.master.push_back(entry->second);
    for (std::size_t at = instance.first; at < instance.last; ++at) {
      const Connection& connection = module.connections[at];
      const Signal* declared = stub == nullptr ? nullptr : port_of(module, instance, at, *stub);
      const std::string port(connection.port.empty() && declared != nullptr ? declared->name : connection.port);
      const auto width = static_cast<std::int32_t>(connection.end - connection.begin);
      const auto found = ports.find(port);
      if (found == ports.end()) {
        no_pins_.add(instance.offset, pin_text(connection, instance));
        continue;
      }
      if (width == 0) {
        out_.open += found->second.is_bus ? found->second.high - found->second.low + 1 : 1;
        continue;
      }
      connect(component, module, base, instance, connection, port, found->second, declared);
    }
  }

  void connect(std::int32_t component, const Module& module, std::int32_t base, const Instance& instance,
               const Connection& connection, const std::string& port, const LeafPort& pins, const Signal* declared) {
    const auto width = static_cast<std::int32_t>(connection.end - connection.begin);
    const std::int32_t most = pins.is_bus ? pins.high - pins.low + 1 : 1;
    if (width != most) widths_.add(instance.offset, pin_text(connection, instance));
    const bool has_range = declared != nullptr && declared->is_bus && declared->width() == most;
    for (std::int32_t bit = 0; bit < std::min(width, most); ++bit) {
      const std::int32_t index = has_range ? declared->index(bit) : pins.low + bit;
      const std::int32_t at = global(bit_of(module, connection, bit), base);
      if (at < 0) {
        ++out_.open;
        continue;
      }
      connected_.push_back({at, component, pin_number(port, pins.is_bus ? index : -1)});
    }
  }

  // The index of a pin's name in `pins`; index -1: not a bit of a bus.
  std::int32_t pin_number(const std::string& port, std::int32_t index) {
    std::vector<std::int32_t>& numbers = numbers_of_[port];
    const auto place = static_cast<std::size_t>(index + 1);
    if (numbers.size() <= place) numbers.resize(place + 1, -1);
    if (numbers[place] < 0) {
      numbers[place] = static_cast<std::int32_t>(out_.pins.size());
      out_.pins.push_back(index < 0 ? port : with_index(port, index));
    }
    return numbers[place];
  }

  // Collects the connections in the order of their nets, ports first; nets are in the order of their first bit.
  void collect() {
    std::vector<Connected> all;
    all.reserve(connected_.size() + port_bit_.size());
    for (std::size_t port = 0; port < port_bit_.size(); ++port) {
      all.push_back({port_bit_[port], -1, static_cast<std::int32_t>(port)});
    }
    all.insert(all.end(), connected_.begin(), connected_.end());
    const std::int32_t zero = nets_.find(0), one = nets_.find(1);
    std::vector<std::int32_t> count(static_cast<std::size_t>(nets_.count()) + 1, 0);
    std::size_t kept = 0;
    for (Connected& one_pin : all) {
      one_pin.bit = nets_.find(one_pin.bit);
      if (one_pin.bit == zero || one_pin.bit == one) {
        out_.constants += one_pin.component >= 0;
        continue;
      }
      ++count[static_cast<std::size_t>(one_pin.bit) + 1];
      all[kept++] = one_pin;
    }
    all.resize(kept);
    out_.start.push_back(0);
    for (std::size_t bit = 0; bit + 1 < count.size(); ++bit) {
      if (count[bit + 1] > 0) out_.start.push_back(out_.start.back() + count[bit + 1]);
      count[bit + 1] += count[bit];
    }
    out_.component.resize(kept);
    out_.pin.resize(kept);
    for (const Connected& one_pin : all) {
      const auto at = static_cast<std::size_t>(count[static_cast<std::size_t>(one_pin.bit)]++);
      out_.component[at] = one_pin.component;
      out_.pin[at] = one_pin.pin;
    }
    find_repeated();
  }

  void find_repeated() {
    std::unordered_set<std::string_view> seen;
    seen.reserve(out_.names.size());
    for (std::size_t component = 0; component < out_.names.size(); ++component) {
      if (!seen.insert(out_.names[component]).second) twice_.add(out_.offset[component], out_.names[component]);
    }
  }

  struct Connected {
    std::int32_t bit, component, pin;
  };

  std::string_view text_;
  const std::vector<Module>& modules_;
  const Leaves& leaves_;
  std::unordered_map<std::string_view, const Module*> module_of_;
  std::unordered_map<std::string_view, std::int32_t> master_of_;
  std::unordered_map<std::string, std::vector<std::int32_t>> numbers_of_;
  std::unordered_set<std::string_view> told_;
  Nets nets_;
  std::int64_t instances_ = 0;
  std::vector<std::int32_t> port_bit_;
  std::vector<Connected> connected_;
  FlatNetlist out_;
  Findings unknown_, no_pins_, twice_, widths_, boxes_, inner_;
};

}  // namespace

FlatNetlist flatten(std::string_view text, const std::vector<Module>& modules, const Leaves& leaves, std::string_view top) {
  return Flattening(text, modules, leaves).run(top);
}

}  // namespace netlist_text::verilog
