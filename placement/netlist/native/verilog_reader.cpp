#include "verilog_reader.hpp"

#include <array>
#include <charconv>

#include "verilog_lexer.hpp"

namespace netlist_text::verilog {
namespace {

constexpr std::int64_t kMostBits = 10'000'000;  // per module

constexpr int kMostNested = 100;

constexpr std::array kNetKinds = {"wire", "tri", "wand", "wor", "tri0", "tri1", "supply0", "supply1", "uwire", "logic"};
constexpr std::array kBehaviour = {"always", "always_ff", "always_comb", "always_latch", "initial", "function", "task",
                                   "generate", "genvar", "for", "if", "case", "begin", "reg", "integer", "real"};

template <std::size_t kCount>
bool is_one_of(const VerilogToken& token, const std::array<const char*, kCount>& words) {
  if (token.kind != VerilogToken::kName || token.is_escaped) return false;
  for (const char* word : words) {
    if (token.text == word) return true;
  }
  return false;
}

class ModuleReader {
 public:
  ModuleReader(VerilogLexer& lexer, Module& module) : lexer_(lexer), module_(module) {}

  void read() {
    module_.offset = static_cast<std::int64_t>(lexer_.peek().begin);
    module_.name = lexer_.name("the name of a module").text;
    if (lexer_.accept("#")) skip_parentheses();
    if (lexer_.accept("(")) header();
    lexer_.expect(";", "after the ports of a module");
    while (!lexer_.accept("endmodule")) item();
  }

 private:
  struct Range {
    std::int32_t left = 0, right = 0;
    bool is_bus = false;
  };

  void header() {
    Direction direction = Direction::kNone;
    Range range;
    while (!lexer_.accept(")")) {
      if (const Direction given = port_direction(); given != Direction::kNone) {
        direction = given;
        skip_net_kind();
        range = read_range();
      }
      const VerilogToken name = lexer_.name("the name of a port");
      module_.ports.push_back(name.text);
      if (direction != Direction::kNone) declare(name, range, direction);
      if (!lexer_.peek().is(")")) lexer_.expect(",", "between ports");
    }
  }

  void item() {
    const VerilogToken token = lexer_.peek();
    if (token.kind == VerilogToken::kEnd) {
      throw lexer_.error_at(static_cast<std::size_t>(module_.offset),
                            "module '" + shown(module_.name) + "' has no endmodule; the file appears to be truncated");
    }
    if (lexer_.accept(";")) return;
    if (const Direction direction = port_direction(); direction != Direction::kNone) {
      skip_net_kind();
      declarations(direction, token);
    } else if (is_one_of(token, kNetKinds)) {
      lexer_.next();
      declarations(Direction::kNone, token);
    } else if (lexer_.accept("assign")) {
      do {
        assignment();
      } while (lexer_.accept(","));
      lexer_.expect(";", "after an assignment");
    } else if (token.is("parameter") || token.is("localparam") || token.is("defparam")) {
      lexer_.skip_to(";", "the parameter");
    } else if (token.is("specify")) {
      lexer_.skip_to("endspecify", "the specify block");
    } else if (is_one_of(token, kBehaviour) || token.kind != VerilogToken::kName) {
      throw lexer_.error("'" + shown(token.text) +
                         "' is not a statement of a gate-level netlist; use the netlist that synthesis wrote");
    } else {
      instances();
    }
  }

  Direction port_direction() {
    if (lexer_.accept("input")) return Direction::kInput;
    if (lexer_.accept("output")) return Direction::kOutput;
    if (lexer_.accept("inout")) return Direction::kInout;
    return Direction::kNone;
  }

  void skip_net_kind() {
    while (is_one_of(lexer_.peek(), kNetKinds) || lexer_.peek().is("signed") || lexer_.peek().is("reg")) lexer_.next();
  }

