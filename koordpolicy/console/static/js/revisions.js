// Revisions: which one decides here, and on a live cluster all that it tells of, with their stages and guards.
import { h, fill } from "./dom.js";
import { get } from "./api.js";
import { rollout } from "./rollout.js";
import { store } from "./store.js";

const AGAIN = 5000;

export class RevisionsView {
  constructor() {
    this.list = h("div", {}, h("p", { class: "muted" }, "Asking…"));
    this.element = h("div", { class: "page", tabindex: "0", role: "region", "aria-label": "Revisions" }, h("h1", {}, "Revisions"), this.list);
    this.again = null;
    this.#ask();
  }

  end() {
    this.over = true;
    clearTimeout(this.again);
  }

  go() {}

  key() {
    return false;
  }

  /** Ask, and on a live cluster ask again: rollouts go on by themselves. */
  async #ask() {
    clearTimeout(this.again);
    let own = answers([]);
    try {
      const told = await get("revisions");
      const text = JSON.stringify([told, store.world.revision, store.world.digest]);
      own = answers(told);
      if (this.over || text === this.shown) return;
      const focused = document.activeElement?.dataset?.action;
      const open = new Set([...this.list.querySelectorAll("details[open]")].map((one) => one.dataset.of));
      this.shown = text;
      fill(
        this.list,
        own,
        told.map((one) => revision(one, () => this.#ask())),
        !told.length && h("p", { class: "muted" }, store.world.kind === "live" ? "This cluster tells of no revisions, or they may not be read." : "Revisions that go live by stages are told by a live cluster (koordpolicy console --live)."),
      );
      // Whoever reads or presses here goes on where they were.
      for (const one of this.list.querySelectorAll("details")) one.open = open.has(one.dataset.of);
      if (focused) [...this.list.querySelectorAll("[data-action]")].find((one) => one.dataset.action === focused)?.focus();
    } catch (error) {
      this.shown = "";
      if (!this.over) fill(this.list, own, h("p", { class: "trouble" }, error.message));
    } finally {
      if (!this.over && store.world.kind === "live") this.again = setTimeout(() => this.#ask(), AGAIN);
    }
  }
}

/** What answers here, and whether it is what processes decide by. */
function answers(told) {
  const live = told.filter((one) => one.live);
  const same = live.filter((one) => one.here).map((one) => one.metadata.name);
  const other = live.length > 0 && !same.length;
  return h(
    "section",
    { class: "card", "aria-label": "What answers here" },
    h("h2", {}, "What answers here", other && h("span", { class: "tag strong" }, "not what is live"), same.length > 0 && h("span", { class: "tag" }, "live")),
    h("p", {}, store.world.revision),
    other && h("p", { class: "trouble" }, `Processes decide by ${live.map((one) => one.metadata.name).join(", ")}, which has another content: answers here may differ from what they do.`),
    same.length > 0 && h("p", {}, `The same content as ${same.join(", ")}, by which processes decide.`),
    h("p", { class: "muted small" }, `digest ${store.world.digest}`),
  );
}

function revision(one, changed) {
  const status = one.status ?? {};
  const spec = one.spec ?? {};
  const instances = status.instances ?? [];
  return h(
    "section",
    { class: "card" },
    h("h2", {}, one.metadata.name, status.phase && h("span", { class: "tag strong" }, status.phase), one.live && h("span", { class: "tag" }, "live"), one.here && h("span", { class: "tag" }, "answers here")),
    h("p", { class: "muted small" }, [spec.revision, spec.origin].filter(Boolean).join(" from ")),
    status.rollout && rollout(one, changed),
    instances.length > 0 &&
      h(
        "table",
        {},
        h("thead", {}, h("tr", {}, ["component", "instance", "state"].map((name) => h("th", { scope: "col" }, name)))),
        h("tbody", {}, instances.map((instance) => h("tr", {}, h("td", {}, instance.component), h("td", {}, instance.name), h("td", {}, instance.state)))),
      ),
    (status.conditions ?? []).map((condition) => h("p", { class: "small" }, h("b", {}, condition.type), ` ${condition.status} ${condition.message ?? ""}`)),
  );
}
