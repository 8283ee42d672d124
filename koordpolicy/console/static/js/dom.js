// Elements from data. Text is only ever set as text: names come from clusters, and may be anything.

/** An element with properties and children; strings become text, null and false nothing. */
export function h(tag, properties = {}, ...children) {
  return filled(document.createElement(tag), properties, children);
}

/** The same in SVG. */
export function s(tag, properties = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), properties, children);
}

function filled(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, one] of Object.entries(value)) element.style.setProperty(key, one);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

/** A cross, as buttons that close have it: letters look otherwise in each font. */
export const cross = () => s("svg", { viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true" }, s("path", { d: "M4 4l8 8M12 4l-8 8", fill: "none", stroke: "currentColor", "stroke-width": 1.6, "stroke-linecap": "round" }));

/** Put other children in the place of all there are. */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

/** A dialog of the browser's own: it keeps the focus, and gives it back. */
export function dialog(title, content, { kind = "" } = {}) {
  const close = h("button", { type: "button", class: "quiet icon", "aria-label": "Close", onclick: () => box.close() }, cross());
  const box = h(
    "dialog",
    { class: `dialog ${kind}`, "aria-label": title },
    h("div", { class: "dialog-head" }, h("h2", {}, title), close),
    h("div", { class: "dialog-body" }, content),
  );
  box.addEventListener("close", () => box.remove());
  box.addEventListener("click", (event) => event.target === box && box.close());
  document.body.append(box);
  box.showModal();
  return box;
}

/** Say something at the edge of the page, and to screen readers. */
export function notice(text) {
  const place = document.getElementById("notice");
  place.textContent = text;
  place.classList.toggle("shown", Boolean(text));
  clearTimeout(notice.timer);
  notice.timer = setTimeout(() => place.classList.remove("shown"), 6000);
}