  Range read_range() {
    Range range;
    lexer_.accept("signed");
    if (!lexer_.accept("[")) return range;
    range.is_bus = true;
    range.left = static_cast<std::int32_t>(lexer_.integer("the left bound of a range"));
    lexer_.expect(":", "in a range");
    range.right = static_cast<std::int32_t>(lexer_.integer("the right bound of a range"));
    lexer_.expect("]", "after a range");
    if (lexer_.peek().is("[")) throw lexer_.error("arrays of nets are not supported");
    return range;
  }

  void declarations(Direction direction, const VerilogToken& kind) {
    const Range range = read_range();
    do {
      const VerilogToken name = lexer_.name("the name of a net");
      declare(name, range, direction);
      const std::int32_t constant = kind.is("supply0") ? kZero : kind.is("supply1") ? kOne : kOpen;
      const Signal signal = *module_.find(name.text);
      for (std::int32_t bit = 0; bit < signal.width() && constant != kOpen; ++bit) {
        module_.assigned.emplace_back(signal.first + bit, constant);
      }
      if (lexer_.accept("=")) {
        std::vector<std::int32_t> target;
        whole(signal, target);
        assign(target, name.begin);
      }
    } while (lexer_.accept(","));
    lexer_.expect(";", "after a declaration");
  }

  // Declares a signal, or merges a second declaration: `output [3:0] a; wire [3:0] a;`.
  void declare(const VerilogToken& name, const Range& range, Direction direction) {
    const auto [entry, is_new] = module_.signal_of.try_emplace(name.text, static_cast<std::int32_t>(module_.signals.size()));
    if (!is_new) {
      Signal& known = module_.signals[static_cast<std::size_t>(entry->second)];
      if (known.left != range.left || known.right != range.right || known.is_bus != range.is_bus) {
        throw lexer_.error_at(name.begin, "'" + shown(name.text) +
                              "' is declared twice with different ranges, or is used before its declaration");
      }
      if (direction != Direction::kNone) known.direction = direction;
      return;
    }
    Signal signal;
    signal.name = name.text;
    signal.first = module_.num_bits;
    signal.left = range.left;
    signal.right = range.right;
    signal.is_bus = range.is_bus;
    signal.direction = direction;
    if (module_.num_bits + static_cast<std::int64_t>(signal.width()) > kMostBits) {
      throw lexer_.error_at(name.begin, "module '" + shown(module_.name) + "' has more than 10,000,000 nets");
    }
    module_.num_bits += signal.width();
    module_.signals.push_back(signal);
  }

  void assignment() {
    std::vector<std::int32_t> target;
    const std::size_t begin = lexer_.peek().begin;
    expression(target);
    lexer_.expect("=", "in an assignment");
    assign(target, begin);
  }

  // Reads the right-hand side, which is next; its lowest bits count, and missing ones are 0.
  void assign(const std::vector<std::int32_t>& target, std::size_t begin) {
    std::vector<std::int32_t> value;
    expression(value);
    for (std::size_t bit = 0; bit < target.size(); ++bit) {
      const std::int32_t to = target[target.size() - 1 - bit];
      const std::int32_t from = bit < value.size() ? value[value.size() - 1 - bit] : static_cast<std::int32_t>(kZero);
      if (to < 0) throw lexer_.error_at(begin, "a constant cannot be assigned to");
      if (from != kOpen) module_.assigned.emplace_back(to, from);
    }
  }

  void instances() {
    const VerilogToken master = lexer_.name("a module");
    if (lexer_.accept("#")) skip_parentheses();
    do {
      const VerilogToken name = lexer_.name("the name of an instance");
      if (lexer_.peek().is("[")) throw lexer_.error("arrays of instances are not supported");
      lexer_.expect("(", "after the name of an instance");
      const std::size_t first = module_.connections.size();
      while (!lexer_.accept(")")) {
        connection();
        if (!lexer_.peek().is(")")) lexer_.expect(",", "between connections");
      }
      module_.instances.push_back(
          {master.text, name.text, first, module_.connections.size(), static_cast<std::int64_t>(name.begin)});
    } while (lexer_.accept(","));
    lexer_.expect(";", "after an instance");
  }

