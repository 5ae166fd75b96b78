// Dragging: the macro follows the pointer at once; its exact cost comes from the server, one request at a time.

import { snapped } from "./snap.js";

export class Mover {
  constructor(model, link, tell) {
    Object.assign(this, { model, link, tell });
    this.snap = { grid: true, neighbours: true, tracks: null }; // tracks: the grid of the routing tracks
    this.waiting = null; // positions that the server has not been sent yet
    this.asking = null;
    this.priced = []; // when the pointer reached the positions whose costs the next picture shows
    this.delays = []; // ms from the pointer to the cost on the page, for those who measure
  }

  begin(nodes) {
    this.model.beginDrag(nodes);
    this.delays.length = 0;
  }

  // A picture with the newest costs is there.
  painted() {
    for (const since of this.priced.splice(0)) this.delays.push(performance.now() - since);
  }

  // `offset`: µm that the pointer has moved since the drag began; `near`: µm within which edges attract; `free`: no snapping.
  to(offset, near, free) {
    const { model } = this, { drag, design, placement } = model;
    const [first] = drag.nodes, start = drag.start.get(first);
    const goal = [start[0] + offset[0], start[1] + offset[1]];
    const place = free ? goal : snapped(design, placement, first, goal, drag.nodes.length > 1 ? { ...this.snap, neighbours: false } : this.snap, near);
    const dx = place[0] - start[0], dy = place[1] - start[1];
    model.dragTo(drag.nodes.map((node) => [drag.start.get(node)[0] + dx, drag.start.get(node)[1] + dy]));
    this.waiting = { since: performance.now() };
    this.asking ??= this.pump();
  }

  // Sends the newest position until there is no newer one.
  async pump() {
    try {
      while (this.waiting && this.model.drag) {
        const { since } = this.waiting, { drag, placement } = this.model;
        this.waiting = null;
        const { nodes } = drag;
        const answer = await this.link.ask("drag", { session: this.model.active, nodes, x: nodes.map((node) => placement.x[node]),
          y: nodes.map((node) => placement.y[node]), timing: this.model.timed });
        if (this.model.drag !== drag) return;
        drag.costs = answer.costs;
        drag.faults = answer.faults;
        if (answer.timing) this.model.timing = answer.timing;
        if (answer.timing_error) Object.assign(this.model, { timed: false, timing: null, untimed: answer.timing_error });
        this.model.refresh();
        this.priced.push(since);
      }
    } catch (error) {
      this.tell(error.message, true);
      this.model.endDrag({ back: true });
      if (this.link.isOpen) this.link.ask("let_go").catch((failure) => this.tell(failure.message, true));
    } finally {
      this.asking = null;
    }
  }

  async drop() {
    await this.asking;
    if (!this.model.drag) return;
    if (!this.model.drag.moved) {
      this.model.endDrag({ back: true });
      return;
    }
    try {
      await this.link.ask("drop", { session: this.model.active });
      this.model.endDrag({ back: false });
    } catch (error) {
      this.tell(error.message, true);
      this.model.endDrag({ back: true });
    }
  }

  async cancel() {
    this.waiting = null;
    this.model.endDrag({ back: true });
    await this.asking;
    if (this.link.isOpen) await this.link.ask("let_go").catch((error) => this.tell(error.message, true));
  }
}
