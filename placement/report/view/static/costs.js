// The table of costs, with the difference since the start and to the placement that is compared with.

import { element } from "./dom.js";

const ROWS = [["wirelength", "length (µm)"], ["wirelength_cost", "wirelength"], ["density_cost", "density"],
  ["congestion_cost", "congestion"], ["total", ""]];

// As `macro-placement evaluate` prints it.
export function costText(name, value) {
  return name === "wirelength" ? value.toLocaleString("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 }) : value.toFixed(6);
}

function difference(name, value) {
  const text = name === "wirelength" ? costText(name, Math.abs(value)) : Math.abs(value).toFixed(6);
  const none = Number(text.replaceAll(",", "")) === 0;
  const cell = element("td", { className: none ? "muted" : value > 0 ? "worse" : "better" });
  cell.textContent = none ? "0" : `${value > 0 ? "+" : "−"}${text}`;
  return cell;
}

// Puts the table into an element; only what has changed where the table already exists.
export function updateCosts(parent, model) {
  const made = costTable(model), old = parent.querySelectorAll("td"), now = made.querySelectorAll("td");
  if (old.length !== now.length || parent.firstChild?.className !== made.className) {
    parent.replaceChildren(made);
    return;
  }
  now.forEach((cell, at) => {
    if (old[at].textContent !== cell.textContent) old[at].textContent = cell.textContent;
    old[at].className = cell.className;
  });
}

function costTable(model) {
  const { state } = model.session, { costs } = model, other = model.sessions[model.other]?.state;
  const heads = other ? ["", "now", "there", "difference"] : ["", "now", "since start"];
  const rows = ROWS.map(([name, label]) => {
    const weight = { wirelength_cost: "wirelength", density_cost: "density", congestion_cost: "congestion" }[name];
    const text = label || `${state.weights.name} cost`;
    return element("tr", { className: name === "total" ? "sum" : "", id: `cost-${name}` },
      element("th", { title: weight ? `weight ${state.weights[weight]}` : "" }, text),
      element("td", { className: "now" }, costText(name, costs[name])),
      other ? element("td", { className: "other" }, costText(name, other.costs[name])) : "",
      difference(name, costs[name] - (other ? other.costs : state.start_costs)[name]));
  });
  return element("table", { className: other ? "three" : "" }, element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", {}, head)))),
    element("tbody", {}, ...rows));
}
