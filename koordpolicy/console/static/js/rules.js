// The rule graph: decisions to choose from, and the picture of one: facts → rules → decision → who asks.
import { h, s, fill } from "./dom.js";
import { get } from "./api.js";
import { line, rules, said } from "./source.js";

const ROLES = ["fact", "parameter", "variable", "rule", "decision", "component"];
const MOST = 200;
const READABLE = 0.8;
const LEAST = 0.08;

export class RulesView {
  constructor(route) {
    this.find = h("input", { type: "search", placeholder: "Find a decision", "aria-label": "Find a decision", oninput: () => this.#list() });
    this.list = h("div", { class: "tree" }, h("p", { class: "muted" }, "Asking…"));
    this.own = h("input", { type: "checkbox", id: "own", onchange: () => this.#list() });
    this.svg = s("svg", { class: "graph", tabindex: "0", role: "group", "aria-label": "Picture of the rules. Arrows pan, plus and minus zoom, 0 shows all." });
    this.roles = h("div", { class: "roles", role: "group", "aria-label": "What is drawn" });
    this.detail = h("div", { class: "detail", tabindex: "0", role: "region", "aria-label": "Decision" });
    this.overview = h("input", { type: "checkbox", id: "overview", onchange: () => this.#draw(this.name) });
    this.bar = h("div", { class: "graph-bar" }, this.roles, h("label", { class: "check" }, this.overview, "documents only"));
    const middle = () => ((box) => [box.width / 2, box.height / 2])(this.svg.getBoundingClientRect());
    this.stage = h(
      "div",
      { class: "graph-stage" },
      this.svg,
      this.bar,
      h(
        "div",
        { class: "zoom", role: "group", "aria-label": "Zoom" },
        h("button", { type: "button", class: "quiet icon", "aria-label": "Zoom out", onclick: () => this.#zoom(1 / 1.5, ...middle()) }, "−"),
        h("button", { type: "button", class: "quiet", onclick: () => this.#fit() }, "Fit"),
        h("button", { type: "button", class: "quiet icon", "aria-label": "Zoom in", onclick: () => this.#zoom(1.5, ...middle()) }, "+"),
      ),
    );
    this.element = h(
      "div",
      { class: "policies" },
      h("h1", { class: "visually-hidden" }, "Policies"),
      h("aside", { class: "side", "aria-label": "Decisions" }, h("div", { class: "side-head" }, this.find, h("label", { class: "check" }, this.own, "decided by our own policies")), this.list),
      this.stage,
      this.detail,
    );
    this.hidden = new Set();
    this.view = { x: 20, y: 20, scale: 1 };
    this.#listen();
    this.#begin(route);
  }

  end() {}

  async #begin(route) {
    try {
      this.decisions = await get("decisions");
    } catch (error) {
      fill(this.list, h("p", { class: "trouble" }, error.message));
      return;
    }
    if (this.decisions.some((one) => one.changed)) this.own.checked = false;
    this.#list();
    this.go(route);
  }

  go([name]) {
    if (!this.decisions) return;
    const first = this.decisions.find((one) => one.decision === "CPUSuppress.target") ?? this.decisions[0];
    this.#draw(name || first?.decision);
  }

  key(event) {
    if (event.key === "f") this.find.focus();
    else return false;
    return true;
  }

  #list() {
    if (!this.decisions) return;
    const words = this.find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (one) => words.every((word) => `${one.decision} ${one.meaning} ${one.documents} ${one.askedBy}`.toLowerCase().includes(word));
    const found = this.decisions.filter((one) => (!this.own.checked || one.changed) && fits(one));
    const kinds = new Map();
    for (const one of found) {
      if (!kinds.has(one.kind)) kinds.set(one.kind, []);
      kinds.get(one.kind).push(one);
    }
    fill(
      this.list,
      h("p", { class: "muted small" }, `${found.length} decision${found.length === 1 ? "" : "s"}`),
      [...kinds].map(([kind, members]) => {
        const items = h("ul", {});
        const make = () => items.childElementCount || fill(items, members.map((one) => h("li", {}, h("a", { href: `#/policies/${encodeURIComponent(one.decision)}`, "aria-current": one.decision === this.name ? "true" : null, class: one.changed ? "own" : "" }, one.decision.slice(one.kind.length + 1)))));
        const open = kind === this.kind || ((words.length > 0 || this.own.checked) && found.length <= MOST);
        if (open) make();
        return h("details", { open, ontoggle: make }, h("summary", {}, kind, h("span", { class: "muted" }, ` ${members.length}`)), items);
      }),
    );
  }

  async #draw(name) {
    if (!name) return;
    this.name = name;
    this.kind = name.split(/[./]/)[0];
    try {
      this.picture = await get("graph", { name, ...(this.overview.checked ? { overview: 1 } : {}) });
    } catch (error) {
      fill(this.detail, h("p", { class: "trouble" }, error.message));
      return;
    }
    if (this.name !== name) return;
    this.hidden.clear();
    this.focus = null;
    this.#list();
    this.list.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
    this.#paint();
    this.#fit();
    this.#tell();
  }

  #tell() {
    fill(
      this.detail,
      this.picture.decisions.slice(0, 12).map((one) => [
        h("h2", {}, one.decision),
        h("p", {}, one.meaning),
        h("p", { class: "muted small" }, `${one.type}; asked by ${one.askedBy.join(", ") || "nobody"}; ${one.default !== null && one.default !== undefined ? `without rules ${said(one.default)}` : "no default"}`),
        one.rules.map((rule, at) =>
          h(
            "section",
            { class: "rule" },
            h("p", {}, h("b", {}, rule.document), h("span", { class: "tag" }, rule.layer), at === 0 && one.rules.length > 1 && h("span", { class: "tag strong" }, "first")),
            rule.for && h("p", { class: "small" }, `for ${rule.for}`),
            rule.if && h("p", { class: "small" }, "if ", h("code", {}, rule.if)),
            h("pre", {}, rule.expression ?? said(rule.value)),
            line(`${rule.file}:${rule.line}:${rule.column}`),
            rule.exception && rules([{ exception: rule.exception, decision: "" }]),
          ),
        ),
      ]),
    );
  }

  // --- the picture --------------------------------------------------------------------------------

  #paint() {
    const { boxes, arrows } = this.picture;
    const roles = ROLES.filter((role) => boxes.some((box) => box.role === role));
    fill(
      this.roles,
      roles.map((role) =>
        h("button", { type: "button", class: `role ${role}`, "aria-pressed": String(!this.hidden.has(role)), onclick: () => this.#toggle(role) }, h("i"), `${role}s`),
      ),
    );
    const shown = new Map(boxes.filter((box) => !this.hidden.has(box.role)).map((box) => [box.id, box]));
    const near = this.focus ? this.#near(this.focus) : null;
    this.group = s("g", {});
    arrows.forEach((arrow) => {
      const from = shown.get(arrow.from);
      const to = shown.get(arrow.to);
      if (!from || !to) return;
      const faint = near && !(near.has(arrow.from) && near.has(arrow.to));
      this.group.append(s("path", { class: `arrow ${faint ? "faint" : ""}`, d: curve(arrow.way, from, to) }));
    });
    for (const box of shown.values()) {
      const chosen = box.id === this.focus;
      const part = s(
        "g",
        { class: `box ${box.role} ${near && !near.has(box.id) ? "faint" : ""} ${chosen ? "chosen" : ""}`, transform: `translate(${box.x},${box.y})`, tabindex: "0", role: "button", "aria-pressed": String(chosen) },
        s("title", {}, box.hint || box.title),
        s("rect", { width: box.width, height: box.height, rx: 6 }),
        s("rect", { class: "edge", width: 4, height: box.height - 10, y: 5, rx: 2 }),
        s("text", { class: "title", x: 13, y: 19 }, box.title),
        box.lines.map((text, at) => s("text", { x: 13, y: 19 + 16 * (at + 1) }, text)),
      );
      part.addEventListener("click", () => this.#choose(box.id));
      part.addEventListener("focus", () => part.matches(":focus-visible") && this.#show(box));
      part.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        event.stopPropagation();
        this.#choose(box.id);
      });
      this.group.append(part);
    }
    fill(this.svg, this.group);
    this.#move();
  }

  #toggle(role) {
    if (this.hidden.has(role)) this.hidden.delete(role);
    else this.hidden.add(role);
    this.#paint();
    this.roles.querySelector(`.${role}`)?.focus();
  }

  #choose(id) {
    if (this.moved) return;
    this.focus = this.focus === id ? null : id;
    this.#paint();
    if (this.focus) this.#show(this.picture.boxes.find((one) => one.id === id));
    [...this.group.querySelectorAll(".box")].find((one) => one.classList.contains("chosen"))?.focus({ preventScroll: true });
  }

  /** A box with all that leads to it and all that it leads to. */
  #near(id) {
    const found = new Set([id]);
    for (const [here, there] of [["from", "to"], ["to", "from"]]) {
      const next = [id];
      while (next.length) {
        const one = next.pop();
        for (const arrow of this.picture.arrows) {
          if (arrow[here] !== one || found.has(arrow[there])) continue;
          found.add(arrow[there]);
          next.push(arrow[there]);
        }
      }
    }
    return found;
  }

  /** All of it; whoever chooses a box sees that closer. */
  #fit() {
    const box = this.svg.getBoundingClientRect();
    const top = this.bar.offsetTop + this.bar.offsetHeight + 16;
    const high = Math.max(box.height - top - 60, 40);
    const scale = Math.max(LEAST, Math.min(1, (box.width - 40) / this.picture.width, high / this.picture.height));
    this.view = { scale, x: (box.width - this.picture.width * scale) / 2, y: top + Math.max(0, (high - this.picture.height * scale) / 3) };
    this.#move();
  }

  /** Bring a box near enough to be read, and into sight. */
  #show(box) {
    const stage = this.svg.getBoundingClientRect();
    const scale = Math.max(this.view.scale, READABLE);
    const left = box.x * this.view.scale + this.view.x;
    const top = box.y * this.view.scale + this.view.y;
    const inside = left >= 0 && top >= 0 && left + box.width * scale <= stage.width && top + box.height * scale <= stage.height;
    if (inside && scale === this.view.scale) return;
    this.view = { scale, x: stage.width / 2 - (box.x + box.width / 2) * scale, y: stage.height / 2 - (box.y + box.height / 2) * scale };
    this.#move();
  }

  #move() {
    this.group?.setAttribute("transform", `translate(${this.view.x},${this.view.y}) scale(${this.view.scale})`);
  }

  #zoom(factor, x, y) {
    const scale = Math.min(Math.max(this.view.scale * factor, LEAST), 3);
    const real = scale / this.view.scale;
    this.view = { scale, x: x - (x - this.view.x) * real, y: y - (y - this.view.y) * real };
    this.#move();
  }

  #listen() {
    const { svg } = this;
    let from = null;
    svg.addEventListener("pointerdown", (event) => {
      from = { x: event.clientX, y: event.clientY };
      this.moved = false;
    });
    svg.addEventListener("pointermove", (event) => {
      if (!from || !event.buttons) return;
      if (!this.moved && Math.hypot(event.clientX - from.x, event.clientY - from.y) < 4) return;
      this.moved = true;
      this.view.x += event.clientX - from.x;
      this.view.y += event.clientY - from.y;
      from = { x: event.clientX, y: event.clientY };
      this.#move();
    });
    svg.addEventListener("pointerup", () => (from = null));
    svg.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        const box = svg.getBoundingClientRect();
        this.#zoom(Math.exp(-event.deltaY * 0.0015), event.clientX - box.left, event.clientY - box.top);
      },
      { passive: false },
    );
    svg.addEventListener("keydown", (event) => {
      const pans = { ArrowRight: [-60, 0], ArrowLeft: [60, 0], ArrowDown: [0, -60], ArrowUp: [0, 60] };
      const box = svg.getBoundingClientRect();
      if (pans[event.key]) {
        this.view.x += pans[event.key][0];
        this.view.y += pans[event.key][1];
        this.#move();
      } else if (event.key === "+" || event.key === "=") this.#zoom(1.25, box.width / 2, box.height / 2);
      else if (event.key === "-") this.#zoom(0.8, box.width / 2, box.height / 2);
      else if (event.key === "0") this.#fit();
      else if (event.key === "Escape" && this.focus) this.#choose(this.focus);
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
  }
}

/** A smooth line along the places that an arrow goes through. */
function curve(way, from, to) {
  const points = [[from.x + from.width, from.y + from.height / 2]];
  for (const [x, y, end] of way.slice(1, -1)) points.push([x, y], [end, y]);
  points.push([to.x, to.y + to.height / 2]);
  let path = `M${points[0]}`;
  for (let at = 1; at < points.length; at += 1) {
    const [ax, ay] = points[at - 1];
    const [bx, by] = points[at];
    const half = (ax + bx) / 2;
    path += ay === by ? ` L${bx},${by}` : ` C${half},${ay} ${half},${by} ${bx},${by}`;
  }
  return path;
}
