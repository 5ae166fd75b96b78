// Buttons that have something done: legalise, refine, flip and so on, with progress, and keep or discard.

import { button, element, fill } from "./dom.js";

export class Doing {
  constructor(parent, app) {
    Object.assign(this, { parent, app, model: app.model });
    this.jobs = new Map(); // by session: the last event
    this.values = {};
    for (const [index, name] of Object.entries(this.model.running)) {
      const action = this.model.actions.find((one) => one.name === name);
      this.jobs.set(Number(index), { state: "running", name, title: action.title, progress: 0, text: "" });
    }
    this.draw();
  }

  take(event) {
    this.jobs.set(event.session, event);
    if (event.session === this.model.active) this.app.clearDrag();
    this.draw();
  }

  // Forgets jobs that ended while the line was broken.
  renew(running) {
    for (const [index, job] of this.jobs) if (job.state === "running" && !(index in running)) this.jobs.delete(index);
    this.draw();
  }

  draw() {
    if (!this.model.actions.length) return;
    const job = this.jobs.get(this.model.active), busy = job?.state === "running";
    fill(this.parent, element("h2", {}, "Do"), ...this.model.actions.map((action) => this.row(action, busy)), job ? this.outcome(job) : null);
  }

  row(action, busy) {
    const values = (this.values[action.name] ??= Object.fromEntries(action.parameters.map((one) => [one.name, one.default])));
    const line = element("code", {}), show = () => { line.textContent = this.line(action, values); };
    const inputs = action.parameters.map((one) => {
      const text = typeof one.default === "string", kind = text ? { type: "text", placeholder: one.title, ariaLabel: one.title } : { type: "number", min: one.least, max: one.most, step: "any" };
      return element("label", {}, text ? "" : `${one.title} `, element("input", { ...kind, value: values[one.name], name: `${action.name}-${one.name}`,
        oninput: ({ target }) => { values[one.name] = text ? target.value : Number(target.value); show(); } }));
    });
    show();
    const copy = button("copy", "copies the command line", () => navigator.clipboard.writeText(line.textContent).then(
      () => this.app.tell("command line copied"), (error) => this.app.tell(error.message, true)));
    return element("details", { open: this.open === action.name, ontoggle: (event) => { if (event.target.open) this.open = action.name; } },
      element("summary", { className: "row" }, button(action.title, action.hint, (event) => { event.preventDefault(); this.start(action, values); }, { disabled: busy, id: `do-${action.name}` }), ...inputs),
      element("div", { className: "command" }, line, copy));
  }

  line(action, values) {
    const file = this.model.files[this.model.active] ?? "SAVED.plc";
    return action.command.replace("{file}", file).replace(/\{(\w+)\}/g, (all, name) => (values[name] === "" ? name.toUpperCase() : values[name] ?? all));
  }

  async start(action, values) {
    const { app, model } = this, nodes = model.macros().filter((node) => model.canMove(node));
    if (action.fixes_chosen && nodes.length && !(await app.ask("edit", { what: "fix", nodes }))) return;
    app.ask("start", { name: action.name, values });
  }

  outcome(job) {
    const { app } = this;
    if (job.state === "running") {
      const action = this.model.actions.find((one) => one.name === job.name);
      return element("div", { id: "job" }, element("div", {}, `${job.title} …`), element("progress", action.can_stop ? { value: job.progress } : {}),
        element("div", { className: "row" }, element("span", { className: "muted" }, job.text), action.can_stop ? button("Stop", "stops and keeps the best result so far", () => app.ask("stop"), { id: "stop" }) : null));
    }
    const away = () => { this.jobs.delete(this.model.active); this.draw(); };
    if (job.state === "failed") return element("div", { id: "job" }, element("div", { className: "bad" }, job.text), button("OK", "", away));
    const costs = job.changed ? `cost ${job.before.toFixed(6)} → ${job.after.toFixed(6)}` : "no change";
    return element("div", { id: "job" }, element("div", {}, `${job.title}: ${costs}`), element("div", { className: "muted" }, job.text),
      job.changed ? element("div", { className: "row" }, button("Keep", "the result stays", away, { className: "main", id: "keep" }),
        button("Discard", "as it was before", () => { away(); app.undo(); }, { id: "discard" })) : button("OK", "", away));
  }
}
