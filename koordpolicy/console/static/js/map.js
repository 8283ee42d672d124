// The cluster as a canvas: a square a node, in groups; pan, zoom and choose by mouse, touch and keys.
import { h, fill } from "./dom.js";
import { store } from "./store.js";
import { BUCKETS, WAYS, empty, legend, painted, ramp, sort, theme } from "./colours.js";
import { percent } from "./words.js";

const CELL = 100;
const GAP = 10;
const HEAD = 46;
const BETWEEN = 40;
const LEAST = 0.02;
const MOST = 4;

/** Where each node stands, in units of the map. */
function layout(nodes, label, aspect) {
  const groups = new Map();
  nodes.forEach((node, at) => {
    const name = label ? (node.labels[label] ?? "without") : "";
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(at);
  });
  const columns = Math.max(1, Math.round(Math.sqrt(nodes.length * aspect)));
  const x = new Float32Array(nodes.length);
  const y = new Float32Array(nodes.length);
  const order = [];
  const heads = [];
  let top = 0;
  for (const name of [...groups.keys()].sort()) {
    const members = groups.get(name);
    if (label) {
      heads.push({ name, count: members.length, y: top });
      top += HEAD;
    }
    members.forEach((node, at) => {
      x[node] = (at % columns) * (CELL + GAP);
      y[node] = top + Math.floor(at / columns) * (CELL + GAP);
      order.push(node);
    });
    top += Math.ceil(members.length / columns) * (CELL + GAP) + (label ? BETWEEN : 0);
  }
  const place = new Int32Array(nodes.length);
  order.forEach((node, at) => (place[node] = at));
  const used = Math.min(columns, Math.max(...[...groups.values()].map((one) => one.length), 1));
  return { x, y, order, place, heads, columns, width: used * (CELL + GAP) - GAP, height: top - GAP - (label ? BETWEEN : 0) };
}

export class ClusterMap {
  chosen = -1;
  hovered = -1;
  way = "used";
  label = "";
  #view = { x: 0, y: 0, scale: 1 };
  #dirty = false;
  #glide = null;
  #fitted = true;

  constructor(choose) {
    this.choose = choose;
    this.canvas = h("canvas", {
      tabindex: "0",
      role: "application",
      "aria-label": "Map of nodes. Arrow keys choose a node, Enter opens it, plus and minus zoom, 0 shows all, Shift and arrows pan.",
      "aria-describedby": "map-said",
    });
    this.said = h("div", { id: "map-said", class: "visually-hidden", "aria-live": "polite" });
    this.tip = h("div", { class: "tip", "aria-hidden": "true" });
    this.legend = h("div", { class: "legend" });
    this.ways = h(
      "select",
      { "aria-label": "Colour by", onchange: () => this.colour(this.ways.value) },
      WAYS.map((one) => h("option", { value: one.name }, one.label)),
    );
    this.groups = h("select", { "aria-label": "Group by", onchange: () => this.group(this.groups.value) });
    this.bar = h(
      "div",
      { class: "map-bar" },
      h("label", {}, h("span", {}, "Colour"), this.ways),
      h("label", {}, h("span", {}, "Group"), this.groups),
      this.legend,
      h(
        "div",
        { class: "zoom", role: "group", "aria-label": "Zoom" },
        h("button", { type: "button", class: "quiet icon", "aria-label": "Zoom out", onclick: () => this.zoom(1 / 1.5) }, "−"),
        h("button", { type: "button", class: "quiet", onclick: () => this.fit(true) }, "Fit"),
        h("button", { type: "button", class: "quiet icon", "aria-label": "Zoom in", onclick: () => this.zoom(1.5) }, "+"),
      ),
    );
    this.element = h("div", { class: "map" }, this.canvas, this.tip, this.bar, this.said);
    this.pen = this.canvas.getContext("2d", { alpha: false });
    this.#listen();
    this.observer = new ResizeObserver(() => this.#resize());
    this.observer.observe(this.canvas);
    this.refresh = () => this.#recolour();
    store.addEventListener("frame", this.refresh);
    this.reset();
  }

  end() {
    this.observer.disconnect();
    store.removeEventListener("frame", this.refresh);
  }

  /** The nodes are others, or are seen for the first time. */
  reset() {
    const { nodes } = store.world;
    this.nodes = nodes;
    this.buckets = new Uint8Array(nodes.length);
    const [least, most] = [nodes[0]?.name ?? "", nodes.at(-1)?.name ?? ""];
    let common = 0;
    while (common < least.length && least[common] === most[common] && nodes.every((one) => one.name[common] === least[common])) common += 1;
    this.common = least.slice(0, common).search(/[^-._]*$/);
    this.shortFor = null;
    const labels = new Map();
    for (const node of nodes.slice(0, 2000)) {
      for (const [key, value] of Object.entries(node.labels)) {
        if (!labels.has(key)) labels.set(key, new Set());
        labels.get(key).add(value);
      }
    }
    const some = [...labels].filter(([, values]) => values.size > 0 && values.size <= Math.min(40, nodes.length / 2)).map(([key]) => key);
    fill(this.groups, h("option", { value: "" }, "nothing"), some.sort().map((key) => h("option", { value: key }, key)));
    this.#lay();
    this.#recolour();
  }

  colour(way) {
    this.way = way;
    this.ways.value = way;
    this.#recolour();
  }

  nextColour() {
    const at = WAYS.findIndex((one) => one.name === this.way);
    this.colour(WAYS[(at + 1) % WAYS.length].name);
    this.said.textContent = `Coloured by ${WAYS[(at + 1) % WAYS.length].label}`;
  }

  group(label) {
    this.label = label;
    this.#lay();
    this.fit(true);
  }

  #lay() {
    const box = this.canvas.getBoundingClientRect();
    this.placed = layout(this.nodes, this.label, box.width && box.height ? box.width / box.height : 1.6);
  }

