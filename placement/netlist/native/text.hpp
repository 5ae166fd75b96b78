// A text in memory that is read token by token; every error message names its line.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace netlist_text {

// An error in a text: its line, and what is wrong.
class ParseError : public std::runtime_error {
 public:
  ParseError(std::int64_t line, const std::string& message)
      : std::runtime_error(std::to_string(line) + ":" + message) {}
};

// Findings of one kind: the first ten, and their total number.
struct Findings {
  static constexpr std::size_t kShown = 10;

  std::string what;
  std::int64_t count = 0;
  std::vector<std::pair<std::int64_t, std::string>> first;  // offset in the text, and the name concerned

  void add(std::int64_t offset, std::string_view about) {
    ++count;
    if (first.size() < kShown) first.emplace_back(offset, std::string(about));
  }
};

// A token as shown in messages: long ones are truncated, and bytes that are not printable are replaced.
inline std::string shown(std::string_view token) {
  std::string text(token.substr(0, 60));
  for (char& letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    if (code < 0x20 || code >= 0x7f) letter = '?';
  }
  return token.size() > 60 ? text + "…" : text;
}

inline std::int64_t line_at(std::string_view text, std::size_t offset) {
  std::int64_t line = 1;
  for (std::size_t at = 0; at < offset && at < text.size(); ++at) line += text[at] == '\n';
  return line;
}

}  // namespace netlist_text