  void connection() {
    Connection made;
    made.begin = static_cast<std::int64_t>(module_.bits.size());
    if (lexer_.accept(".")) {
      made.port = lexer_.name("the name of a port").text;
      lexer_.expect("(", "after the name of a port");
      if (!lexer_.peek().is(")")) expression(module_.bits);
      lexer_.expect(")", "after a connection");
    } else if (!lexer_.peek().is(",")) {
      expression(module_.bits);
    }
    made.end = static_cast<std::int64_t>(module_.bits.size());
    module_.connections.push_back(made);
  }

  // Appends the bits of an expression, most significant first.
  void expression(std::vector<std::int32_t>& into) {
    const VerilogToken token = lexer_.peek();
    if (lexer_.accept("{")) {
      if (++depth_ > kMostNested) throw lexer_.error("braces are nested more than 100 deep");
      concatenation(into);
      --depth_;
    } else if (token.kind == VerilogToken::kNumber) {
      constant(into);
    } else {
      reference(into);
    }
    const VerilogToken& behind = lexer_.peek();
    if (behind.kind == VerilogToken::kMark && std::string_view("+-*/%&|^~!<>?").find(behind.text) != std::string_view::npos) {
      throw lexer_.error("the operator '" + shown(behind.text) +
                         "' is not supported; use the gate-level netlist that synthesis wrote");
    }
  }

  void concatenation(std::vector<std::int32_t>& into) {
    const VerilogToken first = lexer_.peek();
    const bool is_plain = first.kind == VerilogToken::kNumber && first.text.find_first_not_of("0123456789") == std::string_view::npos;
    if (is_plain) {  // {4{a, b}}
      const std::int64_t times = lexer_.integer("the number of repetitions");
      lexer_.expect("{", "after the number of repetitions");
      std::vector<std::int32_t> once;
      if (++depth_ > kMostNested) throw lexer_.error("braces are nested more than 100 deep");
      concatenation(once);
      --depth_;
      lexer_.expect("}", "after the repeated bits");
      if (times * static_cast<std::int64_t>(once.size()) > kMostBits) {
        throw lexer_.error("the expression has more than 10,000,000 bits");
      }
      for (std::int64_t time = 0; time < times; ++time) into.insert(into.end(), once.begin(), once.end());
      return;
    }
    do {
      expression(into);
    } while (lexer_.accept(","));
    lexer_.expect("}", "after a concatenation");
  }

  void whole(const Signal& signal, std::vector<std::int32_t>& into) const {
    for (std::int32_t bit = signal.width() - 1; bit >= 0; --bit) into.push_back(signal.first + bit);
  }

  void reference(std::vector<std::int32_t>& into) {
    const VerilogToken name = lexer_.name("a net");
    if (module_.find(name.text) == nullptr) declare(name, {}, Direction::kNone);  // an implicit net
    const Signal signal = *module_.find(name.text);
    if (!lexer_.accept("[")) return whole(signal, into);
    const std::int64_t from = lexer_.integer("the index of a bit");
    const std::int64_t to = lexer_.accept(":") ? lexer_.integer("the index of a bit") : from;
    lexer_.expect("]", "after the index of a bit");
    const std::int32_t sign = signal.left < signal.right ? -1 : 1;
    const std::int64_t high = sign * (from - signal.right), low = sign * (to - signal.right);
    if (!signal.is_bus || low < 0 || high >= signal.width() || low > high) {
      throw lexer_.error_at(name.begin, "'" + shown(name.text) + "' has no bits [" + std::to_string(from) + ":" +
                                            std::to_string(to) + "]; " + declared(signal));
    }
    for (std::int64_t bit = high; bit >= low; --bit) into.push_back(signal.first + static_cast<std::int32_t>(bit));
  }

  static std::string declared(const Signal& signal) {
    if (!signal.is_bus) return "it is a single net";
    return "its range is [" + std::to_string(signal.left) + ":" + std::to_string(signal.right) + "]";
  }

