// Pointer and wheel on the canvases: select, drag, pan, zoom, measure.

import { HARD, PORT, SOFT } from "./data.js";
import { micrometres } from "./viewport.js";

const NEAR = 6, ATTRACTS = 7, BEGIN = 3; // pixels

export class Pointer {
  // stage: {model, mover, viewport, redraw, status}; `mover` is null where nothing can be moved.
  constructor(canvas, stage) {
    Object.assign(this, { canvas, ...stage });
    this.gesture = null;
    this.tool = "choose"; // or "measure", or one that draws a rectangle: {draw: callback}
    this.band = null;
    this.ruler = null;
    canvas.addEventListener("pointerdown", (event) => this.down(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.up(event));
    canvas.addEventListener("pointercancel", () => this.cancel());
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
    canvas.addEventListener("dblclick", () => this.frame());
  }

  at(event) {
    const place = this.canvas.getBoundingClientRect();
    return [event.clientX - place.left, event.clientY - place.top];
  }

  down(event) {
    this.canvas.focus({ preventScroll: true });
    this.canvas.setPointerCapture(event.pointerId);
    const [px, py] = this.at(event), world = this.viewport.toWorld(px, py);
    const gesture = { px, py, world, last: [px, py] };
    if (event.button !== 0 || event.altKey) this.gesture = { ...gesture, kind: "pan" };
    else if (this.tool === "measure") {
      this.ruler = [world, world];
      this.gesture = { ...gesture, kind: "measure" };
    } else if (this.tool.draw) this.gesture = { ...gesture, kind: "draw" };
    else this.choose(event, gesture);
    this.redraw();
  }

  choose(event, gesture) {
    const { model } = this, node = model.at(...gesture.world, NEAR / this.viewport.scale);
    if (node < 0) {
      if (!event.shiftKey) model.choose([]);
      this.gesture = { ...gesture, kind: event.shiftKey ? "band" : "pan" };
      return;
    }
    if (event.shiftKey || event.ctrlKey || event.metaKey) model.choose([node], { more: true });
    else if (!model.chosen.has(node)) model.choose([node]);
    const can = this.mover && model.canMove(node) && model.chosen.has(node);
    this.gesture = { ...gesture, kind: can ? "drag" : "none", node };
  }

  move(event) {
    const [px, py] = this.at(event), world = this.viewport.toWorld(px, py), { gesture } = this;
    this.status.pointer(world, gesture ? -1 : this.model.at(...world, NEAR / this.viewport.scale));
    if (!gesture) return;
    if (gesture.kind === "pan") this.viewport.pan(px - gesture.last[0], py - gesture.last[1]);
    if (gesture.kind === "measure") this.ruler = [gesture.world, world];
    if (gesture.kind === "band" || gesture.kind === "draw") this.band = [gesture.px, gesture.py, px, py];
    if (gesture.kind === "drag") this.drag(event, gesture, px, py, world);
    gesture.last = [px, py];
    this.redraw();
  }

  drag(event, gesture, px, py, world) {
    const { model, mover } = this;
    if (!gesture.began) {
      if (Math.hypot(px - gesture.px, py - gesture.py) < BEGIN) return;
      gesture.began = true;
      const nodes = [gesture.node, ...model.movable().filter((node) => node !== gesture.node)];
      mover.begin(nodes);
    }
    if (!model.drag) return; // it was cancelled
    const offset = [world[0] - gesture.world[0], world[1] - gesture.world[1]];
    mover.to(offset, ATTRACTS / this.viewport.scale, event.ctrlKey || event.metaKey);
    const [dx, dy] = offset;
    this.status.tell(`moved by Δx ${micrometres(dx)}, Δy ${micrometres(dy)}; Ctrl: without snapping, Esc: cancel`);
  }

  up() {
    const { gesture } = this;
    this.gesture = null;
    if (gesture?.kind === "drag" && gesture.began) this.mover.drop();
    if (this.band && (gesture?.kind === "band" || gesture?.kind === "draw")) {
      const [ax, ay] = this.viewport.toWorld(this.band[0], this.band[1]), [bx, by] = this.viewport.toWorld(this.band[2], this.band[3]);
      const corners = [Math.min(ax, bx), Math.min(ay, by), Math.max(ax, bx), Math.max(ay, by)];
      if (gesture.kind === "band") this.model.choose(this.model.inside(...corners), { more: true });
      else this.tool.draw(corners);
    }
    this.band = null;
    this.redraw();
  }

  cancel() {
    const dragged = this.gesture?.kind === "drag" && this.gesture.began;
    this.gesture = this.band = this.ruler = null;
    this.tool = "choose";
    if (dragged) this.mover.cancel();
    this.redraw();
  }

  wheel(event) {
    event.preventDefault();
    const [px, py] = this.at(event);
    if (event.shiftKey) this.viewport.pan(-event.deltaY, 0);
    else this.viewport.zoomAt(px, py, Math.exp(-event.deltaY * (event.deltaMode === 1 ? 0.05 : 0.0015)));
    this.redraw();
  }

  // Shows what is selected, or everything: the canvas, and macros and ports outside of it.
  frame() {
    const { model, viewport } = this, { canvas, of } = model.design;
    const chosen = model.chosen.size > 0, nodes = chosen ? model.chosen : [HARD, SOFT, PORT].flatMap((kind) => [...of[kind]]);
    let [left, low, right, high] = chosen ? [Infinity, Infinity, -Infinity, -Infinity] : [0, 0, canvas.width, canvas.height];
    for (const node of nodes) {
      const [width, height] = model.placement.sides(model.design, node), x = model.placement.x[node], y = model.placement.y[node];
      const [across, up] = chosen ? [1.5 * width + 1, 1.5 * height + 1] : [width / 2, height / 2];
      left = Math.min(left, x - across); right = Math.max(right, x + across);
      low = Math.min(low, y - up); high = Math.max(high, y + up);
    }
    viewport.fit(left, low, right, high);
    this.redraw();
  }
}
