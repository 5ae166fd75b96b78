// Questions to the person at the window.

import { element } from "./dom.js";

const dialog = () => document.getElementById("dialog");

// Asks for a text; null where it was not given.
export function askText(title, label, value, done) {
  const input = element("input", { type: "text", value, ariaLabel: label, name: "text" });
  return opened([element("h2", {}, title), element("label", {}, label, input)], done, () => input.value);
}

// Asks whether to go on.
export function askWhether(title, text, done) {
  return opened([element("h2", {}, title), element("p", {}, text)], done, () => true);
}

function opened(content, done, value) {
  return new Promise((answer) => {
    const form = element("form", { method: "dialog" }, ...content, element("p", { className: "row" },
      element("button", { value: "yes", className: "main" }, done), element("button", { value: "", formNoValidate: true }, "Cancel")));
    dialog().replaceChildren(form);
    dialog().returnValue = "";
    dialog().onclose = () => answer(dialog().returnValue === "yes" ? value() : null);
    dialog().showModal();
  });
}