  void constant(std::vector<std::int32_t>& into) {
    const VerilogToken token = lexer_.next();
    const std::size_t quote = token.text.find('\'');
    std::int64_t width = 32;
    std::string_view digits = token.text;
    int per_digit = 0;  // bits; 0: decimal
    if (quote != std::string_view::npos) {
      if (quote > 0) std::from_chars(token.text.data(), token.text.data() + quote, width);
      digits = token.text.substr(quote + 1);
      if (!digits.empty() && (digits.front() == 's' || digits.front() == 'S')) digits.remove_prefix(1);
      const char base = digits.empty() ? '?' : static_cast<char>(digits.front() | 0x20);
      per_digit = base == 'b' ? 1 : base == 'o' ? 3 : base == 'h' ? 4 : base == 'd' ? 0 : -1;
      if (per_digit < 0) throw lexer_.error_at(token.begin, "'" + shown(token.text) + "' is not a valid constant");
      digits.remove_prefix(1);
    }
    if (width < 1 || width > 1'000'000) {
      throw lexer_.error_at(token.begin, "the width of '" + shown(token.text) + "' must be from 1 to 1,000,000");
    }
    std::vector<std::int32_t> bits;  // least significant first
    if (per_digit == 0) {
      decimal(digits, token, bits);
    } else {
      for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit) append_digit(*digit, per_digit, token, bits);
    }
    if (bits.empty()) throw lexer_.error_at(token.begin, "'" + shown(token.text) + "' is not a valid constant");
    const std::int32_t fill = bits.back() == kOpen ? static_cast<std::int32_t>(kOpen) : static_cast<std::int32_t>(kZero);
    bits.resize(static_cast<std::size_t>(width), fill);
    into.insert(into.end(), bits.rbegin(), bits.rend());
  }

  void decimal(std::string_view digits, const VerilogToken& token, std::vector<std::int32_t>& bits) {
    while (!digits.empty() && digits.front() == ' ') digits.remove_prefix(1);
    std::uint64_t value = 0;
    const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (failure != std::errc() || end != digits.data() + digits.size()) {
      throw lexer_.error_at(token.begin, "'" + shown(token.text) + "' is not a valid constant");
    }
    for (int bit = 0; bit < 64; ++bit) bits.push_back((value >> bit) & 1 ? kOne : kZero);
  }

  void append_digit(char digit, int per_digit, const VerilogToken& token, std::vector<std::int32_t>& bits) {
    if (digit == '_' || digit == ' ' || digit == '\t') return;
    const char lower = static_cast<char>(digit | 0x20);
    const bool is_open = lower == 'x' || lower == 'z' || digit == '?';
    const int value = digit >= '0' && digit <= '9' ? digit - '0' : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : 16;
    if (!is_open && value >= 1 << per_digit) {
      throw lexer_.error_at(token.begin, "'" + shown(token.text) + "' has a digit that is invalid in its base");
    }
    for (int bit = 0; bit < per_digit; ++bit) bits.push_back(is_open ? kOpen : (value >> bit) & 1 ? kOne : kZero);
  }

  void skip_parentheses() {
    lexer_.expect("(", "after '#'");
    for (int depth = 1; depth > 0;) {
      const VerilogToken token = lexer_.next();
      if (token.kind == VerilogToken::kEnd) {
        throw lexer_.error("the file ends in a list of parameters; it appears to be truncated");
      }
      depth += token.is("(") ? 1 : token.is(")") ? -1 : 0;
    }
  }

  VerilogLexer& lexer_;
  Module& module_;
  int depth_ = 0;  // of braces
};

}  // namespace

std::vector<Module> read_modules(std::string_view text) {
  VerilogLexer lexer(text);
  std::vector<Module> modules;
  while (lexer.peek().kind != VerilogToken::kEnd) {
    if (!lexer.accept("module") && !lexer.accept("macromodule")) {
      throw lexer.error("expected 'module', found " + lexer.found());
    }
    ModuleReader(lexer, modules.emplace_back()).read();
  }
  return modules;
}

}  // namespace netlist_text::verilog
