// One field for everything by name: nodes, pods, decisions, views.
import { h, dialog, fill } from "./dom.js";
import { get } from "./api.js";

const VIEW = { node: "cluster/node", pod: "cluster/pod", decision: "policies" };

export function openSearch() {
  const list = h("ul", { class: "hits", id: "hits", role: "listbox", "aria-label": "Found" });
  const input = h("input", { type: "search", role: "combobox", "aria-expanded": "true", "aria-controls": "hits", "aria-autocomplete": "list", "aria-label": "Search nodes, pods and decisions", placeholder: "Node, pod or decision", autocomplete: "off", spellcheck: "false" });
  const box = dialog("Search", [input, list], { kind: "search" });
  let hits = [];
  let at = 0;
  let asked = 0;
  const choose = (hit) => {
    box.close();
    location.hash = `#/${VIEW[hit.what]}/${encodeURIComponent(hit.name)}`;
  };
  const show = () => {
    fill(
      list,
      hits.map((hit, index) => h("li", { id: `hit-${index}`, role: "option", "aria-selected": String(index === at), onclick: () => choose(hit) }, h("span", { class: "what" }, hit.what), h("span", { class: "hit" }, hit.name), hit.on && h("span", { class: "muted" }, hit.on))),
    );
    input.setAttribute("aria-activedescendant", hits.length ? `hit-${at}` : "");
    list.children[at]?.scrollIntoView({ block: "nearest" });
  };
  const ask = async () => {
    const mine = ++asked;
    try {
      const found = await get("search", { q: input.value });
      if (mine !== asked) return;
      const words = input.value.toLowerCase();
      hits = found.sort((one, other) => rank(one, words) - rank(other, words)).slice(0, 60);
      at = 0;
      show();
    } catch (error) {
      fill(list, h("li", { class: "trouble" }, error.message));
    }
  };
  input.addEventListener("input", ask);
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && hits.length) {
      at = (at + step + hits.length) % hits.length;
      show();
    } else if (event.key === "Enter" && hits[at]) choose(hits[at]);
    else return;
    event.preventDefault();
  });
  input.focus();
  ask();
}

function rank(hit, words) {
  const name = hit.name.toLowerCase();
  const last = name.split("/").at(-1);
  if (name === words || last === words) return 0;
  return last.startsWith(words) ? 1 : 2;
}
