// Paints one placement onto a canvas. `shown` says what: see `Painter.paint`.

import { CELL, HARD, PORT, SOFT, TURN } from "./data.js";
import { haloOf } from "./snap.js";
import { paintMap, paintScale } from "./maps.js";
import { micrometres, roundLength } from "./viewport.js";

const LABEL = 11, FONT = `${LABEL}px system-ui, 'DejaVu Sans', sans-serif`, PORT_SIZE = 3.5, FINE = 3; // pixels
const SHORTENED = new Map(), MOST_SHORTENED = 20000;

export class Painter {
  constructor(context, design, viewport, colours) {
    Object.assign(this, { context, design, viewport, colours });
  }

  // shown: {placement, layers, chosen: Set, faults: Map, lines, changes, map, hover, band, ruler, ghost, links}
  paint(shown) {
    const { context, viewport, colours } = this;
    this.shown = shown;
    this.placement = shown.placement;
    this.base = shown.fade ?? 1; // opacity of everything, where this placement is painted over another one
    context.globalAlpha = this.base;
    context.fillStyle = colours.paper;
    context.fillRect(0, 0, viewport.width, viewport.height);
    this.ground();
    if (shown.map) paintMap(this, shown.map);
    if (shown.layers.blockages) this.rectangles(this.design.blockages, colours.blockage, "blockage");
    if (shown.layers.regions) for (const one of this.design.regions) this.rectangles(one.rectangles, colours.region, one.name);
    if (shown.layers.cells) this.cells();
    context.globalAlpha = this.base * (shown.map || (shown.layers.cells && shown.cells) ? 0.35 : 1);
    if (shown.layers.soft) this.macros(SOFT);
    context.globalAlpha = this.base * (shown.map ? 0.35 : 1);
    if (shown.layers.hard) this.macros(HARD);
    context.globalAlpha = this.base;
    if (shown.layers.ports) this.ports();
    if (shown.ghost) this.ghosts(shown.ghost);
    if (shown.layers.lines) this.lines(shown.lines);
    this.changed(shown.changes);
    if (shown.layers.hard && shown.layers.labels) this.labels();
    if (shown.band) this.band(shown.band);
    if (shown.ruler) this.ruler(shown.ruler);
    if (shown.map) paintScale(this, shown.map);
    this.scaleBar();
  }

  box(node) {
    const [width, height] = this.placement.sides(this.design, node);
    return [this.placement.x[node] - width / 2, this.placement.y[node] - height / 2, width, height];
  }

  rectangle(left, low, width, height) {
    const { scale } = this.viewport, [px, py] = this.viewport.toScreen(left, low + height);
    return [px, py, width * scale, height * scale];
  }

  ground() {
    const { context, colours, design } = this, { canvas } = design;
    const whole = this.rectangle(0, 0, canvas.width, canvas.height);
    context.fillStyle = colours.canvas;
    context.fillRect(...whole);
    if (this.shown.layers.gcells) {
      context.beginPath();
      for (let column = 1; column < canvas.columns; column += 1) {
        const at = whole[0] + (whole[2] * column) / canvas.columns;
        context.moveTo(at, whole[1]);
        context.lineTo(at, whole[1] + whole[3]);
      }
      for (let row = 1; row < canvas.rows; row += 1) {
        const at = whole[1] + (whole[3] * row) / canvas.rows;
        context.moveTo(whole[0], at);
        context.lineTo(whole[0] + whole[2], at);
      }
      context.strokeStyle = colours.line;
      context.lineWidth = 0.5;
      context.stroke();
    }
    context.strokeStyle = colours.muted;
    context.lineWidth = 1;
    context.strokeRect(...whole);
  }

