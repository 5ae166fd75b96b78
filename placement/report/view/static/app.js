// The window: canvases, panels and bar joined, and what buttons and keys do.

import { palette } from "./colours.js";
import { unpacked } from "./data.js";
import { askText, askWhether } from "./dialogs.js";
import { button, download, element, fill } from "./dom.js";
import { Painter } from "./draw.js";
import { listenToKeys, showKeys } from "./keys.js";
import { Mover } from "./mover.js";
import { Panels } from "./panels.js";
import { Pointer } from "./pointer.js";
import { SvgContext } from "./svg.js";
import { Viewport, micrometres } from "./viewport.js";

const ENDINGS = { plc: "-moved.plc", def: ".def", bookshelf: ".pl", csv: ".csv" };
const NUDGE = 1; // µm

export class App {
  constructor(model, link) {
    Object.assign(this, { model, link, editable: link !== null });
    this.canvases = ["first", "second"].map((name) => document.getElementById(name));
    this.viewport = new Viewport();
    this.colours = palette();
    this.setTheme(stored("theme") ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
    this.makeStatus();
    this.mover = link && new Mover(model, link, (text, bad) => this.tell(text, bad));
    const stage = { model, mover: this.mover, viewport: this.viewport, redraw: () => this.redraw(), status: this };
    this.pointers = this.canvases.map((canvas, at) => new Pointer(canvas, at ? { ...stage, mover: null } : stage));
    this.panels = new Panels(document.getElementById("left"), document.getElementById("right"), this);
    this.bar = document.getElementById("bar");
    for (const name of ["undo", "redo", "save"]) this[name] = this[name].bind(this);
    listenToKeys(this);
    model.addEventListener("change", () => (model.drag ? this.redraw() : this.changed()));
    new ResizeObserver(() => this.resize()).observe(document.getElementById("stage"));
    addEventListener("beforeunload", (event) => this.unloading(event));
    document.title = model.title;
    this.resize();
    this.frame();
    this.changed();
  }

  // What the server tells.
  take(event) {
    if (event.event === "changed") {
      if (event.session === this.model.active && this.model.drag && event.places) this.model.endDrag({ back: true });
      this.model.take(event);
      if (event.file) this.panels.actions.draw();
      this.refreshMap();
      this.refreshTiming();
    } else if (event.event === "run") {
      this.panels.run.take(event);
    } else if (event.event === "cells") {
      this.model.cells = null;
      this.wantCells();
    } else if (event.event === "trouble") {
      this.tell(event.text, true);
    } else if (event.event === "job") {
      this.panels.actions.take(event);
    } else if (event.event === "dragged") {
      const { placement } = this.model.sessions[event.session];
      event.nodes.forEach((node, at) => [placement.x[node], placement.y[node]] = [event.x[at], event.y[at]]);
      this.redraw();
    }
  }

  renew(values) {
    this.model.renew(values);
    this.panels.actions.renew(values.running);
    this.refreshMap();
    this.refreshTiming();
    this.tell("connected again");
  }

  broke() {
    if (this.model.drag) this.model.endDrag({ back: true });
    this.tell("The server does not answer; reconnecting. It keeps your changes as long as it runs.", true);
    this.changed();
  }

  clearDrag() {
    if (this.model.drag) this.mover.cancel();
  }

  async act(work) {
    try {
      return await work;
    } catch (error) {
      this.tell(error.message, true);
      return null;
    }
  }

  ask(what, values = {}) {
    return this.act(this.link.ask(what, { session: this.model.active, ...values }));
  }

  edit(what, how = "") {
    const nodes = this.model.macros();
    if (!nodes.length) this.tell("select a macro first", true);
    else this.ask("edit", { what, how, nodes });
  }

  nudge(across, up) {
    const nodes = this.model.movable(), { placement } = this.model;
    if (nodes.length) this.ask("edit", { what: "move", nodes, x: nodes.map((node) => placement.x[node] + NUDGE * across),
      y: nodes.map((node) => placement.y[node] + NUDGE * up) });
  }

  undo() { return this.ask("undo"); }

  redo() { return this.ask("redo"); }

  // Saves to a file; replaces one only if the person agrees.
  async save(form = "plc", name = "") {
    const base = this.model.session.state.name.replace(/\.(plc|def)(\.gz)?$/i, "");
    const suggestion = name || base + (ENDINGS[form] ?? ".tcl");
    const path = await askText(form === "plc" ? "Save the placement" : `Save as ${form}`, `File name (relative to ${this.model.folder}):`, this.saved?.[form] ?? suggestion, "Save");
    if (!path) return;
    let answer = await this.ask("save", { form, path });
    if (answer?.exists) {
      if (!(await askWhether("Replace the file?", `${answer.exists} already exists.`, "Replace"))) return;
      answer = await this.ask("save", { form, path, replace: true });
    }
    if (answer?.path) {
      this.saved = { ...this.saved, [form]: path };
      this.tell(`saved: ${answer.path}`);
    }
  }

  export(select) {
    const form = select.value;
    select.value = "";
    if (form) this.save(form);
  }

  // Gets the cells of the flat netlist once they are to be shown.
  async wantCells() {
    const { model } = this;
    if (!model.layers.cells || !model.hasCells || model.cells) return;
    const values = await this.ask("cells");
    if (!values) return;
    model.cells = Object.fromEntries(["x", "y", "width", "height"].map((name) => [name, unpacked(values[name])]));
    this.tell(`${model.cells.x.length.toLocaleString("en")} standard cells, ${values.source}`);
    this.redraw();
  }

  async setMap(name) {
    this.model.mapName = name;
    await this.refreshMap();
    this.redraw();
  }

  async refreshMap() {
    const { model } = this;
    if (!model.mapName) {
      model.map = null;
      return;
    }
    const maps = this.link ? await this.ask("maps") : model.session.maps;
    if (maps) model.map = { name: model.mapName, values: unpacked(maps[model.mapName]) };
    this.redraw();
  }

  async refreshTiming() {
    const { model } = this;
    if (!model.timed && !model.timing) return;
    const { active } = model, timing = model.timed ? await this.ask("timing") : null;
    if (active !== model.active || model.drag?.moved) return; // what is newer comes
    if (!timing) model.timed = false; // it cannot be timed, as the message says
    model.timing = timing;
    model.refresh();
  }

  changed() {
    const { state } = this.model.session, { editable, link } = this;
    const open = !editable || link.isOpen;
    const choice = this.model.sessions.length < 2 ? null : element("select", { ariaLabel: "placement", onchange: (event) => this.show(Number(event.target.value)) },
      ...this.model.sessions.map((one, at) => element("option", { value: at, selected: at === this.model.active }, one.state.name)));
    fill(this.bar, element("h1", { title: this.model.title }, this.model.title), choice ?? element("span", { className: "muted" }, state.name),
      editable && !state.is_saved ? element("span", { id: "unsaved", className: "bad" }, "not saved") : null, element("span", { className: "space" }),
      editable && this.model.exports.length ? element("select", { ariaLabel: "export", id: "export", disabled: !open, onchange: (event) => this.export(event.target) },
        element("option", { value: "" }, "Export…"), ...this.model.exports.map((form) => element("option", {}, form))) : null,
      ...(editable ? [
        button("Undo", "Ctrl-z", this.undo, { disabled: !open || !state.steps.length }), button("Redo", "Ctrl-Shift-z", this.redo, { disabled: !open || !state.undone.length }),
        button("Save…", "Ctrl-s", () => this.save(), { disabled: !open, className: "main" })] : []),
      button("PNG", "the view as a picture", () => this.picture()), button("SVG", "the view as a drawing", () => this.drawing()), button("Measure", "m", () => this.measure(), { ariaPressed: String(this.pointers[0].tool === "measure") }),
      button("Fit", "show everything, or the selection (f)", () => this.frame()), button("Dark / light", "d", () => this.toggleTheme()), button("?", "pointer and keys", showKeys));
    this.redraw();
  }

  show(index) {
    this.model.show(index);
    if (this.model.other === index) this.model.other = null;
    this.panels.actions?.draw();
    this.panels.run?.draw();
    this.model.choose([...this.model.chosen]);
    this.refreshMap();
    this.refreshTiming();
  }

  // What the comparison shows has changed.
  compared() {
    const sides = this.model.other !== null && this.model.mode === "sides";
    this.canvases[1].hidden = !sides;
    this.model.refresh();
    this.resize();
    this.frame();
  }

  // Has the person draw a rectangle, µm: [left, low, right, high]; once more ends it.
  draw(name, hint, done) {
    const [pointer] = this.pointers, off = pointer.tool.name === name;
    pointer.tool = off ? "choose" : { name, draw: (corners) => { pointer.tool = "choose"; this.changed(); this.panels.update(); done(corners); } };
    this.tell(off ? "" : `${hint}; Esc ends drawing`);
    this.panels.update();
  }

  picture() {
    this.canvases[0].toBlob((blob) => download(`${this.model.design.name}.png`, "image/png", blob));
  }

  drawing() {
    const { width, height } = this.viewport, context = new SvgContext(width, height, this.canvases[0].getContext("2d"));
    new Painter(context, this.model.design, this.viewport, this.colours).paint(this.shown());
    download(`${this.model.design.name}.svg`, "image/svg+xml", context.text());
  }

  measure() {
    const on = this.pointers[0].tool !== "measure";
    for (const pointer of this.pointers) [pointer.tool, pointer.ruler] = [on ? "measure" : "choose", null];
    this.tell(on ? "drag from one point to another; m or Esc ends measuring" : "");
    this.changed();
  }

  escape() {
    const busy = this.pointers.some((pointer) => pointer.gesture || pointer.tool !== "choose");
    for (const pointer of this.pointers) pointer.cancel();
    if (!busy) this.model.choose([]);
    this.changed();
  }

  zoom(factor) {
    this.viewport.zoomAt(this.viewport.width / 2, this.viewport.height / 2, factor);
    this.redraw();
  }

  pan(across, up) {
    this.viewport.pan(across, up);
    this.redraw();
  }

  frame() { this.pointers[0].frame(); }

  setTheme(theme) {
    document.documentElement.dataset.theme = theme;
    keep("theme", theme);
  }

  toggleTheme() {
    this.setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    this.redraw();
  }

  makeStatus() {
    this.place = element("span", { id: "place" }, "x –, y – µm");
    this.under = element("span", { id: "under", className: "muted" });
    this.message = element("span", { className: "message", id: "message", role: "status" });
    fill(document.getElementById("status"), this.place, this.message, this.under);
  }

  pointer([x, y], node) {
    this.place.textContent = `x ${x.toFixed(2)}, y ${y.toFixed(2)} µm`;
    const { design, placement } = this.model;
    if (node < 0) this.under.textContent = "";
    else {
      const [width, height] = placement.sides(design, node);
      const size = width ? `, ${micrometres(width)} × ${micrometres(height)}` : "";
      this.under.textContent = `${design.names[node]} (${design.kinds[design.kind[node]]}${size})`;
    }
  }

  tell(text, bad = false) {
    this.message.textContent = text;
    this.message.classList.toggle("bad", bad);
  }

  unloading(event) {
    if (this.editable && !this.link.isOpen && !this.model.session.state.is_saved) event.preventDefault();
  }

  resize() {
    for (const canvas of this.canvases) {
      if (canvas.hidden) continue;
      const ratio = devicePixelRatio || 1;
      [canvas.width, canvas.height] = [Math.round(canvas.clientWidth * ratio), Math.round(canvas.clientHeight * ratio)];
      canvas.getContext("2d", { alpha: false }).setTransform(ratio, 0, 0, ratio, 0, 0);
    }
    this.viewport.resize(this.canvases[0].clientWidth, this.canvases[0].clientHeight);
    this.paint();
  }

  redraw() {
    this.frameAsked ??= requestAnimationFrame(() => this.paint());
  }

  // What the first canvas shows.
  shown() {
    const { model } = this, other = model.sessions[model.other], [pointer] = this.pointers;
    const ghost = other && model.mode === "lines" ? { placement: other.placement, nodes: model.movedNodes() } : null;
    return { layers: model.layers, chosen: model.chosen, lines: model.lines, map: model.map, cells: model.cells, timing: model.timing, placement: model.placement, faults: model.faults,
      changes: model.changes, drag: model.drag?.moved ? model.drag : null, band: pointer.band, ruler: pointer.ruler, ghost };
  }

  paint() {
    this.frameAsked = undefined;
    if (this.model.drag) this.panels?.update();
    const { model } = this, [first] = this.canvases, pointer = this.pointers?.[0];
    if (!pointer) return;
    this.painter ??= new Painter(first.getContext("2d"), model.design, this.viewport, this.colours, () => this.redraw());
    const shown = { layers: model.layers, chosen: model.chosen, lines: model.lines, map: model.map, cells: model.cells, changes: [] };
    const other = model.sessions[model.other], fade = other && model.mode === "fade" ? model.fade : 0;
    this.painter.paint(this.shown());
    if (fade) this.painter.paint({ ...shown, placement: other.placement, faults: faultsOf(other), fade });
    if (other && model.mode === "sides") {
      this.second ??= new Painter(this.canvases[1].getContext("2d"), model.design, this.viewport, this.colours, () => this.redraw());
      this.second.paint({ ...shown, map: null, placement: other.placement, faults: faultsOf(other), band: this.pointers[1].band, ruler: this.pointers[1].ruler });
    }
    if (!this.painted) performance.mark("painted");
    this.painted = true;
    this.mover?.painted();
  }
}

function faultsOf(session) {
  return new Map(Object.entries(session.state.faults).map(([node, why]) => [Number(node), why]));
}

function stored(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null; // a page from a file may have no storage
  }
}

function keep(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch {
    // nothing is kept then
  }
}
