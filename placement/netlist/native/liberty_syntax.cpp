#include "liberty_syntax.hpp"

#include <algorithm>
#include <array>

namespace netlist_text::liberty {
namespace {

constexpr int kMostNested = 12;
constexpr std::array<std::string_view, 17> kKept = {
    "library", "cell", "pin", "bus", "bundle", "timing", "cell_rise", "cell_fall", "rise_transition", "fall_transition",
    "rise_constraint", "fall_constraint", "lu_table_template", "type", "latch", "latch_bank", "ff"};

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Group library() {
    Group made;
    const std::string_view word = name();
    if (word != "library") throw error("expected 'library', found '" + shown(word.empty() ? rest() : word) + "'");
    begin(made, word);
    skip_space();
    if (!accept('{')) throw error("expected '{' after 'library (…)'");
    body(made, 0);
    return made;
  }

 private:
  // Reads the statements up to the closing brace of `group`.
  void body(Group& group, int depth) {
    if (depth > kMostNested) throw error("groups are nested more than 12 deep");
    for (;;) {
      skip_space();
      if (at_ >= text_.size()) {
        throw ParseError(line_at(text_, static_cast<std::size_t>(group.offset)),
                         "group '" + shown(group.type) +
                         "' that begins here is not closed; the file appears to be truncated");
      }
      if (accept('}')) return;
      if (accept(';')) continue;
      statement(group, depth);
    }
  }

  void statement(Group& group, int depth) {
    const std::string_view word = name();
    if (word.empty()) throw error("expected the name of an attribute or group, found '" + shown(rest()) + "'");
    skip_space();
    if (accept(':') || accept('=')) {
      group.attributes.emplace_back(word, simple_value());
      return;
    }
    if (at_ >= text_.size() || text_[at_] != '(') throw error("expected ':' or '(' after '" + shown(word) + "'");
    Group made;
    begin(made, word);
    skip_space();
    if (!accept('{')) {
      accept(';');
      group.lists.emplace_back(word, std::move(made.arguments));
    } else if (std::find(kKept.begin(), kKept.end(), word) != kKept.end()) {
      body(made, depth + 1);
      group.groups.push_back(std::move(made));
    } else {
      skip_body(word, made.offset);
    }
  }

  void begin(Group& group, std::string_view word) {
    group.type = word;
    group.offset = word.data() - text_.data();
    skip_space();
    if (!accept('(')) throw error("expected '(' after '" + shown(word) + "'");
    for (;;) {
      skip_space();
      if (at_ >= text_.size()) throw error("the file ends within '" + shown(word) + " ('; it appears to be truncated");
      if (accept(')')) return;
      if (accept(',')) continue;
      group.arguments.push_back(text_[at_] == '"' ? quoted() : bare(",)"));
    }
  }

  std::string_view simple_value() {
    skip_space();
    if (at_ < text_.size() && text_[at_] == '"') {
      const std::string_view value = quoted();
      skip_blanks();
      // Skips the rest of an expression, such as "a" + "b"; no attribute that is read has one.
      while (at_ < text_.size() && text_[at_] != ';' && text_[at_] != '\n' && text_[at_] != '}') ++at_;
      accept(';');
      return value;
    }
    std::string_view value = bare(";}\n");
    while (!value.empty() && is_space(value.back())) value.remove_suffix(1);
    accept(';');
    return value;
  }

  std::string_view bare(const char* stops) {
    const std::size_t from = at_;
    const std::string_view stop(stops);
    while (at_ < text_.size() && stop.find(text_[at_]) == std::string_view::npos && text_.substr(at_, 2) != "/*") ++at_;
    std::string_view word = text_.substr(from, at_ - from);
    while (!word.empty() && is_space(word.back())) word.remove_suffix(1);
    if (word.empty() && at_ == from && at_ < text_.size() && stop.find(text_[at_]) == std::string_view::npos) ++at_;
    return word;
  }

  std::string_view quoted() {
    const std::size_t from = ++at_;
    while (at_ < text_.size() && text_[at_] != '"') ++at_;
    if (at_ >= text_.size()) throw ParseError(line_at(text_, from), "the string that begins here has no closing quote");
    return text_.substr(from, at_++ - from);
  }

  void skip_body(std::string_view word, std::int64_t offset) {
    for (int depth = 1; depth > 0;) {
      skip_space();
      if (at_ >= text_.size()) {
        throw ParseError(line_at(text_, static_cast<std::size_t>(offset)),
                         "group '" + shown(word) +
                         "' that begins here is not closed; the file appears to be truncated");
      }
      if (text_[at_] == '"') {
        quoted();
        continue;
      }
      depth += text_[at_] == '{' ? 1 : text_[at_] == '}' ? -1 : 0;
      ++at_;
    }
  }

  std::string_view name() {
    skip_space();
    const std::size_t from = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    return text_.substr(from, at_ - from);
  }

  bool accept(char letter) {
    if (at_ >= text_.size() || text_[at_] != letter) return false;
    ++at_;
    return true;
  }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }

  void skip_space() {
    while (at_ < text_.size()) {
      if (is_space(text_[at_]) || text_[at_] == '\\') {
        ++at_;
      } else if (text_[at_] == '/' && text_.substr(at_, 2) == "/*") {
        const std::size_t end = text_.find("*/", at_ + 2);
        if (end == std::string_view::npos) throw error("the comment that begins here is not closed");
        at_ = end + 2;
      } else if (text_[at_] == '/' && text_.substr(at_, 2) == "//") {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else {
        return;
      }
    }
  }

  static bool is_space(char letter) { return letter == ' ' || (letter >= '\t' && letter <= '\r'); }
  static bool is_word(char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9') ||
           letter == '_' || letter == '.';
  }
  std::string_view rest() const { return text_.substr(at_, 20); }
  ParseError error(const std::string& message) const { return {line_at(text_, at_), message}; }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::string_view Group::value(std::string_view name) const {
  for (const auto& [attribute, text] : attributes) {
    if (attribute == name) return text;
  }
  return {};
}

const std::vector<std::string_view>* Group::list(std::string_view name) const {
  for (const auto& [attribute, arguments_of] : lists) {
    if (attribute == name) return &arguments_of;
  }
  return nullptr;
}

const Group* Group::group(std::string_view wanted) const {
  for (const Group& one : groups) {
    if (one.type == wanted) return &one;
  }
  return nullptr;
}

Group read_group(std::string_view text) { return Reader(text).library(); }

}  // namespace netlist_text::liberty
