// Begins: gets the data (from the server, or from the page itself where it is a static report) and joins the parts.

import { Link } from "./link.js";

const embedded = document.getElementById("embedded"), parts = Promise.all([import("./app.js"), import("./model.js")]);

if (embedded) {
  const [{ App }, { Model }] = await parts;
  globalThis.viewer = new App(new Model(JSON.parse(embedded.textContent)), null);
} else {
  const address = new URL("socket", location.href);
  address.protocol = address.protocol.replace("http", "ws");
  let app = null, opening = null;
  const link = new Link(address, {
    onEvent: (event) => app?.take(event),
    onOpen: () => { opening = open(); },
    onBreak: () => (app ? app.broke() : opening ?? notReached()),
  });
  const open = async () => { // the data come while the parts are loaded
    const [values, [{ App }, { Model }]] = await Promise.all([link.ask("scene"), parts]);
    if (app) app.renew(values);
    else globalThis.viewer = app = new App(new Model(values), link);
  };
}

function notReached() {
  document.getElementById("status").textContent = "The window's server does not answer. Start macro-placement view again, and use the address that it prints.";
}
