// Colours: those of the page's style by name, and the scale of the maps.

export function palette() {
  const style = getComputedStyle(document.documentElement);
  let known = {}, theme = null;
  return new Proxy({}, { get: (_, name) => {
    if (theme !== document.documentElement.dataset.theme) [theme, known] = [document.documentElement.dataset.theme, {}];
    return (known[name] ??= style.getPropertyValue(`--${name}`).trim());
  } });
}

// Cividis (Nuñez, Anderton and Renslow, 2018): even in lightness, and the same to colour-blind readers.
const CIVIDIS = [[0, 32, 77], [0, 51, 111], [57, 72, 107], [87, 93, 109], [112, 113, 115], [138, 134, 120], [166, 157, 117],
  [195, 180, 105], [225, 204, 85], [255, 234, 70]];

export function onScale(share) {
  const at = Math.min(Math.max(share, 0), 1) * (CIVIDIS.length - 1), low = Math.min(Math.floor(at), CIVIDIS.length - 2);
  return CIVIDIS[low].map((value, part) => Math.round(value + (at - low) * (CIVIDIS[low + 1][part] - value)));
}

// Between two colours "#rrggbb"; a share of 0 is the first one.
export function between(low, high, share) {
  const parts = (colour) => [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16)), to = parts(high);
  return `rgb(${parts(low).map((value, at) => Math.round(value + share * (to[at] - value))).join(" ")})`;
}
