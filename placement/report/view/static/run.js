// A run folder: its curve, and a slider over the best placements that it came to, live.

import { button, drawn, element, fill } from "./dom.js";

const WIDE = 280, TALL = 120, LEFT = 40, LOW = 22, DASHES = ["", "4 3"];

export class Run {
  constructor(parent, app) {
    Object.assign(this, { parent, app, model: app.model });
    this.draw();
  }

  // Takes what is new; follows the newest placement where the one before it was shown.
  take(event) {
    const { model } = this, known = model.run.sessions;
    const follows = event.opened.length && (known.length === 0 || model.active === known[known.length - 1]);
    model.open(event);
    if (follows) this.app.show(model.sessions.length - 1);
    this.draw();
  }

  draw() {
    const { run } = this.model;
    if (!run) return;
    const at = run.sessions.indexOf(this.model.active), last = run.sessions.length - 1;
    fill(this.parent, element("h2", {}, "Run"), element("div", { className: "muted name" }, run.folder),
      run.curve && run.curve.x.length ? curve(run.curve) : element("div", { className: "muted" }, "no curve yet"),
      run.sessions.length ? element("div", {}, element("label", {}, `best placement ${at < 0 ? "–" : at + 1} of ${last + 1}`,
        element("input", { type: "range", id: "run-slider", min: 0, max: last, step: 1, value: at < 0 ? last : at, disabled: last === 0 && at === 0, oninput: (event) => {
          this.app.show(run.sessions[Number(event.target.value)]);
          this.draw();
        } }))) : element("div", { className: "muted" }, "no placement yet"),
      run.sessions.length && at !== last ? button("show the newest", "and follow new placements", () => { this.app.show(run.sessions[last]); this.draw(); }) : null);
  }
}

function curve({ title, x, series }) {
  const all = Object.values(series).flat().filter((value) => value !== null);
  const low = Math.min(...all), high = Math.max(...all), first = x[0], last = x[x.length - 1];
  const across = (value) => LEFT + ((WIDE - LEFT - 6) * (value - first)) / Math.max(last - first, 1e-12);
  const up = (value) => TALL - LOW - ((TALL - LOW - 14) * (value - low)) / Math.max(high - low, 1e-12);
  const picture = drawn("svg", { viewBox: `0 0 ${WIDE} ${TALL}`, class: "curve", role: "img" });
  picture.append(drawn("path", { class: "axis", d: `M${LEFT},8V${TALL - LOW}H${WIDE - 6}` }));
  Object.entries(series).forEach(([name, values], number) => {
    const points = values.map((value, at) => [x[at], value]).filter((point) => point[1] !== null);
    if (!points.length) return;
    const line = points.map(([px, py], at) => `${at ? "L" : "M"}${across(px).toFixed(1)},${up(py).toFixed(1)}`).join("");
    picture.append(drawn("path", { d: line, "stroke-dasharray": DASHES[number % 2] }));
  });
  const names = Object.keys(series).map((name, at) => `${name} ${DASHES[at % 2] ? "- -" : "—"}`).join("  ");
  picture.append(drawn("text", { x: LEFT - 4, y: up(low) + 3, "text-anchor": "end" }, low.toFixed(3)),
    high > low ? drawn("text", { x: LEFT - 4, y: up(high) + 3, "text-anchor": "end" }, high.toFixed(3)) : "",
    drawn("text", { x: LEFT, y: TALL - 8 }, `${first}`), drawn("text", { x: WIDE - 6, y: TALL - 8, "text-anchor": "end" }, `${title} ${last.toPrecision(4) * 1}`),
    drawn("text", { x: WIDE - 6, y: 10, "text-anchor": "end" }, `cost: ${names}`));
  return picture;
}
