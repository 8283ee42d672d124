// The first view: the map, the sums above it, the panel of what is chosen beside it, and time below.
import { h, fill } from "./dom.js";
import { store } from "./store.js";
import { ClusterMap } from "./map.js";
import { Timeline } from "./timeline.js";
import { nodePanel } from "./panel.js";
import { podPanel } from "./story.js";
import { number, percent } from "./words.js";
import { sort } from "./colours.js";

export class ClusterView {
  constructor(route) {
    this.map = new ClusterMap((name) => (location.hash = `#/cluster/node/${encodeURIComponent(name)}`));
    this.timeline = new Timeline();
    this.sums = h("dl", { class: "sums" });
    this.panel = h("aside", { class: "panel", hidden: true, "aria-label": "What is chosen", tabindex: "-1" });
    this.element = h(
      "div",
      { class: "cluster" },
      h("h1", { class: "visually-hidden" }, "Cluster"),
      h("div", { class: "sums-scroll", tabindex: "0", role: "region", "aria-label": "The whole cluster" }, this.sums),
      h("div", { class: "stage" }, this.map.element, this.panel),
      this.timeline.element,
    );
    this.show = () => this.#sums();
    store.addEventListener("frame", this.show);
    // A picture without reports of its nodes has nothing else to be coloured by.
    if (store.world.kind !== "simulated" && !store.sums.used) this.map.colour("requested");
    this.#sums();
    this.go(route);
  }

  end() {
    store.removeEventListener("frame", this.show);
    this.map.end();
    this.timeline.end();
    this.shown?.end?.();
  }

  /** Show the node or pod of a route, or nothing beside the map. */
  go([what, name]) {
    this.shown?.end?.();
    this.shown = null;
    const close = () => {
      location.hash = "#/cluster";
      this.map.canvas.focus();
    };
    if (what === "node" && name) {
      const at = store.world.nodes.findIndex((node) => node.name === name);
      if (at >= 0 && this.map.chosen !== at && this.map.size) this.map.show(at);
      else this.map.chosen = at;
      this.shown = nodePanel(name, at, close);
    } else if (what === "pod" && name) this.shown = podPanel(name, close);
    else this.map.chosen = -1;
    this.panel.hidden = !this.shown;
    if (this.shown) {
      fill(this.panel, this.shown.element);
      this.panel.scrollTop = 0;
    }
    this.map.draw();
  }

  key(event) {
    if (event.key === "c") this.map.nextColour();
    else if (event.key === " ") store.toggle();
    else if (event.key === ",") store.go(store.at - 1);
    else if (event.key === ".") this.timeline.step();
    else if (event.key === "Escape" && this.shown) location.hash = "#/cluster";
    else if (event.key === "m") this.map.canvas.focus();
    else if (["+", "=", "-", "0"].includes(event.key)) {
      if (event.key === "0") this.map.fit(true);
      else this.map.zoom(event.key === "-" ? 1 / 1.5 : 1.5);
    } else return false;
    return true;
  }

  #sums() {
    const one = store.sums;
    const rows = [
      ["CPU in use", percent(one.used ?? 0)],
      ["services", percent(one.services ?? 0), sort("LS")],
      ["best effort", percent(one.bestEffort ?? 0), sort("BE")],
      ["requested", percent(one.requested ?? 0)],
      ["memory", percent(one.memory ?? 0)],
      ["pods", number(one.running ?? 0)],
      ["waiting", number(one.pending ?? 0)],
      one.suppressed !== undefined && ["nodes held back", number(one.suppressed)],
      one.evicted !== undefined && ["evicted", number(one.evicted)],
    ].filter(Boolean);
    if (this.sums.childElementCount !== rows.length) {
      fill(this.sums, rows.map(([name]) => h("div", {}, h("dt", {}, h("i"), name), h("dd", {}, ""))));
    }
    rows.forEach(([, value, colour], at) => {
      const row = this.sums.children[at];
      row.lastElementChild.textContent = value;
      const dot = row.firstElementChild.firstElementChild;
      dot.hidden = !colour;
      if (colour) dot.style.setProperty("background", colour);
    });
  }
}
