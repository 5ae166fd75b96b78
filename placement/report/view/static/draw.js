// Paints one placement onto a canvas.

import { CELL, HARD, PORT, SOFT, TURN } from "./data.js";
import { paintCells, pixelsOf } from "./cells.js";
import { FONT, LABEL, paintLabels } from "./labels.js";
import { haloOf } from "./snap.js";
import { paintMap, paintScale } from "./maps.js";
import { paintPaths, slackColour } from "./timing.js";
import { micrometres, roundLength } from "./viewport.js";

const PORT_SIZE = 3.5; // pixels
const REST = 120; // ms without a move after which the view rests, at least

export class Painter {
  // `redraw` requests another picture once the view rests.
  constructor(context, design, viewport, colours, redraw = () => {}) {
    Object.assign(this, { context, design, viewport, colours, redraw });
  }

  // shown: {placement, layers, chosen: Set, faults: Map, lines, changes, map, timing, hover, band, ruler, ghost, links, drag}
  // While macros are dragged, everything that rests is painted once and kept.
  paint(shown) {
    const { context, viewport, colours } = this;
    this.shown = shown;
    this.placement = shown.placement;
    this.base = shown.fade ?? 1; // opacity of everything, where this placement is painted over another one
    this.moving = new Set(shown.drag?.nodes);
    context.globalAlpha = this.base;
    if (shown.drag && !context.isVector) context.drawImage(this.resting(), 0, 0, viewport.width, viewport.height);
    else this.below();
    context.globalAlpha = this.base * (shown.map ? 0.35 : 1);
    if (shown.drag) this.drawMacros(shown.drag.nodes);
    context.globalAlpha = this.base;
    this.outlines();
    if (shown.ghost) this.ghosts(shown.ghost);
    if (shown.layers.lines) this.lines(shown.lines);
    if (shown.layers.paths && shown.timing) paintPaths(this, shown.timing);
    this.changed(shown.changes);
    if (shown.layers.hard && shown.layers.labels) paintLabels(this);
    if (shown.band) this.band(shown.band);
    if (shown.ruler) this.ruler(shown.ruler);
    if (shown.map) paintScale(this, shown.map);
    this.scaleBar();
  }

  // Everything below the macros that are dragged.
  below() {
    const { context, viewport, colours, shown } = this;
    context.fillStyle = colours.paper;
    context.fillRect(0, 0, viewport.width, viewport.height);
    this.ground();
    if (shown.map) paintMap(this, shown.map);
    if (shown.layers.blockages) this.rectangles(this.design.blockages, colours.blockage, "blockage");
    if (shown.layers.regions) for (const one of this.design.regions) this.rectangles(one.rectangles, colours.region, one.name);
    if (shown.layers.cells) this.cells();
    const still = (kind) => this.design.of[kind].filter((node) => !this.moving.has(node));
    context.globalAlpha = this.base * (shown.map || (shown.layers.cells && shown.cells) ? 0.35 : 1);
    if (shown.layers.soft) this.drawMacros(still(SOFT));
    context.globalAlpha = this.base * (shown.map ? 0.35 : 1);
    if (shown.layers.hard) this.drawMacros(still(HARD));
    context.globalAlpha = this.base;
    if (shown.layers.ports) this.ports();
  }

