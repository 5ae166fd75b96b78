// Tokens of a DEF file: words between white space, strings in quotes; `#` at the start of a word begins a comment.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>

#include "text.hpp"

namespace netlist_text {

class DefLexer {
 public:
  explicit DefLexer(std::string_view text) : text_(text) {}

  // The next token; empty at the end of the text. `offset()` is then its start.
  std::string_view next() {
    skip_space();
    begin_ = at_;
    if (at_ == text_.size()) return {};
    if (text_[at_] == '"') return quoted();
    while (at_ < text_.size() && !is_space(text_[at_])) ++at_;
    return text_.substr(begin_, at_ - begin_);
  }

  // The next token, which must exist.
  std::string_view need(const char* what) {
    const std::string_view token = next();
    if (token.empty()) {
      throw error("expected " + std::string(what) + ", found the end of the file; it appears to be truncated");
    }
    return token;
  }

  void expect(std::string_view token) {
    const std::string_view found = need(("'" + std::string(token) + "'").c_str());
    if (!same(found, token)) throw error("expected '" + std::string(token) + "', found '" + shown(found) + "'");
  }

  // A name: any token but a mark.
  std::string_view name(const char* what) {
    const std::string_view token = need(what);
    if (token == ";" || token == "(" || token == ")" || token == "+" || token == "-") {
      throw error("expected " + std::string(what) + ", found '" + shown(token) + "'");
    }
    return token;
  }

  // A keyword in capitals, regardless of its case in the file.
  std::string_view keyword(const char* what) { return capitals(name(what)); }

  // The token in capitals; valid for the lifetime of the lexer.
  std::string_view capitals(std::string_view token) {
    if (std::none_of(token.begin(), token.end(), is_small)) return token;
    std::string made(token);
    std::transform(made.begin(), made.end(), made.begin(), capital);
    return *capitals_.insert(std::move(made)).first;
  }

  // Whether a token is the keyword `word`, which is in capitals.
  static bool same(std::string_view token, std::string_view word) {
    return token.size() == word.size() &&
           std::equal(token.begin(), token.end(), word.begin(), [](char a, char b) { return capital(a) == b; });
  }

  double number(const char* what) {
    const std::string_view token = need(what);
    double value = 0;
    if (!parse(token, value)) throw error("expected " + std::string(what) + ", a number, found '" + shown(token) + "'");
    return value;
  }

  // A number in database units or a count; fractions are rounded.
  std::int64_t integer(const char* what) {
    const std::string_view token = need(what);
    std::int64_t value = 0;
    const auto [end, failure] = std::from_chars(token.data(), token.data() + token.size(), value);
    if (failure != std::errc() || end != token.data() + token.size()) {
      double real = 0;
      if (!parse(token, real)) throw error("expected " + std::string(what) + ", a number, found '" + shown(token) + "'");
      if (std::abs(real) > 2e9) throw error(std::string(what) + " " + shown(token) + " is out of range");
      return std::llround(real);
    }
    if (value > 2'000'000'000 || value < -2'000'000'000) {
      throw error(std::string(what) + " " + shown(token) + " is out of range (±2,000,000,000)");
    }
    return value;
  }

  // Moves past the `;` that ends this statement.
  void skip_statement(const char* what) {
    while (need(what) != ";") {
    }
  }

  // Moves past the `;` that ends free text, in which a quotation mark without another one on its line is no string.
  void skip_text() {
    for (; at_ < text_.size() && text_[at_] != ';'; ++at_) {
      const std::size_t closing = text_[at_] == '"' ? text_.find_first_of("\"\n", at_ + 1) : text_.npos;
      if (closing != text_.npos && text_[closing] == '"') at_ = closing;
    }
    at_ = std::min(at_ + 1, text_.size());
  }

  // The token after this one, without consuming it.
  std::string_view peek() {
    const std::size_t at = at_, begin = begin_;
    const std::string_view token = next();
    at_ = at;
    begin_ = begin;
    return token;
  }

  std::size_t offset() const { return begin_; }
  std::size_t end() const { return at_; }
  std::string_view text() const { return text_; }

  ParseError error(const std::string& message) const { return {line_at(text_, begin_), message}; }
  ParseError error_at(std::size_t offset, const std::string& message) const {
    return {line_at(text_, offset), message};
  }

  static bool parse(std::string_view token, double& value) {
    if (!token.empty() && token.front() == '+') token.remove_prefix(1);
    const auto [end, failure] = std::from_chars(token.data(), token.data() + token.size(), value);
    return failure == std::errc() && end == token.data() + token.size() && std::isfinite(value);
  }

 private:
  static bool is_small(char letter) { return letter >= 'a' && letter <= 'z'; }
  static char capital(char letter) { return is_small(letter) ? static_cast<char>(letter - 'a' + 'A') : letter; }

  static bool is_space(char letter) {
    return letter == ' ' || letter == '\n' || letter == '\t' || letter == '\r' || letter == '\v' || letter == '\f';
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

  std::string_view quoted() {
    ++at_;
    while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' && at_ + 1 < text_.size() ? 2 : 1;
    if (at_ >= text_.size()) throw error("the string that begins here has no closing quote");
    ++at_;
    return text_.substr(begin_, at_ - begin_);
  }

  std::string_view text_;
  std::unordered_set<std::string> capitals_;
  std::size_t at_ = 0;
  std::size_t begin_ = 0;
};

}  // namespace netlist_text
