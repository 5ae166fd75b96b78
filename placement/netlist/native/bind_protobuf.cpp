#include "bindings.hpp"
#include "protobuf_reader.hpp"

namespace netlist_text {

void bind_protobuf(nb::module_& m) {
  m.def(
      "read_plain_protobuf",
      [](const nb::bytes& data) -> nb::object {
        const std::string_view text(data.c_str(), data.size());
        ProtobufContents from;
        bool is_plain = false;
        {
          nb::gil_scoped_release release;
          is_plain = read_plain_protobuf(text, from);
        }
        if (!is_plain) return nb::none();
        nb::dict to;
        to["names"] = strings(text, from.name);
        to["type"] = array(std::move(from.type));
        to["width"] = array(std::move(from.width));
        to["height"] = array(std::move(from.height));
        to["x"] = array(std::move(from.x));
        to["y"] = array(std::move(from.y));
        to["x_offset"] = array(std::move(from.x_offset));
        to["y_offset"] = array(std::move(from.y_offset));
        to["weight"] = array(std::move(from.weight));
        to["orientation"] = array(std::move(from.orientation));
        to["macro"] = array(std::move(from.macro));
        to["master"] = array(std::move(from.master));
        to["masters"] = strings(text, from.masters);
        to["start"] = array(std::move(from.start));
        to["sinks"] = array(std::move(from.sinks));
        to["begin"] = array(std::move(from.begin));
        to["findings"] = findings(text, from.findings);
        return to;
      },
      nb::arg("data"));
}

}  // namespace netlist_text
