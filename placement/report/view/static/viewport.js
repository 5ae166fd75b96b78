// What part of the canvas is seen: µm to pixels (CSS pixels, y downwards) and back.

const MOST_ZOOM = 400, LEAST_ZOOM = 0.4, MARGIN = 28;

export class Viewport {
  constructor() {
    this.scale = 1; // pixels per µm
    this.left = 0; // µm at the left edge
    this.top = 0; // µm at the upper edge
    this.width = 1;
    this.height = 1;
  }

  resize(width, height) {
    const middle = this.toWorld(this.width / 2, this.height / 2);
    this.width = width;
    this.height = height;
    this.left = middle[0] - width / 2 / this.scale;
    this.top = middle[1] + height / 2 / this.scale;
  }

  fit(left, low, right, high) {
    const across = Math.max(right - left, 1e-6), up = Math.max(high - low, 1e-6);
    this.scale = Math.min((this.width - 2 * MARGIN) / across, (this.height - 2 * MARGIN) / up);
    this.scale = Math.max(this.scale, 1e-9);
    this.left = (left + right) / 2 - this.width / 2 / this.scale;
    this.top = (low + high) / 2 + this.height / 2 / this.scale;
    this.whole ??= this.scale;
  }

  toScreen(x, y) {
    return [(x - this.left) * this.scale, (this.top - y) * this.scale];
  }

  toWorld(px, py) {
    return [this.left + px / this.scale, this.top - py / this.scale];
  }

  zoomAt(px, py, factor) {
    const whole = this.whole ?? this.scale;
    const scale = Math.min(Math.max(this.scale * factor, whole * LEAST_ZOOM), whole * MOST_ZOOM);
    const [x, y] = this.toWorld(px, py);
    this.scale = scale;
    this.left = x - px / scale;
    this.top = y + py / scale;
  }

  pan(px, py) {
    this.left -= px / this.scale;
    this.top += py / this.scale;
  }

  sees(left, low, right, high) {
    return right > this.left && left < this.left + this.width / this.scale
      && high > this.top - this.height / this.scale && low < this.top;
  }
}

// A round length (1, 2 or 5 times a power of ten), µm, of at most `most`.
export function roundLength(most) {
  const power = 10 ** Math.floor(Math.log10(most));
  return [5, 2, 1].map((factor) => factor * power).find((length) => length <= most * (1 + 1e-9)) ?? power;
}

// A length for people.
export function micrometres(length, digits = 2) {
  return `${length.toLocaleString("en", { maximumFractionDigits: digits })} µm`;
}
