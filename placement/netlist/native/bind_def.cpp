#include "bindings.hpp"
#include "def_contents.hpp"

namespace netlist_text {

namespace {

std::string_view view(const nb::bytes& data) { return {data.c_str(), data.size()}; }

// Names as written outside of DEF: without the `\` before a character, with the file's divider replaced by `/`.
nb::list plain_names(std::string_view text, const Names& names, const nb::list& written, char divider) {
  nb::list list;
  std::string plain;
  for (std::size_t at = 0; at < names.size(); ++at) {
    const std::string_view name = names[at];
    if (name.find('\\') == name.npos && (divider == '/' || name.find(divider) == name.npos)) {
      list.append(written[at]);
      continue;
    }
    plain.clear();
    for (std::size_t letter = 0; letter < name.size(); ++letter) {
      if (name[letter] == '\\' && letter + 1 < name.size()) {
        plain += name[++letter];
      } else {
        plain += name[letter] == divider ? '/' : name[letter];
      }
    }
    list.append(string(text, plain));
  }
  return list;
}

nb::dict header(std::string_view text, DefHeader&& from) {
  nb::dict to;
  to["version"] = string(text, from.version);
  to["divider"] = string(text, from.divider);
  to["design"] = string(text, from.design);
  to["units"] = from.units;
  to["die"] = array(std::move(from.die));
  return to;
}

nb::dict rows(std::string_view text, DefRows&& from) {
  nb::dict to;
  to["names"] = strings(text, from.name);
  to["sites"] = strings(text, from.sites.names);
  to["site"] = array(std::move(from.site));
  to["x"] = array(std::move(from.x));
  to["y"] = array(std::move(from.y));
  to["count_x"] = array(std::move(from.count_x));
  to["count_y"] = array(std::move(from.count_y));
  to["step_x"] = array(std::move(from.step_x));
  to["step_y"] = array(std::move(from.step_y));
  to["orientation"] = array(std::move(from.orientation));
  return to;
}

nb::dict tracks(std::string_view text, DefTracks&& from) {
  nb::dict to;
  to["layers"] = strings(text, from.layers.names);
  to["layer"] = array(std::move(from.layer));
  to["is_x"] = array(std::move(from.is_x));
  to["start"] = array(std::move(from.start));
  to["count"] = array(std::move(from.count));
  to["step"] = array(std::move(from.step));
  return to;
}

nb::dict components(std::string_view text, DefComponents&& from, char divider) {
  nb::dict to;
  nb::list written = strings(text, from.name);
  to["written_names"] = written;
  to["names"] = plain_names(text, from.name, written, divider);
  to["masters"] = strings(text, from.masters.names);
  to["master"] = array(std::move(from.master));
  to["status"] = array(std::move(from.status));
  to["x"] = array(std::move(from.x));
  to["y"] = array(std::move(from.y));
  to["orientation"] = array(std::move(from.orientation));
  to["begin"] = array(std::move(from.begin));
  to["end"] = array(std::move(from.end));
  to["halo_component"] = array(std::move(from.halo_component));
  to["halo"] = array(std::move(from.halo));
  to["regions"] = strings(text, from.regions.names);
  to["region_component"] = array(std::move(from.region_component));
  to["region"] = array(std::move(from.region));
  return to;
}

nb::dict pins(std::string_view text, DefPins&& from, char divider) {
  nb::dict to;
  nb::list written = strings(text, from.name);
  to["names"] = plain_names(text, from.name, written, divider);
  to["written_names"] = written;
  to["nets"] = strings(text, from.nets.names);
  to["net"] = array(std::move(from.net));
  to["layers"] = strings(text, from.layers.names);
  to["layer"] = array(std::move(from.layer));
  to["x"] = array(std::move(from.x));
  to["y"] = array(std::move(from.y));
  to["box"] = array(std::move(from.box));
  to["status"] = array(std::move(from.status));
  to["orientation"] = array(std::move(from.orientation));
  to["direction"] = array(std::move(from.direction));
  to["use"] = array(std::move(from.use));
  to["special"] = array(std::move(from.special));
  to["begin"] = array(std::move(from.begin));
  return to;
}

nb::dict blockages(std::string_view text, DefBlockages&& from) {
  nb::dict to;
  to["layers"] = strings(text, from.layers.names);
  to["layer"] = array(std::move(from.layer));
  to["components"] = strings(text, from.components.names);
  to["component"] = array(std::move(from.component));
  to["is_soft"] = array(std::move(from.is_soft));
  to["is_pushdown"] = array(std::move(from.is_pushdown));
  to["partial"] = array(std::move(from.partial));
  to["start"] = array(std::move(from.start));
  to["polygon_start"] = array(std::move(from.polygon_start));
  to["points"] = array(std::move(from.points));
  to["begin"] = array(std::move(from.begin));
  return to;
}

nb::dict areas(std::string_view text, DefRegions&& regions, DefGroups&& groups) {
  nb::dict to;
  to["regions"] = strings(text, regions.name);
  to["is_guide"] = array(std::move(regions.is_guide));
  to["is_fence"] = array(std::move(regions.is_fence));
  to["start"] = array(std::move(regions.start));
  to["boxes"] = array(std::move(regions.boxes));
  to["groups"] = strings(text, groups.name);
  to["group_region"] = strings(text, groups.region);
  to["group_start"] = array(std::move(groups.start));
  to["patterns"] = strings(text, groups.patterns);
  to["group_begin"] = array(std::move(groups.begin));
  return to;
}

nb::dict nets(std::string_view text, DefNets&& from) {
  nb::dict to;
  to["names"] = strings(text, from.name);
  to["start"] = array(std::move(from.start));
  to["component"] = array(std::move(from.component));
  to["pin"] = array(std::move(from.pin));
  to["pins"] = strings(text, from.pins.names);
  to["use"] = array(std::move(from.use));
  to["weight"] = array(std::move(from.weight));
  to["begin"] = array(std::move(from.begin));
  return to;
}

nb::dict straps(std::string_view text, DefStraps&& from) {
  nb::dict to;
  to["layers"] = strings(text, from.layers.names);
  to["net"] = array(std::move(from.net));
  to["layer"] = array(std::move(from.layer));
  to["width"] = array(std::move(from.width));
  to["at"] = array(std::move(from.at));
  to["low"] = array(std::move(from.low));
  to["high"] = array(std::move(from.high));
  to["is_vertical"] = array(std::move(from.is_vertical));
  return to;
}

}  // namespace

void bind_def(nb::module_& m) {
  m.def(
      "read_def",
      [](const nb::bytes& data) {
        const std::string_view text = view(data);
        DefContents from;
        {
          nb::gil_scoped_release release;
          from = read_def(text);
        }
        const char divider = from.header.divider.front();
        nb::dict to;
        to["header"] = header(text, std::move(from.header));
        to["rows"] = rows(text, std::move(from.rows));
        to["tracks"] = tracks(text, std::move(from.tracks));
        to["components"] = components(text, std::move(from.components), divider);
        to["pins"] = pins(text, std::move(from.pins), divider);
        to["blockages"] = blockages(text, std::move(from.blockages));
        to["areas"] = areas(text, std::move(from.regions), std::move(from.groups));
        to["nets"] = nets(text, std::move(from.nets));
        to["straps"] = straps(text, std::move(from.straps));
        to["findings"] = findings(text, from.findings);
        return to;
      },
      nb::arg("data"));
  m.def(
      "line_at",
      [](const nb::bytes& data, std::int64_t offset) { return line_at(view(data), static_cast<std::size_t>(offset)); },
      nb::arg("data"), nb::arg("offset"));
}

}  // namespace netlist_text
