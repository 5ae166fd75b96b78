// What the server sends, as typed arrays. Lengths are in µm; N nodes, E nets, L net-pin incidences.

const TYPES = { float64: Float64Array, float32: Float32Array, int32: Int32Array, int8: Int8Array, uint8: Uint8Array };

export const HARD = 0, SOFT = 1, PORT = 2, CELL = 3;

// Row o turns an offset given in orientation N into orientation o: (a·dx + b·dy, c·dx + d·dy); LEF/DEF's order N to FW.
export const TURN = [
  [1, 0, 0, 1], [-1, 0, 0, 1], [-1, 0, 0, -1], [1, 0, 0, -1],
  [0, 1, -1, 0], [0, -1, -1, 0], [0, -1, 1, 0], [0, 1, 1, 0],
];

export function unpacked(values) {
  const text = atob(values.data);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at += 1) bytes[at] = text.charCodeAt(at);
  return new TYPES[values.dtype](bytes.buffer);
}

export class Design {
  constructor(values) {
    Object.assign(this, values);
    this.kind = unpacked(values.kind);
    this.width = unpacked(values.width);
    this.height = unpacked(values.height);
    this.constrain(constraintsOf(values));
    this.count = this.kind.length;
    this.of = [HARD, SOFT, PORT, CELL].map((kind) => nodesOf(this.kind, kind));
    this.nets = values.nets && Object.fromEntries(Object.entries(values.nets).map(([name, one]) => [name, unpacked(one)]));
    this.ending = commonEnding([...this.of[HARD]].map((node) => this.names[node]));
    if (this.nets) this.incidences = incidencesOf(this.nets, this.count);
  }

  // Takes over what macros must keep to.
  constrain(constraints) { Object.assign(this, constraints); }

  // A hard macro's name without the ending that all have in common.
  label(node) {
    const name = this.names[node];
    return name.slice(0, name.length - this.ending);
  }

  // The nets of a node, each once for every pin of the node on it, as incidences.
  incidencesOf(node) {
    const { start, item } = this.incidences;
    return item.subarray(start[node], start[node + 1]);
  }

  netOf(incidence) {
    return this.incidences.net[incidence];
  }
}

// The length of the end, from a separator on, that all names have.
function commonEnding(names) {
  if (names.length < 2) return 0;
  let length = 0;
  const [first] = names, shortest = Math.min(...names.map((name) => name.length));
  while (length < shortest - 1 && names.every((name) => name[name.length - 1 - length] === first[first.length - 1 - length])) length += 1;
  while (length > 0 && !"./_".includes(first[first.length - length])) length -= 1;
  return length;
}

function nodesOf(kinds, kind) {
  let count = 0;
  for (const one of kinds) count += one === kind;
  const nodes = new Int32Array(count);
  let at = 0;
  for (let node = 0; node < kinds.length; node += 1) if (kinds[node] === kind) nodes[at++] = node;
  return nodes;
}

function incidencesOf(nets, count) {
  const start = new Int32Array(count + 1);
  for (const node of nets.node) start[node + 1] += 1;
  for (let node = 0; node < count; node += 1) start[node + 1] += start[node];
  const next = start.slice(), item = new Int32Array(nets.node.length), net = new Int32Array(nets.node.length);
  for (let e = 0; e + 1 < nets.start.length; e += 1) {
    for (let at = nets.start[e]; at < nets.start[e + 1]; at += 1) {
      net[at] = e;
      item[next[nets.node[at]]++] = at;
    }
  }
  return { start, item, net };
}

// What macros must keep to: {halo: Float64Array [N, 4] or null, blockages, regions, grid,
// macro_grids: [{nodes, grids: by orientation}], port_keepout}.
export function constraintsOf({ halo, blockages, regions, grid, macro_grids, port_keepout }) {
  return { halo: halo && unpacked(halo), blockages, regions, grid, macro_grids, port_keepout };
}

export class Placement {
  constructor(values) {
    for (const name of ["x", "y", "orientation", "fixed", "placed"]) this[name] = unpacked(values[name]);
  }

  put(places) {
    places.nodes.forEach((node, at) => {
      this.x[node] = places.x[at];
      this.y[node] = places.y[at];
      this.orientation[node] = places.orientation[at];
      this.fixed[node] = places.fixed[at] ? 1 : 0;
    });
  }

  sides(design, node) {
    const turned = this.orientation[node] >= 4;
    return turned ? [design.height[node], design.width[node]] : [design.width[node], design.height[node]];
  }
}

// The half-perimeter of a net, µm; `at(node)` returns the position [x, y] of a node.
export function halfPerimeter(design, placement, net, at) {
  const { start, node, dx, dy } = design.nets;
  let left = Infinity, right = -Infinity, low = Infinity, high = -Infinity;
  for (let pin = start[net]; pin < start[net + 1]; pin += 1) {
    const [x, y] = at(node[pin]);
    const [a, b, c, d] = TURN[placement.orientation[node[pin]]];
    const px = x + a * dx[pin] + b * dy[pin], py = y + c * dx[pin] + d * dy[pin];
    left = Math.min(left, px); right = Math.max(right, px);
    low = Math.min(low, py); high = Math.max(high, py);
  }
  return right - left + high - low;
}
