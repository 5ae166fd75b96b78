// Conversion of columns to Python: arrays that own their memory, and lists of strings.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <string_view>
#include <vector>

#include "text.hpp"

namespace netlist_text {

namespace nb = nanobind;

// A NumPy array that takes ownership of the vector's memory.
template <typename T>
nb::object array(std::vector<T>&& values) {
  auto* kept = new std::vector<T>(std::move(values));
  nb::capsule owner(kept, [](void* memory) noexcept { delete static_cast<std::vector<T>*>(memory); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), {kept->size()}, owner));
}

// One string; throws ParseError with the line if the bytes are not UTF-8.
inline nb::object string(std::string_view text, std::string_view word) {
  PyObject* made = PyUnicode_DecodeUTF8(word.data(), static_cast<Py_ssize_t>(word.size()), nullptr);
  if (made == nullptr) {
    PyErr_Clear();
    const bool is_inside = word.data() >= text.data() && word.data() <= text.data() + text.size();
    throw ParseError(is_inside ? line_at(text, static_cast<std::size_t>(word.data() - text.data())) : 1,
                     "the name '" + shown(word) + "' is not UTF-8 text");
  }
  return nb::steal(made);
}

template <typename Word>
nb::list strings(std::string_view text, const std::vector<Word>& words) {
  nb::list list;
  for (const Word& word : words) list.append(string(text, word));
  return list;
}

// The findings as a list of (what, count, [(line, about)]).
inline nb::list findings(std::string_view text, const std::vector<Findings>& all) {
  nb::list list;
  for (const Findings& kind : all) {
    nb::list first;
    for (const auto& [offset, about] : kind.first) {
      first.append(nb::make_tuple(line_at(text, static_cast<std::size_t>(offset)), shown(about)));
    }
    list.append(nb::make_tuple(kind.what, kind.count, first));
  }
  return list;
}

// A column for Python: words as strings, numbers as an array that takes over their memory.
inline nb::object column(std::string_view, const nb::object& made) { return made; }
inline nb::object column(std::string_view text, std::string_view word) { return string(text, word); }
inline nb::object column(std::string_view, double number) { return nb::cast(number); }
inline nb::object column(std::string_view, std::int64_t number) { return nb::cast(number); }
inline nb::object column(std::string_view text, std::vector<std::string_view>& words) { return strings(text, words); }
inline nb::object column(std::string_view text, std::vector<std::string>& words) { return strings(text, words); }
inline nb::object column(std::string_view text, std::vector<Findings>& all) { return findings(text, all); }
template <typename Number>
nb::object column(std::string_view, std::vector<Number>& numbers) { return array(std::move(numbers)); }

inline void add_columns(nb::dict&, std::string_view) {}
template <typename Column, typename... More>
void add_columns(nb::dict& to, std::string_view text, const char* name, Column& first, More&... more) {
  to[name] = column(text, first);
  add_columns(to, text, more...);
}

// A dictionary of columns, each given by its name and its values, which are consumed.
template <typename... NamesAndColumns>
nb::dict columns(std::string_view text, NamesAndColumns&&... each) {
  nb::dict to;
  add_columns(to, text, each...);
  return to;
}

void bind_def(nb::module_& m);
void bind_liberty(nb::module_& m);
void bind_verilog(nb::module_& m);

}  // namespace netlist_text
