// Density and congestion as colours below the macros, with their scale.

import { onScale } from "./colours.js";

export const MAPS = {
  density: { title: "density", unit: "area of macros / area of gcell" },
  horizontal: { title: "horizontal congestion", unit: "routing demand / capacity" },
  vertical: { title: "vertical congestion", unit: "routing demand / capacity" },
};

const BAR = 150, THICK = 10;

// map: {name, values: Float32Array [R, C], the lowest row first}
export function paintMap(painter, { name, values }) {
  const { context, design } = painter, { canvas } = design;
  let most = 0;
  for (const value of values) most = Math.max(most, value);
  const wide = canvas.width / canvas.columns, tall = canvas.height / canvas.rows;
  for (let row = 0; row < canvas.rows; row += 1) {
    for (let column = 0; column < canvas.columns; column += 1) {
      const value = values[row * canvas.columns + column];
      context.fillStyle = `rgb(${onScale(most ? value / most : 0).join(" ")})`;
      const [px, py, across, up] = painter.rectangle(column * wide, row * tall, wide, tall);
      context.fillRect(px, py, across + 0.6, up + 0.6);
    }
  }
}

// What the colours mean, above everything.
export function paintScale(painter, { name, values }) {
  const { context, colours } = painter;
  let most = 0;
  for (const value of values) most = Math.max(most, value);
  const right = painter.viewport.width - 16, low = painter.viewport.height - 16;
  const { title, unit } = MAPS[name];
  context.fillStyle = colours.paper;
  context.fillRect(right - 232, low - 46, 240, 54);
  painter.text(title, right, low - 32, colours.ink, "right");
  painter.text(unit, right, low - 19, colours.muted, "right");
  for (let at = 0; at < BAR; at += 1) {
    context.fillStyle = `rgb(${onScale(at / (BAR - 1)).join(" ")})`;
    context.fillRect(right - 40 - BAR + at, low - 10, 1.2, THICK);
  }
  painter.text("0", right - 46 - BAR, low, colours.ink, "right");
  painter.text(most.toFixed(2), right - 34, low, colours.ink);
}
