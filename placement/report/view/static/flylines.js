// How strongly the selected macros are connected to others, and which nets a move made longer.

import { halfPerimeter } from "./data.js";

const MOST_LINES = 150, MOST_PINS = 200, MOST_NETS = 60, LEAST_CHANGE = 1e-3;

// Lines from each selected node to others: [{from, to, weight}], the heaviest first. A net of k pins joins each pair of its
// nodes by its weight / (k - 1); nets of many pins join everything, and are omitted.
export function flylines(design, chosen) {
  if (!design.nets) return [];
  const { start, node, weight } = design.nets;
  const lines = [];
  for (const from of chosen) {
    const to = new Map();
    for (const incidence of design.incidencesOf(from)) {
      const net = design.netOf(incidence), pins = start[net + 1] - start[net];
      if (pins > MOST_PINS) continue;
      const share = weight[net] / Math.max(1, pins - 1);
      for (let pin = start[net]; pin < start[net + 1]; pin += 1) {
        if (node[pin] !== from) to.set(node[pin], (to.get(node[pin]) ?? 0) + share);
      }
    }
    for (const [other, sum] of to) lines.push({ from, to: other, weight: sum });
  }
  return lines.sort((one, other) => other.weight - one.weight).slice(0, MOST_LINES);
}

// The present lengths of the nets on some nodes, µm: a map from net to length.
export function netLengths(design, placement, nodes, at) {
  const lengths = new Map();
  if (!design.nets) return lengths;
  for (const node of nodes) {
    for (const incidence of design.incidencesOf(node)) {
      const net = design.netOf(incidence);
      if (!lengths.has(net)) lengths.set(net, halfPerimeter(design, placement, net, at));
    }
  }
  return lengths;
}

// What became of nets, by weight times µm: [{net, change}], the largest changes first.
export function changedNets(design, before, after) {
  const changes = [];
  for (const [net, length] of after) {
    const change = (length - before.get(net)) * design.nets.weight[net];
    if (Math.abs(change) > LEAST_CHANGE) changes.push({ net, change });
  }
  return changes.sort((one, other) => Math.abs(other.change) - Math.abs(one.change)).slice(0, MOST_NETS);
}
