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
  return columns(text, "version", from.version, "divider", from.divider, "bus_bits", from.bus_bits, "design",
                 from.design, "units", from.units, "die", from.die);
}

nb::dict rows(std::string_view text, DefRows&& from) {
  return columns(text, "names", from.name, "sites", from.sites.names, "site", from.site, "x", from.x, "y", from.y,
                 "count_x", from.count_x, "count_y", from.count_y, "step_x", from.step_x, "step_y", from.step_y,
                 "orientation", from.orientation);
}

nb::dict tracks(std::string_view text, DefTracks&& from) {
  return columns(text, "layers", from.layers.names, "layer", from.layer, "is_x", from.is_x, "start", from.start,
                 "count", from.count, "step", from.step);
}

nb::dict components(std::string_view text, DefComponents&& from, char divider) {
  nb::list written = strings(text, from.name);
  return columns(text, "written_names", written, "names", plain_names(text, from.name, written, divider),
                 "masters", from.masters.names, "master", from.master, "status", from.status, "x", from.x, "y", from.y,
                 "orientation", from.orientation, "begin", from.begin, "end", from.end,
                 "halo_component", from.halo_component, "halo", from.halo, "regions", from.regions.names,
                 "region_component", from.region_component, "region", from.region);
}

nb::dict pins(std::string_view text, DefPins&& from, char divider) {
  nb::list written = strings(text, from.name);
  return columns(text, "names", plain_names(text, from.name, written, divider), "written_names", written,
                 "nets", from.nets.names, "net", from.net, "layers", from.layers.names, "layer", from.layer,
                 "x", from.x, "y", from.y, "box", from.box, "status", from.status, "orientation", from.orientation,
                 "direction", from.direction, "use", from.use, "special", from.special, "begin", from.begin);
}

nb::dict blockages(std::string_view text, DefBlockages&& from) {
  return columns(text, "layers", from.layers.names, "layer", from.layer, "components", from.components.names,
                 "component", from.component, "is_soft", from.is_soft, "is_pushdown", from.is_pushdown,
                 "partial", from.partial, "start", from.start, "polygon_start", from.polygon_start,
                 "points", from.points, "begin", from.begin);
}

nb::dict areas(std::string_view text, DefRegions&& regions, DefGroups&& groups) {
  return columns(text, "regions", regions.name, "is_guide", regions.is_guide, "is_fence", regions.is_fence,
                 "start", regions.start, "boxes", regions.boxes, "groups", groups.name, "group_region", groups.region,
                 "group_start", groups.start, "patterns", groups.patterns, "group_begin", groups.begin);
}

nb::dict nets(std::string_view text, DefNets&& from) {
  return columns(text, "names", from.name, "start", from.start, "component", from.component, "pin", from.pin,
                 "pins", from.pins.names, "use", from.use, "weight", from.weight, "begin", from.begin);
}

nb::dict straps(std::string_view text, DefStraps&& from) {
  return columns(text, "layers", from.layers.names, "net", from.net, "layer", from.layer, "width", from.width,
                 "at", from.at, "low", from.low, "high", from.high, "is_vertical", from.is_vertical);
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
