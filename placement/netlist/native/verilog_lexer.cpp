#include "verilog_lexer.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace netlist_text {
namespace {

// Directives with the rest of their line, and those that are single words.
constexpr std::array<std::string_view, 12> kLines = {
    "define", "undef", "timescale", "default_nettype", "include", "line", "pragma", "begin_keywords", "end_keywords",
    "unconnected_drive", "uselib", "protect"};
constexpr std::array<std::string_view, 11> kWords = {
    "endif", "celldefine", "endcelldefine", "resetall", "nounconnected_drive", "suppress_faults", "nosuppress_faults",
    "enable_portfaults", "disable_portfaults", "delay_mode_path", "delay_mode_distributed"};

bool is_space(char letter) { return letter == ' ' || (letter >= '\t' && letter <= '\r'); }
bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }
bool is_name_start(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || letter == '_' ||
         static_cast<unsigned char>(letter) >= 0x80;
}
bool is_name(char letter) { return is_name_start(letter) || is_digit(letter) || letter == '$'; }
bool is_digit_of_base(char letter) { return is_name(letter) || letter == '?'; }

}  // namespace

std::int64_t VerilogLexer::integer(const char* what) {
  const bool is_negative = accept("-");
  std::int64_t value = 0;
  const char* end = token_.text.data() + token_.text.size();
  const auto [stop, failure] = std::from_chars(token_.text.data(), end, value);
  if (token_.kind != VerilogToken::kNumber || failure != std::errc() || stop != end || value > 100'000'000) {
    throw error(std::string("expected ") + what + " (an integer), found " + found());
  }
  advance();
  return is_negative ? -value : value;
}

void VerilogLexer::skip_space() {
  while (at_ < text_.size()) {
    const std::string_view two = text_.substr(at_, 2);
    if (is_space(text_[at_])) {
      ++at_;
    } else if (two == "//") {
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    } else if (two == "/*") {
      const std::size_t end = text_.find("*/", at_ + 2);
      if (end == std::string_view::npos) throw error_at(at_, "the comment or attribute that begins here is not closed");
      at_ = end + 2;
    } else if (two == "(*" && text_.substr(at_, 3) != "(*)") {
      skip_attribute();
    } else if (text_[at_] == '`') {
      read_directive();
    } else {
      return;
    }
  }
}

void VerilogLexer::skip_attribute() {
  const std::size_t begin = at_;
  for (at_ += 2; text_.substr(at_, 2) != "*)"; ++at_) {
    if (at_ < text_.size() && text_[at_] == '"') {
      for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) at_ += text_[at_] == '\\';
    }
    if (at_ >= text_.size()) throw error_at(begin, "the comment or attribute that begins here is not closed");
  }
  at_ += 2;
}

std::string_view VerilogLexer::directive_word() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  const std::size_t begin = at_;
  while (at_ < text_.size() && is_name(text_[at_])) ++at_;
  return text_.substr(begin, at_ - begin);
}

void VerilogLexer::read_directive() {
  const std::size_t begin = at_++;
  const std::string_view word = directive_word();
  if (word == "ifdef" || word == "ifndef") {
    if ((macros_.count(directive_word()) != 0) != (word == "ifdef")) skip_branch(begin, false);
  } else if (word == "else" || word == "elsif") {
    skip_branch(begin, true);  // The branch before it was read.
  } else if (std::find(kLines.begin(), kLines.end(), word) != kLines.end()) {
    if (word == "define") macros_.insert(directive_word());
    if (word == "undef") macros_.erase(directive_word());
    while (at_ < text_.size() && text_[at_] != '\n') ++at_;
  } else if (std::find(kWords.begin(), kWords.end(), word) == kWords.end()) {
    throw error_at(begin, "the macro '" + shown(word) + "' is not expanded; use the netlist that synthesis wrote");
  }
}

// Skips to the branch of a conditional that is read, or with `to_end` past its `endif.
void VerilogLexer::skip_branch(std::size_t begin, bool to_end) {
  for (int depth = 0;;) {
    at_ = text_.find('`', at_);
    if (at_ >= text_.size()) throw error_at(begin, "the conditional has no `endif; the file appears to be truncated");
    ++at_;
    const std::string_view word = directive_word();
    if (word == "ifdef" || word == "ifndef") ++depth;
    if (word == "endif" && depth-- == 0) return;
    if (depth > 0 || to_end) continue;
    if (word == "else" || (word == "elsif" && macros_.count(directive_word()) != 0)) return;
  }
}

void VerilogLexer::read_number() {
  const auto skip = [&](auto belongs) {
    while (at_ < text_.size() && belongs(text_[at_])) ++at_;
  };
  skip([](char letter) { return is_digit(letter) || letter == '_'; });
  std::size_t ahead = at_;
  while (ahead < text_.size() && is_space(text_[ahead])) ++ahead;
  if (ahead < text_.size() && text_[ahead] == '\'') at_ = ahead;
  if (at_ < text_.size() && text_[at_] == '\'') {
    ++at_;
    skip(is_name_start);  // the base, and digits that are letters
    skip([](char letter) { return is_space(letter) && letter != '\n'; });
    skip(is_digit_of_base);
  } else if (at_ < text_.size() && text_[at_] == '.') {
    ++at_;
    skip(is_name);
  }
}

void VerilogLexer::advance() {
  skip_space();
  token_ = {};
  token_.begin = at_;
  if (at_ >= text_.size()) return;
  const std::size_t begin = at_;
  if (is_name_start(text_[at_])) {
    token_.kind = VerilogToken::kName;
    while (at_ < text_.size() && is_name(text_[at_])) ++at_;
    token_.text = text_.substr(begin, at_ - begin);
  } else if (text_[at_] == '\\') {
    token_.kind = VerilogToken::kName;
    token_.is_escaped = true;
    while (at_ < text_.size() && !is_space(text_[at_])) ++at_;
    token_.text = text_.substr(begin + 1, at_ - begin - 1);
    if (token_.text.empty()) throw error("a backslash without a name");
  } else if (is_digit(text_[at_]) || text_[at_] == '\'') {
    token_.kind = VerilogToken::kNumber;
    read_number();
    token_.text = text_.substr(begin, at_ - begin);
  } else if (text_[at_] == '"') {
    token_.kind = VerilogToken::kNumber;
    for (++at_; at_ < text_.size() && text_[at_] != '"';) at_ += text_[at_] == '\\' ? 2 : 1;
    if (at_ >= text_.size()) throw error("the string that begins here has no closing quote");
    ++at_;
    token_.text = text_.substr(begin, at_ - begin);
  } else {
    token_.kind = VerilogToken::kMark;
    token_.text = text_.substr(at_++, 1);
  }
}

}  // namespace netlist_text
