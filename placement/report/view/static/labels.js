// Names and sizes of hard macros, none over another.

import { HARD } from "./data.js";

export const LABEL = 11, FONT = `${LABEL}px system-ui, 'DejaVu Sans', sans-serif`; // pixels
const LEAST_WIDTH = 46, MARGIN = 4, LINE = 1.15 * LABEL;
const SHORTENED = new Map(), MOST_SHORTENED = 20000;

// Where macros overlap, the selected one keeps its label, then the larger one.
export function paintLabels(painter) {
  const { context, colours } = painter, taken = new Taken();
  context.font = FONT;
  for (const { node, place } of seen(painter)) {
    const lines = linesOf(painter, node, place), [px, py, wide, tall] = place;
    const across = Math.max(...lines.map((line) => context.measureText(line).width)), up = lines.length * LINE;
    const middle = px + wide / 2, centre = py + tall / 2;
    if (!taken.take(middle - across / 2, centre - up / 2, middle + across / 2, centre + up / 2)) continue;
    lines.forEach((line, number) => {
      painter.text(line, middle, centre + 0.35 * LABEL + LINE * (number - (lines.length - 1) / 2), colours.label, "center");
    });
  }
}

// The macros with room for a label, the most wanted first: {node, place in pixels}.
function seen(painter) {
  const { design, placement, viewport, shown } = painter, found = [];
  for (const node of design.of[HARD]) {
    if (!placement.placed[node]) continue;
    const [left, low, width, height] = painter.box(node);
    if (!viewport.sees(left, low, left + width, low + height)) continue;
    const place = painter.rectangle(left, low, width, height);
    if (place[2] >= LEAST_WIDTH && place[3] >= LABEL + 5) found.push({ node, place, area: width * height, chosen: shown.chosen.has(node) });
  }
  return found.sort((one, other) => other.chosen - one.chosen || other.area - one.area);
}

function linesOf({ context, design, placement }, node, [, , wide, tall]) {
  const lines = [shortened(context, design.label(node), wide - 2 * MARGIN)], [width, height] = placement.sides(design, node);
  const size = `${width.toFixed(1)} × ${height.toFixed(1)} µm`;
  if (tall > 2 * LABEL + 10 && context.measureText(size).width < wide - 2 * MARGIN) lines.push(size);
  return lines;
}

// Rectangles of which no two may overlap, found by the rows of a label's height that they reach.
class Taken {
  constructor() {
    this.rows = new Map();
  }

  // Takes a rectangle; false where a part of it is taken.
  take(left, top, right, low) {
    const rows = [];
    for (let row = Math.floor(top / LABEL); row <= Math.floor(low / LABEL); row += 1) {
      if (!this.rows.has(row)) this.rows.set(row, []);
      rows.push(this.rows.get(row));
    }
    if (rows.some((row) => row.some((one) => one[0] < right && left < one[2] && one[1] < low && top < one[3]))) return false;
    for (const row of rows) row.push([left, top, right, low]);
    return true;
  }
}

// A name's end, which tells it from others, as wide as there is room.
function shortened(context, name, wide) {
  const key = `${Math.round(wide)} ${name}`;
  if (!SHORTENED.has(key)) {
    if (SHORTENED.size > MOST_SHORTENED) SHORTENED.clear();
    SHORTENED.set(key, cut(context, name, wide));
  }
  return SHORTENED.get(key);
}

function cut(context, name, wide) {
  if (context.measureText(name).width <= wide) return name;
  let low = 0, high = name.length;
  while (low + 1 < high) {
    const middle = (low + high) >> 1;
    if (context.measureText(`…${name.slice(middle)}`).width <= wide) high = middle;
    else low = middle;
  }
  return `…${name.slice(high)}`;
}
