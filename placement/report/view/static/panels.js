// The panels beside the canvas: layers, search, the selection, costs, tools, steps.

import { HARD, PORT, SOFT } from "./data.js";
import { Compare } from "./compare.js";
import { Constrain } from "./constrain.js";
import { updateCosts } from "./costs.js";
import { Doing } from "./doing.js";
import { button, element, fill } from "./dom.js";
import { MAPS } from "./maps.js";
import { Run } from "./run.js";
import { Timing } from "./timing.js";

const LAYERS = [["hard", "hard macros", "hard"], ["labels", "names and sizes"], ["halos", "halos", "halo"], ["soft", "soft macros", "soft"],
  ["ports", "ports", "port"], ["cells", "standard cells", "cell"], ["lines", "flylines of the selection", "fly-macro"],
  ["slack", "macros by slack", "illegal"], ["paths", "worst paths", "worse"],
  ["gcells", "grid of gcells", "line"], ["blockages", "blockages", "blockage"], ["regions", "regions", "region"]];
const MOST_FOUND = 200, MOST_LISTED = 12;

const pair = (x, y) => `${x.toFixed(2)}, ${y.toFixed(2)}`;

export class Panels {
  // app: {model, act(promise), edit(what, how), ask, setMap(name), frame(), editable}
  constructor(left, right, app) {
    Object.assign(this, { app, model: app.model });
    this.found = element("ul", { className: "found" });
    this.query = element("input", { type: "search", placeholder: "name, * and ? allowed", ariaLabel: "search by name", id: "search",
      oninput: () => this.search(), onkeydown: (event) => { if (event.key === "Enter") this.chooseFound(); } });
    this.layers = element("div");
    this.chosen = element("div", { id: "chosen" });
    this.costs = element("div", { id: "costs" });
    this.faults = element("div", { id: "faults" });
    this.steps = element("div", { id: "steps" });
    this.tools = element("div");
    this.doing = element("div", { id: "doing" });
    this.rules = element("div", { id: "rules" });
    this.compare = element("div", { id: "compare" });
    this.running = element("div", { id: "run" });
    const timing = element("div", { id: "timing" });
    fill(left, element("h2", {}, "Find"), this.query, this.found, element("h2", {}, "Layers"), this.layers, this.map(),
      element("h2", {}, "Selected"), this.chosen);
    fill(right, element("h2", {}, "Cost"), this.costs, this.faults, timing, this.running, this.compare, this.tools, this.doing, this.rules, ...(app.editable ? [element("h2", {}, "Steps"), this.steps] : []));
    if (app.editable) {
      this.drawTools();
      this.actions = new Doing(this.doing, app);
      this.constraints = new Constrain(this.rules, app);
      this.run = new Run(this.running, app);
      if (this.model.hasTiming) this.timing = new Timing(timing, app);
    }
    this.comparing = new Compare(this.compare, app);
    this.model.addEventListener("change", () => { if (!this.model.drag) this.update(); }); // a drag: once a frame
    this.update();
  }

  drawLayers() {
    const { model } = this;
    const has = { cells: model.hasCells || model.design.of[3].length, blockages: model.design.blockages.length, regions: model.design.regions.length,
      soft: model.design.of[SOFT].length, halos: model.design.halo, lines: model.design.nets, slack: model.timing, paths: model.timing };
    const present = LAYERS.filter(([name]) => !(name in has) || has[name]), key = String(present);
    if (key === this.layersKey) return;
    this.layersKey = key;
    fill(this.layers, ...present.map(([name, title, colour]) => element("label", { className: "layer" },
      element("input", { type: "checkbox", checked: model.layers[name], onchange: (event) => {
        model.layers[name] = event.target.checked;
        if (name === "cells") this.app.wantCells();
        model.refresh();
      } }),
      element("span", { className: "swatch", style: colour ? `background: var(--${colour}); border-color: var(--${colour}-edge, var(--${colour}))` : "visibility: hidden" }),
      title)));
  }

  map() {
    const options = [["", "no map"], ...Object.entries(MAPS).map(([name, { title }]) => [name, title])];
    return element("div", { className: "row" }, element("select", { id: "map", ariaLabel: "map", onchange: (event) => this.app.setMap(event.target.value) },
      ...options.map(([value, text]) => element("option", { value }, text))));
  }

  search() {
    const text = this.query.value.trim(), { model } = this;
    const nodes = text ? model.search(text) : [];
    this.nodes = nodes;
    const shown = nodes.slice(0, MOST_FOUND);
    fill(this.found, ...shown.map((node) => element("li", {}, button(model.design.names[node], model.design.kinds[model.design.kind[node]],
      () => { model.choose([node]); this.app.frame(); }))),
    text && !nodes.length ? element("li", { className: "muted" }, "no match") : null,
    nodes.length > 1 ? element("li", {}, button(`select all ${nodes.length}`, "so does Enter", () => this.chooseFound())) : null);
  }

  chooseFound() {
    if (this.nodes?.length) {
      this.model.choose(this.nodes);
      this.app.frame();
    }
  }