  // --- what is seen -------------------------------------------------------------------------------

  #resize() {
    const box = this.canvas.getBoundingClientRect();
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    this.ratio = ratio;
    this.size = { width: box.width, height: box.height };
    this.canvas.width = Math.max(1, Math.round(box.width * ratio));
    this.canvas.height = Math.max(1, Math.round(box.height * ratio));
    if (this.#fitted) {
      this.#lay();
      this.fit(false);
    } else this.draw(true);
    if (!this.pen.canvas.width) return;
    this.#paint();
  }

  fit(smooth) {
    if (!this.size) return;
    const pad = 20;
    // Nothing stands below what lies over the map's lower edge.
    const below = this.bar.offsetHeight + 14;
    const high = this.size.height - 2 * pad - below;
    const scale = Math.min(
      (this.size.width - 2 * pad) / Math.max(this.placed.width, 1),
      Math.max(high, 40) / Math.max(this.placed.height, 1),
      1.2,
    );
    this.#fitted = true;
    this.#to(
      {
        scale,
        x: (this.size.width - this.placed.width * scale) / 2,
        y: pad + Math.max(0, (high - this.placed.height * scale) / 2),
      },
      smooth,
    );
  }

  zoom(factor, at = { x: this.size.width / 2, y: this.size.height / 2 }, smooth = true) {
    const from = this.#glide?.to ?? this.#view;
    const scale = Math.min(Math.max(from.scale * factor, LEAST), MOST);
    const real = scale / from.scale;
    this.#fitted = false;
    this.#to({ scale, x: at.x - (at.x - from.x) * real, y: at.y - (at.y - from.y) * real }, smooth);
  }

  pan(dx, dy, smooth = false) {
    const from = this.#glide?.to ?? this.#view;
    this.#fitted = false;
    this.#to({ ...from, x: from.x + dx, y: from.y + dy }, smooth);
  }

  #to(view, smooth) {
    const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (!smooth || still) {
      this.#glide = null;
      this.#view = view;
    } else this.#glide = { from: { ...this.#view }, to: view, since: performance.now() };
    this.draw(true);
  }

  /** Show a node, and choose it. */
  show(at, open = false) {
    this.chosen = at;
    const { scale, x, y } = this.#view;
    const left = this.placed.x[at] * scale + x;
    const top = this.placed.y[at] * scale + y;
    const edge = CELL * scale;
    if (left < 0 || top < 0 || left + edge > this.size.width || top + edge > this.size.height) {
      this.pan(this.size.width / 2 - left - edge / 2, this.size.height / 2 - top - edge / 2, true);
    }
    this.#say(at);
    this.draw();
    if (open) this.choose(this.nodes[at].name);
  }

  #say(at) {
    const node = this.nodes[at];
    this.said.textContent = node
      ? `${node.name}: ${percent(store.value(at, "used") / 2)} of CPU in use, ${store.value(at, "pods")} pods`
      : "";
  }

  #recolour() {
    if (store.world.nodes !== this.nodes) return this.reset();
    this.colours = painted(this.way, this.buckets);
    const counts = new Uint32Array(this.colours.length + 1);
    for (const bucket of this.buckets) counts[bucket + 1] += 1;
    for (let at = 1; at < counts.length; at += 1) counts[at] += counts[at - 1];
    this.starts = counts.slice();
    this.sorted = new Uint32Array(this.nodes.length);
    const next = counts.slice();
    this.buckets.forEach((bucket, node) => (this.sorted[next[bucket]++] = node));
    this.#legend();
    if (this.hovered >= 0) this.#showTip();
    this.draw();
  }

  #legend() {
    // Of names those that are on the map: over time there may have been many.
    const named = legend(this.way)?.filter((_, at) => this.starts[at + 1] > this.starts[at]);
    const said = `${this.way} ${theme()} ${named}`;
    if (said === this.legendSaid) return;
    this.legendSaid = said;
    if (named) {
      fill(this.legend, named.map(([name, colour]) => h("span", { class: "key" }, h("i", { style: { background: colour } }), name)));
    } else {
      const stops = Array.from({ length: 9 }, (_, at) => ramp(at / 8));
      fill(
        this.legend,
        h("span", {}, "0"),
        h("span", { class: "ramp", style: { background: `linear-gradient(90deg, ${stops.join(", ")})` } }),
        h("span", {}, "100 %"),
      );
    }
  }

  draw() {
    if (this.#dirty) return;
    this.#dirty = true;
    requestAnimationFrame((now) => {
      this.#dirty = false;
      if (this.#glide) {
        const share = Math.min(1, (now - this.#glide.since) / 220);
        const eased = 1 - (1 - share) ** 3;
        const { from, to } = this.#glide;
        for (const key of ["x", "y", "scale"]) this.#view[key] = from[key] + (to[key] - from[key]) * eased;
        if (share < 1) this.draw();
        else this.#glide = null;
      }
      this.#paint();
    });
  }

  #paint() {
    const { pen, size, ratio } = this;
    if (!size || !this.colours) return;
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--text").trim();
    const muted = style.getPropertyValue("--muted").trim();
    const { x: ox, y: oy, scale } = this.#view;
    const edge = CELL * scale;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.fillStyle = style.getPropertyValue("--ground").trim();
    pen.fillRect(0, 0, size.width, size.height);
    const { x, y } = this.placed;
    const visible = (node) => {
      const left = x[node] * scale + ox;
      const top = y[node] * scale + oy;
      return left < size.width && top < size.height && left + edge > 0 && top + edge > 0;
    };
    const radius = Math.min(8, edge * 0.16);
    for (let bucket = 0; bucket < this.colours.length; bucket += 1) {
      const first = this.starts[bucket];
      const last = this.starts[bucket + 1];
      if (first === last) continue;
      pen.fillStyle = this.colours[bucket];
      if (edge < 16) {
        const side = Math.max(edge, 1);
        for (let at = first; at < last; at += 1) {
          const node = this.sorted[at];
          if (visible(node)) pen.fillRect(x[node] * scale + ox, y[node] * scale + oy, side, side);
        }
        continue;
      }
      pen.beginPath();
      for (let at = first; at < last; at += 1) {
        const node = this.sorted[at];
        if (visible(node)) pen.roundRect(x[node] * scale + ox, y[node] * scale + oy, edge, edge, radius);
      }
      pen.fill();
    }
    if (edge >= 54) this.#details(visible, edge, radius, ink);
    pen.textBaseline = "middle";
    pen.textAlign = "left";
    for (const head of this.placed.heads) {
      pen.fillStyle = ink;
      pen.font = "600 13px system-ui, sans-serif";
      const top = Math.max(head.y * scale + oy, 0) + (HEAD * scale) / 2 - 2;
      pen.fillText(head.name, ox, top);
      const wide = pen.measureText(head.name).width;
      pen.fillStyle = muted;
      pen.font = "13px system-ui, sans-serif";
      pen.fillText(`${head.count} node${head.count === 1 ? "" : "s"}`, ox + wide + 10, top);
    }
    for (const [node, width] of [[this.hovered, 1.5], [this.chosen, 2.5]]) {
      if (node < 0 || node >= this.nodes.length) continue;
      pen.strokeStyle = ink;
      pen.lineWidth = width;
      pen.beginPath();
      pen.roundRect(x[node] * scale + ox - 2, y[node] * scale + oy - 2, Math.max(edge, 2) + 4, Math.max(edge, 2) + 4, radius + 2);
      pen.stroke();
    }
  }

  /** Close by: names, and what services and best-effort work take. */
  #details(visible, edge, radius, ink) {
    const { pen } = this;
    const { x: ox, y: oy, scale } = this.#view;
    const services = sort("LS");
    const best = sort("BE");
    const fill = empty();
    const ground = theme() === "dark" ? "#10151d" : "#ffffff";
    const wash = theme() === "dark" ? 0.66 : 0.74;
    const word = Math.min(13, 8 + edge / 26);
    const inner = edge - 20;
    const seen = [];
    for (let node = 0; node < this.nodes.length; node += 1) if (visible(node)) seen.push(node);
    const left = (node) => this.placed.x[node] * scale + ox;
    const top = (node) => this.placed.y[node] * scale + oy;
    // One thing of all nodes after another: another font or colour for each word takes longer than the words.
    // The colour as a wash below the words, and in full around them.
    pen.beginPath();
    for (const node of seen) pen.roundRect(left(node) + 2, top(node) + 2, edge - 4, edge - 4, Math.max(radius - 2, 0));
    pen.fillStyle = ground;
    pen.globalAlpha = wash;
    pen.fill();
    pen.globalAlpha = 1;
    pen.textBaseline = "alphabetic";
    pen.fillStyle = ink;
    pen.textAlign = "left";
    pen.font = `600 ${word}px system-ui, sans-serif`;
    if (this.shortFor !== inner) [this.shortFor, this.short] = [inner, new Map()];
    for (const node of seen) {
      if (!this.short.has(node)) this.short.set(node, shortened(pen, this.nodes[node].name, this.common, inner));
      pen.fillText(this.short.get(node), left(node) + 10, top(node) + 10 + word);
    }
    pen.font = `${word}px system-ui, sans-serif`;
    for (const node of seen) pen.fillText(`${Math.round(store.value(node, "used") / 2)} %`, left(node) + 10, top(node) + edge - 24);
    pen.textAlign = "right";
    for (const node of seen) pen.fillText(`${store.value(node, "pods")}`, left(node) + edge - 10, top(node) + edge - 24);
    const bar = Math.max(5, edge / 16);
    const down = edge - 18 + (8 - bar) / 2;
    pen.fillStyle = fill;
    for (const node of seen) pen.fillRect(left(node) + 10, top(node) + down, inner, bar);
    const wide = (node, name) => (inner * store.value(node, name)) / 200;
    pen.fillStyle = services;
    for (const node of seen) pen.fillRect(left(node) + 10, top(node) + down, Math.min(wide(node, "services"), inner), bar);
    pen.fillStyle = best;
    for (const node of seen) {
      const after = Math.min(wide(node, "services"), inner);
      pen.fillRect(left(node) + 10 + after, top(node) + down, Math.min(wide(node, "bestEffort"), inner - after), bar);
    }
  }

  // --- what is done -------------------------------------------------------------------------------

  #at(event) {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  #under(point) {
    const { x, y, scale } = this.#view;
    const across = (point.x - x) / scale;
    const down = (point.y - y) / scale;
    const reach = Math.max(CELL, 6 / scale);
    let found = -1;
    for (let node = 0; node < this.nodes.length; node += 1) {
      const dx = across - this.placed.x[node];
      const dy = down - this.placed.y[node];
      if (dx >= 0 && dy >= 0 && dx < reach && dy < reach) found = node;
    }
    return found;
  }

  #showTip(point = this.tipAt) {
    const node = this.nodes[this.hovered];
    this.tip.classList.toggle("shown", Boolean(node));
    if (!node) return;
    this.tipAt = point;
    fill(
      this.tip,
      h("b", {}, node.name),
      h("span", {}, `${percent(store.value(this.hovered, "used") / 2)} CPU`),
      h("span", {}, `${percent(store.value(this.hovered, "memory") / 2)} memory`),
      h("span", {}, `${store.value(this.hovered, "pods")} pods`),
    );
    const left = Math.min(point.x + 14, this.size.width - 170);
    this.tip.style.setProperty("transform", `translate(${left}px, ${Math.min(point.y + 14, this.size.height - 90)}px)`);
  }

  #listen() {
    const { canvas } = this;
    const touches = new Map();
    let moved = 0;
    let spread = 0;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      touches.set(event.pointerId, this.#at(event));
      moved = 0;
      spread = 0;
    });
    canvas.addEventListener("pointermove", (event) => {
      const point = this.#at(event);
      const before = touches.get(event.pointerId);
      if (!before) {
        const under = this.#under(point);
        if (under !== this.hovered) {
          this.hovered = under;
          this.draw();
        }
        canvas.classList.toggle("over", under >= 0);
        this.#showTip(point);
        return;
      }
      touches.set(event.pointerId, point);
      if (touches.size === 1) {
        moved += Math.abs(point.x - before.x) + Math.abs(point.y - before.y);
        if (moved > 3) {
          canvas.classList.add("panning");
          this.pan(point.x - before.x, point.y - before.y);
        }
      } else {
        const [one, other] = [...touches.values()];
        const now = Math.hypot(one.x - other.x, one.y - other.y);
        if (spread) this.zoom(now / spread, { x: (one.x + other.x) / 2, y: (one.y + other.y) / 2 }, false);
        spread = now;
        moved = 99;
      }
    });
    const up = (event) => {
      canvas.classList.remove("panning");
      if (!touches.delete(event.pointerId) || event.type === "pointercancel") return;
      const node = this.#under(this.#at(event));
      if (moved <= 3 && node >= 0) this.show(node, true);
    };
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", up);
    canvas.addEventListener("pointerleave", () => {
      this.hovered = -1;
      this.#showTip({ x: 0, y: 0 });
      this.draw();
    });
    canvas.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        this.zoom(Math.exp(-event.deltaY * 0.0016), this.#at(event), false);
      },
      { passive: false },
    );
    canvas.addEventListener("dblclick", (event) => this.zoom(2, this.#at(event)));
    canvas.addEventListener("keydown", (event) => this.#key(event));
  }

  #key(event) {
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.placed.columns, ArrowUp: -this.placed.columns };
    const pans = { ArrowRight: [-80, 0], ArrowLeft: [80, 0], ArrowDown: [0, -80], ArrowUp: [0, 80] };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.shiftKey && pans[event.key]) this.pan(...pans[event.key], true);
    else if (steps[event.key] && this.nodes.length) {
      const from = this.chosen < 0 ? -1 : this.placed.place[this.chosen];
      const to = this.chosen < 0 ? 0 : Math.min(Math.max(from + steps[event.key], 0), this.nodes.length - 1);
      this.show(this.placed.order[to]);
    } else if (event.key === "Home" && this.nodes.length) this.show(this.placed.order[0]);
    else if (event.key === "End" && this.nodes.length) this.show(this.placed.order[this.nodes.length - 1]);
    else if (event.key === "Enter" && this.chosen >= 0) this.choose(this.nodes[this.chosen].name);
    else if (event.key === "+" || event.key === "=") this.zoom(1.5);
    else if (event.key === "-") this.zoom(1 / 1.5);
    else if (event.key === "0") this.fit(true);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

/** A name as far as there is room: first goes what all names begin with. */
function shortened(pen, name, common, width) {
  if (pen.measureText(name).width <= width) return name;
  const text = name.slice(common) || name;
  if (pen.measureText(text).width <= width) return text;
  let end = text.length;
  while (end > 1 && pen.measureText(`${text.slice(0, end)}…`).width > width) end -= 1;
  return `${text.slice(0, end)}…`;
}
