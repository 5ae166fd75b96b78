// Two placements of the window: side by side, one over the other, or moved macros joined by lines.

import { button, element, fill } from "./dom.js";

const MODES = [["lines", "lines join moved macros"], ["fade", "fade between the two"], ["sides", "side by side"]];

export class Compare {
  constructor(parent, app) {
    Object.assign(this, { parent, app, model: app.model });
    this.model.addEventListener("change", () => { if (!this.model.drag) this.draw(); });
    this.draw();
  }

  draw() {
    const { model } = this;
    if (model.sessions.length < 2) return;
    const names = model.sessions.map((one) => one.state.name), key = JSON.stringify([names, model.other, model.mode, model.active]);
    if (key === this.key) {
      if (this.count) this.count.textContent = this.counted();
      return;
    }
    this.key = key;
    const chosen = model.other !== null;
    this.count = chosen ? element("div", { className: "muted", id: "moved" }, this.counted()) : null;
    fill(this.parent, element("h2", {}, "Compare"),
      element("div", { className: "row" }, element("span", {}, "with"), element("select", { ariaLabel: "compare with", id: "compare-with", onchange: (event) => this.with(event.target.value) },
        element("option", { value: "" }, "nothing"), ...names.flatMap((name, at) => (at === model.active ? [] : [element("option", { value: at, selected: at === model.other }, name)]))),
        chosen ? button("exchange", "compare in the other direction", () => this.turn()) : null),
      chosen ? element("select", { ariaLabel: "how", id: "compare-how", onchange: (event) => this.how(event.target.value) },
        ...MODES.map(([value, text]) => element("option", { value, selected: value === model.mode }, text))) : null,
      chosen && model.mode === "fade" ? element("input", { type: "range", min: 0, max: 1, step: 0.01, value: model.fade, id: "fade", ariaLabel: "share of the other placement", oninput: (event) => {
        model.fade = Number(event.target.value);
        this.app.redraw();
      } }) : null, this.count);
  }

  counted() {
    const nodes = this.model.movedNodes(), hard = nodes.filter((node) => this.model.design.kind[node] === 0).length;
    return `${hard} hard and ${nodes.length - hard} soft macros have other positions there`;
  }

  with(value) {
    this.model.other = value === "" ? null : Number(value);
    this.app.compared();
  }

  turn() {
    const { active, other } = this.model;
    this.model.other = active;
    this.app.show(other);
    this.app.compared();
  }

  how(mode) {
    this.model.mode = mode;
    this.app.compared();
  }
}
