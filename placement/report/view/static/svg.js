// A canvas context that writes what is painted as SVG: as much of its interface as `draw.js` and `maps.js` use.

const escaped = (text) => text.replace(/[&<>"]/g, (one) => `&#${one.charCodeAt(0)};`);
const short = (value) => Number(value.toFixed(2));

export class SvgContext {
  constructor(width, height, measure) {
    Object.assign(this, { width, height, measure, isVector: true, parts: [], clips: 0, stack: [], group: 0 });
    Object.assign(this, { fillStyle: "#000", strokeStyle: "#000", lineWidth: 1, globalAlpha: 1, font: "11px sans-serif", textAlign: "left", dash: [] });
    this.beginPath();
  }

  text() {
    const ends = "</g>".repeat(this.group);
    return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${this.width} ${this.height}" width="${this.width}" height="${this.height}">\n${this.parts.join("\n")}${ends}\n</svg>\n`;
  }

  alpha() { return this.globalAlpha < 1 ? ` opacity="${short(this.globalAlpha)}"` : ""; }

  look() {
    const dash = this.dash.length ? ` stroke-dasharray="${this.dash.join(" ")}"` : "";
    return `fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}"${dash}${this.alpha()}`;
  }

  place(px, py, width, height) {
    const [left, top] = [Math.min(px, px + width), Math.min(py, py + height)];
    return `x="${short(left)}" y="${short(top)}" width="${short(Math.abs(width))}" height="${short(Math.abs(height))}"`;
  }

  beginPath() { this.path = ""; }

  moveTo(px, py) { this.path += `M${short(px)},${short(py)}`; }

  lineTo(px, py) { this.path += `L${short(px)},${short(py)}`; }

  rect(px, py, width, height) { this.path += `M${short(px)},${short(py)}h${short(width)}v${short(height)}h${short(-width)}z`; }

  stroke() { this.parts.push(`<path d="${this.path}" ${this.look()}/>`); }

  fill() { this.parts.push(`<path d="${this.path}" fill="${this.fillStyle}"${this.alpha()}/>`); }

  fillRect(...place) { this.parts.push(`<rect ${this.place(...place)} fill="${this.fillStyle}"${this.alpha()}/>`); }

  strokeRect(...place) { this.parts.push(`<rect ${this.place(...place)} ${this.look()}/>`); }

  clip() {
    const name = `clip${(this.clips += 1)}`;
    this.parts.push(`<clipPath id="${name}"><path d="${this.path}"/></clipPath><g clip-path="url(#${name})">`);
    this.group += 1;
  }

  save() {
    const { fillStyle, strokeStyle, lineWidth, globalAlpha, dash, group } = this;
    this.stack.push({ fillStyle, strokeStyle, lineWidth, globalAlpha, dash, group });
  }

  restore() {
    const before = this.stack.pop();
    while (this.group > before.group) {
      this.parts.push("</g>");
      this.group -= 1;
    }
    Object.assign(this, before);
  }

  setLineDash(dash) { this.dash = dash; }

  getTransform() { return { a: 1 }; }

  measureText(text) {
    this.measure.font = this.font;
    return this.measure.measureText(text);
  }

  fillText(text, px, py) {
    const anchor = { left: "start", center: "middle", right: "end" }[this.textAlign];
    this.parts.push(`<text x="${short(px)}" y="${short(py)}" text-anchor="${anchor}" fill="${this.fillStyle}" style="font: ${this.font}"${this.alpha()}>${escaped(text)}</text>`);
  }
}
