// The timing estimate: its figures, a histogram of the endpoints' slack and the worst paths, while it is switched on.

import { between } from "./colours.js";
import { drawn, element, fill } from "./dom.js";

const WIDE = 280, TALL = 90, LOW = 16, LISTED = 6;
const grouped = (value, digits = 0) => value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
// Name in the data → its row: id, title, and how it is written.
const ROWS = [["worst", "worst slack (ps)", (value) => grouped(value)], ["tns", "total negative slack (ns)", (value) => grouped(value / 1000, 1)],
  ["failing", "failing endpoints", (value) => grouped(value)]];

export class Timing {
  constructor(parent, app) {
    Object.assign(this, { app, model: app.model });
    this.first = new Map(); // by session: what was found when the estimate was switched on
    this.found = element("div", { id: "timing-found" });
    this.box = element("input", { type: "checkbox", id: "timing-on", onchange: ({ target }) => this.turn(target.checked) });
    fill(parent, element("h2", {}, "Timing"), element("label", { className: "layer" }, this.box, "estimate, cells in their clusters"), this.found);
  }

  turn(on) {
    Object.assign(this.model, { timed: on, untimed: null });
    this.first.clear();
    this.app.refreshTiming();
  }

  draw() {
    const { timing, timed, untimed, active } = this.model, shown = timing ?? untimed;
    this.box.checked = timed;
    if (shown === this.shown) return;
    this.shown = shown;
    if (!timing) {
      fill(this.found, untimed && element("p", { className: "bad" }, untimed));
      return;
    }
    if (!this.first.has(active)) this.first.set(active, timing);
    const first = this.first.get(active), paths = timing.paths.slice(0, LISTED);
    fill(this.found, element("table", {}, element("thead", {}, element("tr", {}, ...["", "now", "before"].map((head) => element("th", {}, head)))),
      element("tbody", {}, ...ROWS.map(([name, title, text]) => element("tr", { id: `timing-${name}` }, element("th", {}, title),
        element("td", { className: "now" }, text(timing[name])), element("td", { className: "muted" }, text(first[name])))))),
      timing.endpoints ? histogram(timing) : null,
      element("ul", { className: "found" }, ...paths.map((path) => element("li", {}, element("button", { type: "button", title: "selects the macros at the path's ends",
        onclick: () => this.model.choose(path.macros) }, `${grouped(path.slack)} ps: ${path.start} → ${path.end}`)))));
  }
}

// The number of endpoints by slack, on a logarithmic scale; those that fail in the colour of what is worse.
function histogram({ endpoints, histogram: { edges, counts } }) {
  const most = Math.max(...counts), last = edges.length - 1, floor = TALL - LOW;
  const across = (slack) => (WIDE * (slack - edges[0])) / (edges[last] - edges[0]);
  const picture = drawn("svg", { viewBox: `0 0 ${WIDE} ${TALL}`, class: "histogram", role: "img", "aria-label": "endpoints by slack" });
  counts.forEach((count, at) => {
    const height = ((floor - 12) * Math.log1p(count)) / Math.log1p(most), x = across(edges[at]);
    if (count) picture.append(drawn("rect", { x, y: floor - height, width: across(edges[at + 1]) - x - 0.5, height, class: edges[at + 1] <= 0 ? "fails" : "" }));
  });
  if (edges[0] < 0 && edges[last] > 0) picture.append(drawn("path", { class: "axis", d: `M${across(0)},12V${floor}` }), drawn("text", { x: across(0), y: 10, "text-anchor": "middle" }, "0"));
  picture.append(drawn("text", { x: 0, y: TALL - 4 }, `${grouped(edges[0])} ps`), drawn("text", { x: WIDE / 2, y: TALL - 4, "text-anchor": "middle" }, `slack of ${grouped(endpoints)} endpoints (log)`),
    drawn("text", { x: WIDE, y: TALL - 4, "text-anchor": "end" }, `${grouped(edges[last])} ps`));
  return picture;
}

// The colour of a hard macro by its worst slack, from that of macros towards that of what is illegal, whose hatching can
// still be seen on it; null: it has none.
export function slackColour(colours, { macros, worst }, node) {
  const slack = macros[node];
  return slack === undefined ? null : between(colours.hard, colours.illegal, slack < 0 ? (0.8 * slack) / worst : 0);
}

// The worst paths from pin to pin, the worst of them above the others.
export function paintPaths({ context, colours, viewport }, { paths, worst }) {
  context.globalAlpha *= 0.6;
  for (const { x, y, slack } of paths.toReversed()) {
    context.beginPath();
    x.forEach((px, at) => context[at ? "lineTo" : "moveTo"](...viewport.toScreen(px, y[at])));
    context.strokeStyle = slack < 0 ? colours.worse : colours.better;
    context.lineWidth = slack < 0 ? 0.6 + (1.4 * slack) / worst : 0.8;
    context.stroke();
  }
  context.globalAlpha /= 0.6;
}
