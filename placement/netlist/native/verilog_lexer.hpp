// Tokens of a structural Verilog file; comments, attributes `(* … *)` and compiler directives are skipped. Of
// conditionals, the text for which the file itself defines the macro is read. Uses of macros are errors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>

#include "text.hpp"

namespace netlist_text {

struct VerilogToken {
  enum Kind : std::uint8_t { kEnd, kName, kNumber, kMark };

  Kind kind = kEnd;
  bool is_escaped = false;  // a name that was written with a backslash, hence no keyword
  std::string_view text;    // of an escaped name, the text after its backslash; of a mark, one letter
  std::size_t begin = 0;

  bool is(std::string_view word) const { return kind != kEnd && !is_escaped && text == word; }
};

class VerilogLexer {
 public:
  explicit VerilogLexer(std::string_view text) : text_(text) { advance(); }

  // The next token; its kind is kEnd at the end of the text.
  const VerilogToken& peek() const { return token_; }

  VerilogToken next() {
    const VerilogToken token = token_;
    advance();
    return token;
  }

  // Consumes the next token if it is `word`.
  bool accept(std::string_view word) {
    if (!token_.is(word)) return false;
    advance();
    return true;
  }

  void expect(std::string_view word, const char* where) {
    if (!accept(word)) throw error("expected '" + std::string(word) + "' " + where + ", found " + found());
  }

  VerilogToken name(const char* what) {
    if (token_.kind != VerilogToken::kName) throw error(std::string("expected ") + what + ", found " + found());
    return next();
  }

  std::int64_t integer(const char* what);

  // Skips past the next `word`; `what` has begun and must end with it.
  void skip_to(std::string_view word, const char* what) {
    const std::size_t begin = token_.begin;
    while (!token_.is(word)) {
      if (token_.kind == VerilogToken::kEnd) {
        throw ParseError(line_at(text_, begin), std::string(what) +
                         " that begins here does not end; the file appears to be truncated");
      }
      advance();
    }
    advance();
  }

  std::string found() const {
    return token_.kind == VerilogToken::kEnd ? "the end of the file; it appears to be truncated"
                                             : "'" + shown(token_.text) + "'";
  }
  ParseError error(const std::string& message) const { return {line_at(text_, token_.begin), message}; }
  ParseError error_at(std::size_t offset, const std::string& message) const { return {line_at(text_, offset), message}; }
  std::string_view text() const { return text_; }

 private:
  void advance();
  void skip_space();
  void skip_attribute();
  std::string_view directive_word();
  void read_directive();
  void skip_branch(std::size_t begin, bool to_end);
  void read_number();

  std::string_view text_;
  std::size_t at_ = 0;
  VerilogToken token_;
  std::unordered_set<std::string_view> macros_{"SYNTHESIS"};  // and those that the text has defined
};

}  // namespace netlist_text
