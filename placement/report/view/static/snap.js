// Where a dragged macro goes: onto the design's grid, or flush with its neighbours. Lengths are in µm.

import { HARD } from "./data.js";

// The corner nearest to `corner` on a grid.
function onGrid(corner, pitch, offset) {
  return pitch > 0 ? offset + pitch * Math.round((corner - offset) / pitch) : corner;
}

// Edges that a macro's edges may touch: the canvas's, and those of macros near it, halos kept.
function edges(design, placement, node, axis, reach, centre) {
  const halo = (one, side) => haloOf(design, placement, one, axis + 2 * side);
  const found = [[0, 0], [axis === 0 ? design.canvas.width : design.canvas.height, 0]];
  for (const other of design.of[HARD]) {
    if (other === node || !placement.placed[other]) continue;
    const sides = placement.sides(design, other);
    const position = axis === 0 ? placement.x[other] : placement.y[other];
    const across = axis === 0 ? placement.y[other] : placement.x[other];
    if (Math.abs(across - centre[1 - axis]) > sides[1 - axis] / 2 + reach) continue;
    found.push([position - sides[axis] / 2, halo(node, 1) + halo(other, 0)]);
    found.push([position + sides[axis] / 2, halo(node, 0) + halo(other, 1)]);
  }
  return found;
}

// Row o: which of the sides left, bottom, right, top of a macro are those sides in orientation o.
const TURNED_SIDES = [[0, 1, 2, 3], [2, 1, 0, 3], [2, 3, 0, 1], [0, 3, 2, 1], [1, 2, 3, 0], [3, 2, 1, 0], [3, 0, 1, 2], [1, 0, 3, 2]];

// The halo on a side, 0 to 3: left, bottom, right, top as the macro is turned.
export function haloOf(design, placement, node, side) {
  return design.halo ? design.halo[4 * node + TURNED_SIDES[placement.orientation[node]][side]] : 0;
}

// The centre for a macro that the pointer would put at `centre`.
//   how: {grid: bool, neighbours: bool, tracks: grid or null}; near: µm within which an edge attracts.
export function snapped(design, placement, node, centre, how, near) {
  const sides = placement.sides(design, node), result = [...centre];
  const own = design.macro_grids.find((one) => one.nodes.includes(node));
  const grid = how.tracks ?? own?.grids[placement.orientation[node]] ?? design.grid;
  const pitches = [grid.pitch_x, grid.pitch_y], offsets = [grid.offset_x, grid.offset_y];
  for (const axis of [0, 1]) {
    const half = sides[axis] / 2;
    if (how.neighbours && design.kind[node] === HARD) {
      let best = near;
      for (const [edge, gap] of edges(design, placement, node, axis, near + sides[1 - axis] / 2, centre)) {
        for (const at of [edge - gap - half, edge + gap + half, edge - half, edge + half]) {
          if (Math.abs(at - centre[axis]) < best) {
            best = Math.abs(at - centre[axis]);
            result[axis] = at;
          }
        }
      }
    }
    if (how.grid || how.tracks) result[axis] = onGrid(result[axis] - half, pitches[axis], offsets[axis]) + half;
  }
  return result;
}