  drawTools() {
    const { app } = this, edit = (text, title, what, how) => button(text, title, () => app.edit(what, how));
    fill(this.tools, element("h2", {}, "Move the selection"),
      element("div", { className: "row" }, edit("⟲", "turn left (R)", "turn", "left"), edit("⟳", "turn right (r)", "turn", "right"),
        edit("⇋", "mirror left to right (x)", "turn", "mirror_x"), edit("⥮", "mirror upside down (y)", "turn", "mirror_y"),
        edit("swap", "swaps two macros (s)", "swap"), edit("fix", "fixes the selected macros (l)", "fix"), edit("release", "makes the selected macros movable (u)", "release")),
      element("div", { className: "row" }, element("span", { className: "muted" }, "align"), edit("⇤", "left edges (Alt-←)", "align", "left"),
        edit("⇥", "right edges (Alt-→)", "align", "right"), edit("⤓", "lower edges (Alt-↓)", "align", "bottom"), edit("⤒", "upper edges (Alt-↑)", "align", "top"),
        edit("│", "middles, on a vertical line (Alt-c)", "align", "centre_x"), edit("─", "middles, on a horizontal line (Alt-C)", "align", "centre_y")),
      element("div", { className: "row" }, element("span", { className: "muted" }, "equal gaps"), edit("↔", "across (h)", "distribute", "x"),
        edit("↕", "up (v)", "distribute", "y"), element("span", { className: "muted" }, "snap to"), this.snapBox("grid", "grid"), this.snapBox("neighbours", "edges"), this.model.hasCells ? this.trackBox() : null));
  }

  snapBox(name, text) {
    const { snap } = this.app.mover;
    return element("label", {}, element("input", { type: "checkbox", checked: snap[name], onchange: (event) => { snap[name] = event.target.checked; } }), text);
  }

  // The tracks are requested when they are first needed.
  trackBox() {
    const { app } = this, { snap } = app.mover;
    return element("label", {}, element("input", { type: "checkbox", id: "snap-tracks", onchange: async ({ target }) => {
      if (target.checked) this.tracks ??= await app.ask("tracks");
      snap.tracks = target.checked ? this.tracks ?? null : null;
      target.checked = snap.tracks !== null;
      if (snap.tracks) app.tell(`lower left corners snap to tracks of ${snap.tracks.pitch_x} × ${snap.tracks.pitch_y} µm`);
    } }), "tracks");
  }

  update() {
    const { model } = this;
    updateCosts(this.costs, model);
    this.updateFaults();
    this.timing?.draw();
    this.drawLayers();
    this.constraints?.draw();
    fill(this.chosen, ...this.describeChosen());
    const { steps, undone } = model.session.state;
    const list = element("ol", { className: "steps" }, ...steps.map((step) => element("li", { title: step.command ?? "" }, step.what)),
      ...undone.map((step) => element("li", { className: "undone" }, step.what)));
    const key = JSON.stringify([steps, undone]);
    if (key !== this.stepsKey) {
      this.stepsKey = key;
      fill(this.steps, steps.length + undone.length ? list : element("span", { className: "muted" }, "no changes yet"));
      list.scrollTop = list.scrollHeight;
    }
  }

  updateFaults() {
    const { faults } = this.model;
    const text = faults.size ? `${faults.size} ${faults.size === 1 ? "macro is" : "macros are"} not legal` : "legal: no macro breaks a rule";
    const line = element("div", { className: faults.size ? "bad" : "muted" }, text);
    if (faults.size) line.append(" ", button("select them", "select the macros that are not legal", () => this.model.choose([...faults.keys()])));
    fill(this.faults, line);
  }

  describeChosen() {
    const { model } = this, nodes = [...model.chosen];
    if (!nodes.length) return [element("span", { className: "muted" }, "click a macro to select it; Shift adds; Shift-drag selects all inside")];
    if (nodes.length > 1) {
      const listed = nodes.slice(0, MOST_LISTED).map((node) => element("div", { className: "name" }, model.design.names[node]));
      return [element("div", {}, `${nodes.length} nodes`), ...listed, nodes.length > MOST_LISTED ? element("div", { className: "muted" }, "…") : null];
    }
    return this.describe(nodes[0]);
  }

  describe(node) {
    const { model } = this, { design, placement } = model, [width, height] = placement.sides(design, node);
    const kind = { [HARD]: "hard macro", [SOFT]: "soft macro", [PORT]: "port" }[design.kind[node]] ?? "standard cell";
    const x = placement.x[node], y = placement.y[node];
    const rows = [["kind", `${kind}${placement.fixed[node] && design.kind[node] !== PORT ? ", fixed" : ""}`], ["centre (µm)", pair(x, y)]];
    if (design.kind[node] !== PORT) {
      rows.push(["lower left (µm)", pair(x - width / 2, y - height / 2)], ["size (µm)", `${width.toFixed(3)} × ${height.toFixed(3)}`]);
    }
    if (design.kind[node] === HARD) rows.push(["orientation", design.orientations[placement.orientation[node]]]);
    if (design.nets) rows.push(["nets", String(new Set([...design.incidencesOf(node)].map((one) => design.netOf(one))).size)]);
    return [element("div", { className: "name" }, element("strong", {}, design.names[node] || `node ${node}`)),
      element("table", {}, ...rows.map(([name, value]) => element("tr", {}, element("th", {}, name), element("td", {}, value)))),
      ...(model.faults.get(node) ?? []).map((why) => element("div", { className: "bad" }, why))];
  }
}
