// The keyboard, and the list of its keys.

import { element } from "./dom.js";

export const KEYS = [
  ["drag", "moves macros; on an empty area: moves the view"], ["wheel", "zooms; Shift-wheel moves the view sideways"],
  ["Shift click, Shift drag", "adds to the selection"], ["right or Alt drag", "moves the view"], ["arrows", "move the view; with Shift: nudge the selection by 1 µm"],
  ["+ − f", "zoom in, zoom out, show everything or the selection"], ["Ctrl-z, Ctrl-Shift-z", "undo, redo"], ["Ctrl-s", "save"],
  ["r R x y", "turn right, turn left, mirror left to right, mirror upside down"], ["s l u", "swap two, fix, release"],
  ["Alt-arrows, Alt-c C", "align left, right, upper or lower edges; middles on a vertical or horizontal line"], ["h v", "equal gaps, horizontal or vertical"],
  ["m", "measure: drag from one point to another"], ["/", "find by name"], ["d", "dark or light"], ["Esc", "cancels a drag; clears the selection"], ["?", "this list"],
];

const STEP = 60; // pixels

export function listenToKeys(app) {
  const plain = {
    "+": () => app.zoom(1.25), "=": () => app.zoom(1.25), "-": () => app.zoom(0.8), f: () => app.frame(), m: () => app.measure(),
    "/": () => document.getElementById("search").focus(), d: () => app.toggleTheme(), "?": () => showKeys(),
    Escape: () => app.escape(), ...(app.editable ? {
      r: () => app.edit("turn", "right"), R: () => app.edit("turn", "left"), x: () => app.edit("turn", "mirror_x"), y: () => app.edit("turn", "mirror_y"),
      h: () => app.edit("distribute", "x"), v: () => app.edit("distribute", "y"), s: () => app.edit("swap"), l: () => app.edit("fix"), u: () => app.edit("release") } : {}),
  };
  const arrows = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
  const aligned = { ArrowLeft: "left", ArrowRight: "right", ArrowUp: "top", ArrowDown: "bottom", c: "centre_x", C: "centre_y" };
  addEventListener("keydown", (event) => {
    if (event.target.matches("input, select, textarea") || document.getElementById("dialog").open) return;
    const control = event.ctrlKey || event.metaKey;
    let work = null;
    if (control && event.key.toLowerCase() === "z" && app.editable) work = event.shiftKey ? app.redo : app.undo;
    else if (control && event.key.toLowerCase() === "s" && app.editable) work = app.save;
    else if (!control && event.altKey && app.editable && aligned[event.key]) work = () => app.edit("align", aligned[event.key]);
    else if (!control && !event.altKey && arrows[event.key]) {
      const [across, up] = arrows[event.key];
      work = event.shiftKey && app.editable ? () => app.nudge(-across, up) : () => app.pan(STEP * across, STEP * up);
    } else if (!control && !event.altKey) work = plain[event.key];
    if (!work) return;
    event.preventDefault();
    work();
  });
}

export function showKeys() {
  const dialog = document.getElementById("dialog");
  dialog.replaceChildren(element("h2", {}, "Pointer and keys"),
    element("table", { className: "keys" }, ...KEYS.map(([keys, what]) => element("tr", {}, element("td", {}, element("kbd", {}, keys)), element("td", {}, what)))),
    element("form", { method: "dialog" }, element("button", {}, "Close")));
  dialog.showModal();
}
