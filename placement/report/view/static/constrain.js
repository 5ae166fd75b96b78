// Constraints: blockages, regions and halos are drawn, listed, removed and saved.

import { HARD } from "./data.js";
import { askText } from "./dialogs.js";
import { button, element, fill } from "./dom.js";

const KINDS = [["blockage", "Blockage", "excludes macros: draw its rectangle"],
  ["region", "Region", "contains the selected macros, or the macros inside: draw its rectangle"],
  ["halo", "Halo", "margin around the selected macros: draw a rectangle around one of them"]];

const corners = (rectangle) => rectangle.map((one) => one.toFixed(1)).join(", ");

export class Constrain {
  constructor(parent, app) {
    Object.assign(this, { parent, app, model: app.model, exclusive: false });
  }

  draw() {
    const { model, app } = this, { blockages, regions } = model.design, tool = app.pointers?.[0].tool.name;
    const key = JSON.stringify([blockages, regions.map((one) => [one.name, one.rectangles, one.nodes.length]), tool, model.session.state.has_drawn]);
    if (key === this.key) return;
    this.key = key;
    fill(this.parent, element("h2", {}, "Constraints"),
      element("div", { className: "row" }, element("span", { className: "muted" }, "draw"), ...KINDS.map(([kind, title, hint]) => button(title, hint,
        () => app.draw(kind, hint, (rectangle) => this[kind](rectangle)), { id: `draw-${kind}`, ariaPressed: String(tool === kind) })),
        element("label", { title: "a new region excludes all other macros" }, element("input", { type: "checkbox", id: "exclusive", checked: this.exclusive, onchange: (event) => { this.exclusive = event.target.checked; } }), "exclusive")),
      element("ul", { className: "found", id: "constraints" },
        ...blockages.map((one, index) => this.row(`blockage ${corners(one)} µm`, "remove_blockage", index)),
        ...regions.map((one, index) => this.row(`${one.name}${one.exclusive ? " (exclusive)" : ""}: ${one.nodes.length} ${one.nodes.length === 1 ? "macro" : "macros"}`, "remove_region", index))),
      model.session.state.has_drawn ? element("div", { className: "row" }, button("Save constraints…", "writes the file that the commands read", () => app.save("constraints", model.constraintsPath), { id: "save-constraints" }),
        element("span", { className: "muted" }, "the commands above use constraints once they are saved")) : null);
  }

  row(text, what, index) {
    return element("li", { className: "listed" }, element("span", {}, text), button("✕", "remove it", () => this.app.ask("constrain", { what, index })));
  }

  blockage(rectangle) { this.app.ask("constrain", { what: "blockage", rectangle }); }

  async region(rectangle) {
    const { model, app } = this, hard = (nodes) => nodes.filter((node) => model.design.kind[node] === HARD);
    const chosen = hard(model.macros()), nodes = chosen.length ? chosen : hard(model.inside(...rectangle));
    if (!nodes.length) return app.tell("select the macros of the region first, or draw it around them", true);
    const name = await askText("A region", `Name of the region of ${nodes.length} ${nodes.length === 1 ? "macro" : "macros"}:`, `region ${model.design.regions.length + 1}`, "Add");
    if (name) app.ask("constrain", { what: "region", rectangle, nodes, name, exclusive: this.exclusive });
  }

  // The halo is what the rectangle leaves beside the macro in its middle, on the wider side of each axis.
  async halo([left, low, right, high]) {
    const { model, app } = this, { design, placement } = model, nodes = model.macros().filter((node) => design.kind[node] === HARD);
    const [node] = nodes.length ? nodes.sort((one, other) => away(one) - away(other)) : [model.at((left + right) / 2, (low + high) / 2, 0)];
    if (node === undefined || node < 0 || design.kind[node] !== HARD) return app.tell("select a macro first, or draw around one", true);
    const [width, height] = placement.sides(design, node), x = placement.x[node], y = placement.y[node];
    const drawn = [Math.max(x - width / 2 - left, right - x - width / 2, 0), Math.max(y - height / 2 - low, high - y - height / 2, 0)];
    const text = await askText("A halo", `x and y in orientation N (µm), for ${nodes.length || 1} ${nodes.length > 1 ? "macros" : "macro"}:`,
      (placement.orientation[node] >= 4 ? drawn.reverse() : drawn).map((side) => side.toFixed(2)).join(", "), "Set");
    if (!text) return;
    const halo = text.split(/[ ,]+/).map(Number);
    if (![2, 4].includes(halo.length) || halo.some(Number.isNaN)) app.tell(`${text}: must be two numbers, x and y, or four, left, bottom, right and top, in µm`, true);
    else app.ask("constrain", { what: "halo", halo, nodes: nodes.length ? nodes : [node] });

    function away(one) { return Math.hypot(placement.x[one] - (left + right) / 2, placement.y[one] - (low + high) / 2); }
  }
}