  // A picture of what rests during a drag, redrawn when the view changes.
  resting() {
    const { context, viewport, shown } = this, { width, height } = context.canvas, { scale, left, top } = viewport;
    const key = JSON.stringify([scale, left, top, width, height, shown.layers, shown.map?.name, this.colours.paper, Boolean(shown.cells), shown.layers.slack && shown.timing?.macros]);
    if (this.rest?.drag === shown.drag && this.rest.key === key) return this.rest.picture;
    const picture = new OffscreenCanvas(width, height);
    this.context = picture.getContext("2d", { alpha: false });
    this.context.setTransform(context.getTransform());
    this.below();
    this.context = context;
    this.rest = { drag: shown.drag, key, picture };
    return picture;
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

  drawMacros(nodes) {
    const { context, colours, placement, design, shown } = this;
    context.lineWidth = 1;
    for (const node of nodes) {
      if (!placement.placed[node]) continue;
      const [left, low, width, height] = this.box(node), hard = design.kind[node] === HARD;
      if (!this.viewport.sees(left, low, left + width, low + height)) continue;
      const place = this.rectangle(left, low, width, height);
      const look = !hard ? "soft" : placement.fixed[node] ? "fixed" : "hard";
      context.fillStyle = (hard && shown.layers.slack && shown.timing && slackColour(colours, shown.timing, node)) || colours[look];
      context.fillRect(...place);
      context.strokeStyle = colours[`${look}-edge`];
      if (place[2] > 2) context.strokeRect(...place);
      if (hard && place[2] > 8) this.mark(node, place, colours[`${look}-edge`]);
      if (hard && shown.layers.halos) this.halo(node, left, low, width, height);
    }
  }

  // The selection, and what is not legal.
  outlines() {
    const { shown, design, placement } = this, layer = { [HARD]: shown.layers.hard, [SOFT]: shown.layers.soft };
    for (const node of new Set([...shown.faults.keys(), ...shown.chosen])) {
      if (!layer[design.kind[node]] || !placement.placed[node]) continue;
      const [left, low, width, height] = this.box(node);
      if (this.viewport.sees(left, low, left + width, low + height)) this.outline(node, this.rectangle(left, low, width, height));
    }
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
    const [before, below, after, above] = [0, 1, 2, 3].map((side) => haloOf(this.design, this.placement, node, side));
    if (!(before || below || after || above)) return;
    context.save();
    context.setLineDash([4, 3]);
    context.strokeStyle = colours.halo;
    context.strokeRect(...this.rectangle(left - before, low - below, width + before + after, height + below + above));
    context.restore();
  }

  // Those of the flat netlist, and the design's own.
  cells() {
    const { design, placement, shown } = this, nodes = design.of[CELL], { x, y } = placement, { width, height } = design;
    if (shown.cells) this.flat = this.scattered(this.flat, shown.cells, shown.cells.x.length, (at) => at);
    if (nodes.length) this.own = this.scattered(this.own, { x, y, width, height }, nodes.length, (at) => nodes[at]);
  }

  // Paints many cells by a picture of them, and gives the picture back. While the view moves, the picture moves with it;
  // a new one is made once the view rests.
  scattered(known, cells, count, index) {
    const { context, viewport, colours } = this, { scale, left, top, width, height } = viewport;
    if (context.isVector) {
      paintCells(this, cells, count, index);
      return known;
    }
    const same = known && known.x === cells.x && known.tint === colours.cell && known.picture.width === context.canvas.width && known.picture.height === context.canvas.height;
    const zoom = same ? scale / known.scale : 0, px = same ? (known.left - left) * scale : 0, py = same ? (top - known.top) * scale : 0;
    const near = zoom > 0.5 && zoom < 2 && Math.abs(px) < width / 2 && Math.abs(py) < height / 2, moved = zoom !== 1 || px !== 0 || py !== 0;
    clearTimeout(this.rests);
    if (same && (!moved || (near && !this.rested))) {
      context.imageSmoothingEnabled = false; // smoothing takes several times as long, and the view soon rests
      context.drawImage(known.picture, px, py, width * zoom, height * zoom);
      context.imageSmoothingEnabled = true;
      // A slow machine's frames are longer than the rest: what took long to make waits for longer.
      if (moved) this.rests = setTimeout(() => { this.rested = true; this.redraw(); }, REST + 2 * known.took);
      return known;
    }
    this.rested = false;
    const begun = performance.now(), made = pixelsOf(this, cells, count, index, same ? known : null);
    context.drawImage(made.picture, 0, 0, width, height);
    return { ...made, x: cells.x, tint: colours.cell, scale, left, top, took: performance.now() - begun };
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
