// Many standard cells: one pass over plain numbers puts a hundred thousand of them into a picture, pixel by pixel.

// Paints cells one by one, where the context writes a drawing.
export function paintCells(painter, { x, y, width, height }, count, index) {
  const { context, viewport, colours } = painter;
  context.fillStyle = colours.cell;
  for (let at = 0; at < count; at += 1) {
    const one = index(at), left = x[one] - width[one] / 2, low = y[one] - height[one] / 2;
    if (viewport.sees(left, low, left + width[one], low + height[one])) context.fillRect(...painter.rectangle(left, low, width[one], height[one]));
  }
}

// A picture of the canvas's size with the cells that are seen; `again`: one to be used again.
export function pixelsOf(painter, { x, y, width, height }, count, index, again) {
  const { context, viewport, colours } = painter, { width: wide, height: tall } = context.canvas, { left, top } = viewport;
  const picture = again?.picture ?? new OffscreenCanvas(wide, tall), layer = picture.getContext("2d");
  const image = again?.image ?? layer.createImageData(wide, tall), values = again?.values ?? new Uint32Array(image.data.buffer);
  const zoom = viewport.scale * context.getTransform().a, right = left + wide / zoom, low = top - tall / zoom;
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colours.cell.slice(at, at + 2), 16));
  const colour = (200 << 24) | (blue << 16) | (green << 8) | red;
  values.fill(0);
  for (let at = 0; at < count; at += 1) {
    const one = index(at), cx = x[one], cy = y[one], across = width[one] / 2, up = height[one] / 2;
    if (cx + across < left || cx - across > right || cy + up < low || cy - up > top) continue;
    block(values, wide, tall, (cx - left) * zoom, (top - cy) * zoom, across * zoom, up * zoom, colour);
  }
  layer.putImageData(image, 0, 0);
  return { picture, image, values };
}

// A rectangle about (px, py) in pixels, at least one; from some size on with a gap to its neighbours.
function block(values, wide, tall, px, py, across, up, colour) {
  const gap = across > 2 && up > 2 ? 1 : 0;
  const first = Math.max(0, Math.round(px - across)), last = Math.min(wide, Math.max(Math.round(px + across) - gap, first + 1));
  const above = Math.max(0, Math.round(py - up)), below = Math.min(tall, Math.max(Math.round(py + up) - gap, above + 1));
  for (let row = above; row < below; row += 1) {
    if (last - first > 3) values.fill(colour, row * wide + first, row * wide + last);
    else for (let at = row * wide + first; at < row * wide + last; at += 1) values[at] = colour;
  }
}