  rectangles(list, colour, name) {
    const { context } = this;
    for (const [left, low, right, high] of list) {
      const place = this.rectangle(left, low, right - left, high - low);
      context.save();
      context.beginPath();
      context.rect(...place);
      context.strokeStyle = colour;
      context.lineWidth = 1;
      context.stroke();
      context.clip();
      this.hatch(place, colour, 8);
      context.restore();
      if (place[2] > 60 && place[3] > 16) this.text(name, place[0] + 4, place[1] + 12, colour);
    }
  }

  hatch([px, py, width, height], colour, distance) {
    const { context } = this;
    context.strokeStyle = colour;
    context.lineWidth = 0.8;
    context.beginPath();
    const from = Math.max(px, 0) - height, to = Math.min(px + width, this.viewport.width);
    for (let at = Math.floor(from / distance) * distance; at < to; at += distance) {
      context.moveTo(at, py + height);
      context.lineTo(at + height, py);
    }
    context.stroke();
  }

  macros(kind) {
    const { context, colours, placement, design, shown } = this;
    const name = kind === HARD ? "hard" : "soft";
    const small = [];
    context.lineWidth = 1;
    for (const node of design.of[kind]) {
      if (!placement.placed[node]) continue;
      const [left, low, width, height] = this.box(node);
      if (!this.viewport.sees(left, low, left + width, low + height)) continue;
      const place = this.rectangle(left, low, width, height);
      const look = kind === HARD && placement.fixed[node] ? "fixed" : name;
      context.fillStyle = colours[look];
      context.fillRect(...place);
      context.strokeStyle = colours[`${look}-edge`];
      if (place[2] > 2) context.strokeRect(...place);
      if (kind === HARD && place[2] > 8) this.mark(node, place, colours[`${look}-edge`]);
      if (kind === HARD && shown.layers.halos) this.halo(node, left, low, width, height);
      if (shown.chosen.has(node) || shown.faults.has(node)) small.push([node, place]);
    }
    for (const [node, place] of small) this.outline(node, place);
  }

  outline(node, place) {
    const { context, colours, shown } = this;
    if (shown.faults.has(node)) {
      context.save();
      context.beginPath();
      context.rect(...place);
      context.clip();
      this.hatch(place, colours.illegal, 6);
      context.restore();
      context.strokeStyle = colours.illegal;
      context.lineWidth = 2;
      context.strokeRect(...place);
    }
    if (shown.chosen.has(node)) {
      context.strokeStyle = colours.chosen;
      context.lineWidth = 2;
      context.strokeRect(place[0] - 1.5, place[1] - 1.5, place[2] + 3, place[3] + 3);
    }
  }

  // A triangle in the corner that is the lower left one in orientation N.
  mark(node, [px, py, width, height], colour) {
    const { context } = this, [a, b, c, d] = TURN[this.placement.orientation[node]];
    const across = -(a + b) > 0 ? 1 : -1, up = -(c + d) > 0 ? 1 : -1;
    const size = Math.min(10, width / 3, height / 3);
    const x = across > 0 ? px + width : px, y = up > 0 ? py : py + height;
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(x - across * size, y);
    context.lineTo(x, y + up * size);
    context.fillStyle = colour;
    context.fill();
  }

  halo(node, left, low, width, height) {
    const { context, colours } = this;
    const [across, up] = [0, 1].map((axis) => haloOf(this.design, this.placement, node, axis));
    if (!across && !up) return;
    context.save();
    context.setLineDash([4, 3]);
    context.strokeStyle = colours.halo;
    context.strokeRect(...this.rectangle(left - across, low - up, width + 2 * across, height + 2 * up));
    context.restore();
  }

  // Many cells: as pixels where they are small, else as rectangles. Those of the flat netlist, and the design's own.
  cells() {
    const { design, placement, shown } = this, nodes = design.of[CELL];
    if (shown.cells) this.scatter(shown.cells, shown.cells.x.length, (at) => at);
    const { x, y } = placement, { width, height } = design;
    this.scatter({ x, y, width, height }, nodes.length, (at) => nodes[at]);
  }

