// What the page knows: the design, the open placements, what is selected and shown. Views listen for "change".

import { constraintsOf, Design, HARD, Placement, PORT, SOFT } from "./data.js";
import { changedNets, flylines, netLengths } from "./flylines.js";

const LAYERS = { hard: true, soft: true, ports: true, cells: false, labels: true, halos: true, lines: true, gcells: false,
  blockages: true, regions: true, slack: true, paths: true };

export class Model extends EventTarget {
  constructor(values) {
    super();
    this.title = values.title;
    this.folder = values.folder;
    this.actions = values.actions ?? [];
    this.running = values.running ?? {};
    this.files = values.files ?? {};
    this.hasCells = values.has_cells ?? false;
    this.hasTiming = values.has_timing ?? false;
    this.timed = false; // whether the timing of the placement is shown
    this.untimed = null; // why the placement could not be timed while a macro was dragged
    this.timing = null; // of the placement that is worked on: {worst, tns, endpoints, failing, histogram, paths, macros}
    this.cells = null; // of the flat netlist: {x, y, width, height, source}
    this.exports = values.exports ?? [];
    this.constraintsPath = values.constraints_path ?? "";
    this.design = new Design(values.design);
    this.layers = { ...LAYERS };
    this.active = values.run?.sessions.at(-1) ?? 0; // of a run, its newest
    this.other = null; // the placement that is compared with
    this.mode = "lines";
    this.fade = 0;
    this.chosen = new Set();
    this.lines = [];
    this.mapName = "";
    this.map = null;
    this.renew(values);
  }

  // Takes over all placements from the server.
  renew(values) {
    this.run = values.run ?? null;
    this.sessions = values.sessions.map(session);
    this.show(Math.min(this.active, this.sessions.length - 1));
    this.drag = null;
    this.changes = [];
    this.refresh();
  }

  // Makes a placement the one that is worked on.
  show(index) {
    this.active = index;
    this.untimed = null;
    this.design.constrain(this.session.constraints);
  }

  get session() {
    return this.sessions[this.active];
  }

  get placement() {
    return this.session.placement;
  }

  get faults() {
    return new Map(Object.entries(this.drag?.faults ?? this.session.state.faults).map(([node, why]) => [Number(node), why]));
  }

  get costs() {
    return this.drag?.costs ?? this.session.state.costs;
  }

  refresh() {
    this.dispatchEvent(new Event("change"));
  }

  choose(nodes, { more = false } = {}) {
    if (!more) this.chosen.clear();
    for (const node of nodes) {
      if (more && this.chosen.has(node)) this.chosen.delete(node);
      else this.chosen.add(node);
    }
    this.lines = flylines(this.design, this.chosen);
    this.refresh();
  }

  // The selected nodes that can be moved.
  movable() {
    return [...this.chosen].filter((node) => this.canMove(node));
  }

  macros() {
    return [...this.chosen].filter((node) => this.design.kind[node] === HARD || this.design.kind[node] === SOFT);
  }

  canMove(node) {
    const kind = this.design.kind[node];
    return (kind === HARD || kind === SOFT) && !this.placement.fixed[node];
  }

  // The node at a position, µm: hard macros before soft ones before ports, the smallest first.
  at(x, y, near) {
    const { design, placement } = this;
    const found = (kind, reach) => {
      let best = -1, least = Infinity;
      for (const node of design.of[kind]) {
        const [width, height] = placement.sides(design, node);
        if (Math.abs(placement.x[node] - x) > width / 2 + reach || Math.abs(placement.y[node] - y) > height / 2 + reach) continue;
        if (width * height < least) [best, least] = [node, width * height];
      }
      return best;
    };
    const layers = [[PORT, this.layers.ports, near], [HARD, this.layers.hard, 0], [SOFT, this.layers.soft, 0]];
    for (const [kind, shown, reach] of layers) {
      const node = shown ? found(kind, reach) : -1;
      if (node >= 0) return node;
    }
    return -1;
  }

  inside(left, low, right, high) {
    const { design, placement } = this;
    const shown = [[HARD, this.layers.hard], [SOFT, this.layers.soft && !this.layers.hard]];
    return shown.flatMap(([kind, seen]) => (seen ? [...design.of[kind]] : [])).filter((node) => {
      const [width, height] = placement.sides(design, node);
      return placement.x[node] - width / 2 >= left && placement.x[node] + width / 2 <= right
        && placement.y[node] - height / 2 >= low && placement.y[node] + height / 2 <= high;
    });
  }

  beginDrag(nodes) {
    const { placement } = this;
    const start = new Map(nodes.map((node) => [node, [placement.x[node], placement.y[node]]]));
    const lengths = netLengths(this.design, placement, nodes, (node) => [placement.x[node], placement.y[node]]);
    this.drag = { nodes, start, lengths, costs: null, faults: null, moved: false };
  }

  dragTo(places) {
    const { placement, drag } = this;
    drag.moved = true;
    drag.nodes.forEach((node, at) => [placement.x[node], placement.y[node]] = places[at]);
    const lengths = netLengths(this.design, placement, drag.nodes, (node) => [placement.x[node], placement.y[node]]);
    this.changes = changedNets(this.design, drag.lengths, lengths);
    this.refresh();
  }

  // Ends a drag; `back`: the macros return.
  endDrag({ back }) {
    if (back && this.drag) {
      for (const [node, [x, y]] of this.drag.start) [this.placement.x[node], this.placement.y[node]] = [x, y];
    }
    this.drag = null;
    this.changes = [];
    this.refresh();
  }

  take(event) {
    const session = this.sessions[event.session];
    if (!session) return;
    if (event.placement) session.placement = new Placement(event.placement);
    if (event.places) session.placement.put(event.places);
    if (event.state) session.state = event.state;
    if (event.constraints) {
      session.constraints = constraintsOf(event.constraints);
      this.show(this.active);
    }
    if (event.file) this.files[event.session] = event.file;
    this.refresh();
  }

  // Placements that the run came to.
  open({ run, opened }) {
    this.run = run;
    this.sessions.push(...opened.map(session));
    this.refresh();
  }

  // Macros at another position, or in another orientation, in the placement that is compared with.
  movedNodes() {
    const other = this.sessions[this.other]?.placement, { placement, design } = this;
    if (!other) return [];
    return [...design.of[HARD], ...(this.layers.soft ? design.of[SOFT] : [])].filter((node) => placement.x[node] !== other.x[node]
      || placement.y[node] !== other.y[node] || placement.orientation[node] !== other.orientation[node]);
  }

  search(text) {
    const pattern = new RegExp(text.split("*").map((part) => part.split("?").map(escaped).join(".")).join(".*"), "i");
    return this.design.names.flatMap((name, node) => (name && pattern.test(name) ? [node] : []));
  }
}

function session({ placement, state, constraints, maps }) {
  return { placement: new Placement(placement), state, constraints: constraintsOf(constraints), maps };
}

function escaped(text) {
  return text.replace(/[.+^${}()|[\]\\]/g, "\\$&");
}
