#include "protobuf_reader.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <unordered_map>

namespace netlist_text {

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::array<std::string_view, 8> kOrientations = {"N", "FN", "S", "FS", "E", "FE", "W", "FW"};

bool equals_lower(std::string_view word, std::string_view lower) {
  if (word.size() != lower.size()) return false;
  for (std::size_t at = 0; at < word.size(); ++at) {
    const char letter = word[at];
    if ((letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter) != lower[at]) return false;
  }
  return true;
}

// The marks and words of the format. Every method returns false on anything else.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  bool at_end() {
    skip_space();
    return at_ == text_.size();
  }

  bool take(char mark) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != mark) return false;
    ++at_;
    return true;
  }

  bool word(std::string_view& out) {
    skip_space();
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_letter(text_[at_])) ++at_;
    out = text_.substr(begin, at_ - begin);
    return at_ > begin;
  }

  bool string(std::string_view& out) {
    if (!take('"')) return false;
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != '"') {
      const auto code = static_cast<unsigned char>(text_[at_]);
      if (code == '\\' || code == '\n' || code >= 0x80) return false;
      ++at_;
    }
    if (at_ == text_.size()) return false;
    out = text_.substr(begin, at_ - begin);
    ++at_;
    skip_space();  // an adjacent string would be part of it
    return at_ == text_.size() || (text_[at_] != '"' && text_[at_] != '\'');
  }

  bool number(double& out) {
    skip_space();
    const std::size_t begin = at_;
    while (at_ < text_.size() && !is_space(text_[at_]) && text_[at_] != '}') ++at_;
    const std::string_view token = text_.substr(begin, at_ - begin);
    const std::string_view digits = !token.empty() && token.front() == '-' ? token.substr(1) : token;
    if (digits.empty() || digits.front() < '0' || digits.front() > '9') return false;
    if (digits.size() > 1 && digits[0] == '0' && digits[1] != '.' && digits[1] != 'e' && digits[1] != 'E') return false;
    const auto [end, failure] = std::from_chars(token.data(), token.data() + token.size(), out);
    return failure == std::errc() && end == token.data() + token.size() && std::isfinite(out);
  }

  std::size_t offset() const { return at_; }

 private:
  static bool is_space(char letter) {
    return letter == ' ' || letter == '\n' || letter == '\t' || letter == '\r' || letter == '\v' || letter == '\f';
  }
  static bool is_letter(char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || letter == '_' ||
           (letter >= '0' && letter <= '9');
  }
  void skip_space() {
    while (at_ < text_.size()) {
      if (is_space(text_[at_])) {
        ++at_;
      } else if (text_[at_] == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else {
        return;
      }
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

class PlainReader {
 public:
  PlainReader(std::string_view text, ProtobufContents& out) : scanner_(text), out_(out) {}

  bool read() {
    out_.start.push_back(0);
    std::string_view word;
    while (!scanner_.at_end()) {
      if (!scanner_.word(word) || word != "node") return false;
      begin_ = scanner_.offset() - word.size();
      if (!scanner_.take('{') || !node()) return false;
    }
    return resolve();
  }

 private:
  struct Fields {
    std::string_view name, macro, master;
    bool has_macro = false, has_master = false;
    std::int8_t type = -1, orientation = -1;
    // width, height, x, y, x_offset, y_offset, weight
    std::array<double, 7> numbers = {kNone, kNone, kNone, kNone, kNone, kNone, kNone};
  };

  bool node() {
    Fields fields;
    bool has_name = false;
    const std::size_t inputs = inputs_.size();
    std::string_view word, text;
    while (!scanner_.take('}')) {
      if (!scanner_.word(word)) return false;
      if (word == "attr") {
        if (!scanner_.take('{') || !attribute(fields)) return false;
      } else if (word == "input") {
        if (!scanner_.take(':') || !scanner_.string(text)) return false;
        inputs_.push_back(text);
      } else if (word == "name") {
        if (has_name || !scanner_.take(':') || !scanner_.string(fields.name)) return false;
        has_name = true;
      } else {
        return false;
      }
    }
    if (!has_name) return false;
    if (fields.name == "__metadata__") return inputs_.size() == inputs;
    keep(fields);
    return true;
  }

  bool attribute(Fields& fields) {
    std::string_view word, key, text;
    double number = kNone;
    if (!scanner_.word(word) || word != "key" || !scanner_.take(':') || !scanner_.string(key)) return false;
    if (!scanner_.word(word) || word != "value" || !scanner_.take('{')) return false;
    if (!scanner_.word(word) || !scanner_.take(':')) return false;
    const bool is_text = word == "placeholder" || word == "s";
    if (is_text ? !scanner_.string(text) : !((word == "f" || word == "i") && scanner_.number(number))) return false;
    return scanner_.take('}') && scanner_.take('}') && enter(fields, key, is_text, text, number);
  }

  static bool enter(Fields& fields, std::string_view key, bool is_text, std::string_view text, double number) {
    constexpr std::array<std::string_view, 7> kNumbers = {"width",    "height",   "x",     "y",
                                                          "x_offset", "y_offset", "weight"};
    for (std::size_t at = 0; at < kNumbers.size(); ++at) {
      if (key != kNumbers[at]) continue;
      if (is_text || !std::isnan(fields.numbers[at])) return false;
      fields.numbers[at] = number;
      return true;
    }
    if (key == "type") return is_text && fields.type == -1 && (fields.type = type_of(text)) >= 0;
    if (key == "orientation") return is_text && fields.orientation == -1 && (fields.orientation = turn_of(text)) >= 0;
    if (key == "macro_name") {
      if (!is_text || fields.has_macro) return false;
      fields.macro = text;
      return fields.has_macro = true;
    }
    if (key == "ref_name") {
      if (!is_text || fields.has_master) return false;
      fields.master = text;
      return fields.has_master = true;
    }
    return true;
  }

  static std::int8_t type_of(std::string_view text) {
    constexpr std::array<std::string_view, 4> kTypes = {"macro", "macro_pin", "port", "stdcell"};
    for (std::size_t at = 0; at < kTypes.size(); ++at) {
      if (equals_lower(text, kTypes[at])) return static_cast<std::int8_t>(at);
    }
    return -1;
  }

  static std::int8_t turn_of(std::string_view text) {
    for (std::size_t at = 0; at < kOrientations.size(); ++at) {
      if (text == kOrientations[at]) return static_cast<std::int8_t>(at);
    }
    return -1;
  }

  void keep(const Fields& fields) {
    out_.name.push_back(fields.name);
    out_.type.push_back(fields.type);
    const std::array<std::vector<double>*, 7> columns = {&out_.width,    &out_.height,   &out_.x,     &out_.y,
                                                         &out_.x_offset, &out_.y_offset, &out_.weight};
    for (std::size_t at = 0; at < columns.size(); ++at) columns[at]->push_back(fields.numbers[at]);
    out_.orientation.push_back(fields.orientation);
    macros_.push_back(fields.has_macro ? fields.macro : std::string_view());
    out_.macro.push_back(fields.has_macro ? -2 : -1);
    std::int32_t master = -1;
    if (fields.has_master) {
      const auto next = static_cast<std::int32_t>(out_.masters.size());
      const auto [entry, is_new] = master_of_.try_emplace(fields.master, next);
      if (is_new) out_.masters.push_back(fields.master);
      master = entry->second;
    }
    out_.master.push_back(master);
    out_.start.push_back(static_cast<std::int32_t>(inputs_.size()));
    out_.begin.push_back(static_cast<std::int64_t>(begin_));
  }

  // Resolves names to node indices.
  bool resolve() {
    std::unordered_map<std::string_view, std::int32_t> index;
    index.reserve(out_.name.size());
    for (std::size_t node = 0; node < out_.name.size(); ++node) {
      if (!index.try_emplace(out_.name[node], static_cast<std::int32_t>(node)).second) {
        duplicates_.add(out_.begin[node], out_.name[node]);
      }
      if (out_.type[node] < 0) untyped_.add(out_.begin[node], out_.name[node]);
    }
    for (std::size_t node = 0; node < out_.name.size(); ++node) {
      if (out_.macro[node] == -1) continue;
      const auto found = index.find(macros_[node]);
      if (found != index.end()) {
        out_.macro[node] = found->second;
      } else {
        homeless_.add(out_.begin[node], shown(out_.name[node]) + " on " + shown(macros_[node]));
      }
    }
    resolve_sinks(index);
    for (Findings* found : {&duplicates_, &untyped_, &homeless_, &dangling_}) {
      if (found->count) out_.findings.push_back(std::move(*found));
    }
    return true;
  }

  void resolve_sinks(const std::unordered_map<std::string_view, std::int32_t>& index) {
    out_.sinks.reserve(inputs_.size());
    for (std::size_t node = 0; node + 1 < out_.start.size(); ++node) {
      for (std::int32_t at = out_.start[node]; at < out_.start[node + 1]; ++at) {
        const auto found = index.find(inputs_[static_cast<std::size_t>(at)]);
        if (found == index.end()) {
          dangling_.add(out_.begin[node],
                        shown(out_.name[node]) + " drives " + shown(inputs_[static_cast<std::size_t>(at)]));
        }
        out_.sinks.push_back(found == index.end() ? -1 : found->second);
      }
    }
  }

  Scanner scanner_;
  ProtobufContents& out_;
  std::size_t begin_ = 0;
  std::vector<std::string_view> inputs_, macros_;
  std::unordered_map<std::string_view, std::int32_t> master_of_;
  Findings duplicates_{"duplicate node names"}, untyped_{"nodes without a type (macro, macro_pin, port or stdcell)"},
      homeless_{"pins on macros that do not exist"}, dangling_{"nets to nodes that do not exist"};
};

}  // namespace

bool read_plain_protobuf(std::string_view text, ProtobufContents& out) { return PlainReader(text, out).read(); }

}  // namespace netlist_text