  // One pass over plain numbers: a hundred thousand cells are drawn anew in every frame.
  scatter({ x, y, width, height }, count, index) {
    const { context, viewport, colours } = this, { scale, left, top } = viewport, ratio = context.getTransform().a;
    const right = left + viewport.width / scale, low = top - viewport.height / scale, fine = context.isVector ? 0 : FINE / scale;
    const pixels = count && !context.isVector ? this.pixels() : null, zoom = scale * ratio;
    const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colours.cell.slice(at, at + 2), 16));
    const colour = (200 << 24) | (blue << 16) | (green << 8) | red;
    context.fillStyle = colours.cell;
    for (let at = 0; at < count; at += 1) {
      const one = index(at), cx = x[one], cy = y[one], across = width[one] / 2, up = height[one] / 2;
      if (cx + across < left || cx - across > right || cy + up < low || cy - up > top) continue;
      if (2 * up >= fine) {
        context.fillRect((cx - across - left) * scale, (top - cy - up) * scale, 2 * across * scale, 2 * up * scale);
      } else if (cx >= left && cy <= top) {
        const px = ((cx - left) * zoom) | 0, py = ((top - cy) * zoom) | 0;
        if (px < pixels.wide && py < pixels.tall) pixels.values[py * pixels.wide + px] = colour;
      }
    }
    if (!pixels) return;
    pixels.layer.putImageData(pixels.image, 0, 0);
    context.drawImage(this.layer, 0, 0, viewport.width, viewport.height);
  }

  // An empty picture of the canvas's size, to be used again in every frame.
  pixels() {
    const { width: wide, height: tall } = this.context.canvas;
    if (this.layer?.width !== wide || this.layer?.height !== tall) {
      this.layer = new OffscreenCanvas(wide, tall);
      const layer = this.layer.getContext("2d"), image = layer.createImageData(wide, tall);
      this.fine = { layer, image, values: new Uint32Array(image.data.buffer), wide, tall };
    }
    this.fine.values.fill(0);
    return this.fine;
  }

  ports() {
    const { context, colours, placement, viewport, shown } = this;
    for (const node of this.design.of[PORT]) {
      const [px, py] = viewport.toScreen(placement.x[node], placement.y[node]);
      context.fillStyle = shown.chosen.has(node) ? colours.chosen : colours.port;
      const size = shown.chosen.has(node) ? PORT_SIZE + 2 : PORT_SIZE;
      context.fillRect(px - size / 2, py - size / 2, size, size);
    }
  }

  at(node) {
    return this.viewport.toScreen(this.placement.x[node], this.placement.y[node]);
  }

  lines(lines) {
    const { context, colours, design } = this, most = lines[0]?.weight ?? 1;
    const names = { [HARD]: "fly-macro", [SOFT]: "fly-soft", [PORT]: "fly-port", [CELL]: "fly-soft" };
    for (const { from, to, weight } of lines) {
      context.beginPath();
      context.moveTo(...this.at(from));
      context.lineTo(...this.at(to));
      context.strokeStyle = colours[names[design.kind[to]]];
      context.lineWidth = 0.6 + 3.4 * Math.sqrt(weight / most);
      context.globalAlpha = 0.75 * this.base;
      context.stroke();
    }
    context.globalAlpha = this.base;
  }

  // Nets that a move made longer are solid, those that it made shorter dashed.
  changed(changes) {
    const { context, colours, design } = this;
    for (const { net, change } of changes) {
      const { start, node } = design.nets;
      context.beginPath();
      for (let pin = start[net] + 1; pin < Math.min(start[net + 1], start[net] + 40); pin += 1) {
        context.moveTo(...this.at(node[start[net]]));
        context.lineTo(...this.at(node[pin]));
      }
      context.setLineDash(change > 0 ? [] : [3, 4]);
      context.strokeStyle = change > 0 ? colours.worse : colours.better;
      context.lineWidth = change > 0 ? 1.4 : 1;
      context.stroke();
    }
    context.setLineDash([]);
  }

  ghosts({ placement, nodes }) {
    const { context, colours } = this;
    context.globalAlpha = 0.8 * this.base;
    const own = this.placement;
    context.lineWidth = 1;
    for (const node of nodes) {
      const [ax, ay] = this.at(node);
      this.placement = placement;
      const [bx, by] = this.at(node);
      context.strokeStyle = colours.region;
      context.strokeRect(...this.rectangle(...this.box(node)));
      this.placement = own;
      context.beginPath();
      context.moveTo(ax, ay);
      context.lineTo(bx, by);
      context.stroke();
    }
    context.globalAlpha = this.base;
  }

  text(text, px, py, colour, align = "left") {
    const { context } = this;
    context.font = FONT;
    context.textAlign = align;
    context.fillStyle = colour;
    context.fillText(text, px, py);
  }

  labels() {
    const { design, placement, colours, context } = this;
    context.font = FONT;
    for (const node of design.of[HARD]) {
      if (!placement.placed[node]) continue;
      const [left, low, width, height] = this.box(node);
      if (!this.viewport.sees(left, low, left + width, low + height)) continue;
      const [px, py, wide, tall] = this.rectangle(left, low, width, height);
      if (wide < 46 || tall < LABEL + 5) continue;
      const lines = [shortened(context, design.label(node), wide - 8)];
      const size = `${width.toFixed(1)} × ${height.toFixed(1)} µm`;
      if (tall > 2 * LABEL + 10 && context.measureText(size).width < wide - 8) lines.push(size);
      lines.forEach((line, number) => {
        this.text(line, px + wide / 2, py + tall / 2 + LABEL * (0.35 + 1.15 * (number - (lines.length - 1) / 2)), colours.label, "center");
      });
    }
  }

  band([px, py, qx, qy]) {
    const { context, colours } = this;
    context.setLineDash([4, 3]);
    context.strokeStyle = colours.accent;
    context.lineWidth = 1;
    context.strokeRect(Math.min(px, qx), Math.min(py, qy), Math.abs(qx - px), Math.abs(qy - py));
    context.setLineDash([]);
  }

  ruler([[ax, ay], [bx, by]]) {
    const { context, colours, viewport } = this;
    const [px, py] = viewport.toScreen(ax, ay), [qx, qy] = viewport.toScreen(bx, by);
    context.beginPath();
    context.moveTo(px, py);
    context.lineTo(qx, qy);
    context.strokeStyle = colours.illegal;
    context.lineWidth = 1.5;
    context.stroke();
    const text = `${micrometres(Math.hypot(bx - ax, by - ay))}  (Δx ${micrometres(bx - ax)}, Δy ${micrometres(by - ay)})`;
    this.plate(text, Math.min((px + qx) / 2 + 8, viewport.width - 260), (py + qy) / 2 - 8);
  }

  plate(text, px, py) {
    const { context, colours } = this;
    context.font = FONT;
    context.fillStyle = colours.paper;
    context.globalAlpha = 0.85 * this.base;
    context.fillRect(px - 4, py - LABEL - 1, context.measureText(text).width + 8, LABEL + 7);
    context.globalAlpha = this.base;
    this.text(text, px, py + 1, colours.ink);
  }

  scaleBar() {
    const { context, colours, viewport } = this;
    const length = roundLength(120 / viewport.scale), wide = length * viewport.scale, py = viewport.height - 14;
    this.plate(micrometres(length, 6), 18 + wide, py + 4);
    context.strokeStyle = colours.ink;
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(12, py - 4);
    context.lineTo(12, py);
    context.lineTo(12 + wide, py);
    context.lineTo(12 + wide, py - 4);
    context.stroke();
  }
}

// A name's end, which tells it from others, as wide as there is room.
export function shortened(context, name, wide) {
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
