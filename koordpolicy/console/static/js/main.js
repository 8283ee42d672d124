// The page: which view is shown, light and dark, and keys that hold everywhere.
import { h, dialog, fill, notice } from "./dom.js";
import { store } from "./store.js";
import { tellTrouble } from "./trouble.js";
import { ClusterView } from "./cluster.js";
import { openSearch } from "./search.js";

const VIEWS = [
  { name: "cluster", title: "Cluster", make: async (route) => new ClusterView(route) },
  { name: "policies", title: "Policies", make: async (route) => new (await import("./rules.js")).RulesView(route) },
  { name: "playground", title: "Playground", make: async (route) => new (await import("./playground.js")).PlaygroundView(route) },
  { name: "groups", title: "Gangs & quotas", make: async (route) => new (await import("./groups.js")).GroupsView(route) },
  { name: "revisions", title: "Revisions", make: async (route) => new (await import("./revisions.js")).RevisionsView(route) },
];

const KEYS = [
  ["/", "search nodes, pods and decisions"],
  ["1 … 5", "the views"],
  ["m", "to the map; arrows choose a node, Enter opens it"],
  ["+ − 0", "zoom in, out, show all"],
  ["Shift + arrows", "pan the map"],
  ["c", "next colour of the map"],
  ["Space", "pause and go on"],
  [", .", "one moment back, one on"],
  ["Esc", "close what is open"],
  ["t", "light or dark"],
  ["?", "these keys"],
];

const place = document.getElementById("view");
let current = null;
let shown = "";
let asked = 0;

function theme(wanted) {
  const media = window.matchMedia("(prefers-color-scheme: dark)");
  const kept = wanted ?? localStorage.getItem("koordpolicy-theme");
  document.documentElement.dataset.theme = kept ?? (media.matches ? "dark" : "light");
  if (wanted) localStorage.setItem("koordpolicy-theme", wanted);
  store.dispatchEvent(new Event("frame"));
}

function turn() {
  theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
}

async function route() {
  const [name, ...rest] = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  const view = VIEWS.find((one) => one.name === name) ?? VIEWS[0];
  for (const tab of document.querySelectorAll(".tabs a")) {
    if (tab.dataset.view === view.name) {
      tab.setAttribute("aria-current", "page");
      tab.scrollIntoView({ block: "nearest", inline: "nearest" });
    } else tab.removeAttribute("aria-current");
  }
  document.title = `${view.title} · koordpolicy console`;
  if (shown === view.name && current) {
    current.go(rest);
    return;
  }
  const mine = ++asked;
  current?.end();
  current = null;
  shown = view.name;
  try {
    const made = await view.make(rest);
    if (mine !== asked) return made.end();
    current = made;
    fill(place, made.element);
  } catch (error) {
    fill(place, h("p", { class: "trouble page" }, error.message));
  }
}

function keys() {
  dialog("Keys", h("dl", { class: "keys-list" }, KEYS.map(([key, what]) => h("div", {}, h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)))));
}

function pressed(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (document.querySelector("dialog[open]")) return;
  const within = event.composedPath()[0];
  if (within.closest?.("input:not([type=range]):not([type=checkbox]), textarea, select, [contenteditable=true]")) return;
  const presses = within.closest?.("button, a, summary, input") && (event.key === " " || event.key === "Enter");
  if (presses) return;
  if (event.key === "/") openSearch();
  else if (event.key === "?") keys();
  else if (event.key === "t") turn();
  else if (/^[1-5]$/.test(event.key)) location.hash = `#/${VIEWS[Number(event.key) - 1].name}`;
  else if (!current?.key(event)) return;
  event.preventDefault();
}

async function begin() {
  theme();
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => theme());
  fill(document.getElementById("tabs"), VIEWS.map((one) => h("a", { href: `#/${one.name}`, "data-view": one.name }, one.title)));
  document.getElementById("theme").addEventListener("click", turn);
  document.getElementById("help").addEventListener("click", keys);
  document.getElementById("open-search").addEventListener("click", openSearch);
  document.addEventListener("keydown", pressed);
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    place.focus();
  });
  fill(place, h("p", { class: "muted page" }, "Asking for the cluster…"));
  try {
    await store.begin();
  } catch (error) {
    fill(place, h("div", { class: "page stack" }, h("h1", {}, "Nothing to show yet"), h("p", { class: "trouble", role: "alert" }, error.message), h("div", {}, h("button", { type: "button", onclick: () => location.reload() }, "Reload"))));
    return;
  }
  store.addEventListener("clock", tellTrouble);
  tellTrouble(); // what was in the way before the page was opened, too
  store.addEventListener("policies", () => {
    notice("The policies have changed: what is asked from now on is answered by the new ones.");
    if (current?.policiesChanged) return current.policiesChanged();
    shown = "";
    route();
  });
  window.addEventListener("hashchange", route);
  await route();
}

begin();
