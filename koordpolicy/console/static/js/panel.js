// A node that is chosen, with its pods, cards and zones; and what panels have in common.
import { cross, h, fill } from "./dom.js";
import { get } from "./api.js";
import { store } from "./store.js";
import { ramp, sort } from "./colours.js";
import { cores, percent, revision, size } from "./words.js";
import { facts, rules, said } from "./source.js";

const link = (view, name, text = name) => h("a", { href: `#/${view}/${encodeURIComponent(name)}` }, text);
export const podLink = (name, text) => link("cluster/pod", name, text);
export const nodeLink = (name, text) => link("cluster/node", name, text);

export function head(what, name, close) {
  return h(
    "header",
    { class: "panel-head" },
    h("div", {}, h("p", { class: "eyebrow" }, what), h("h2", {}, name)),
    h("button", { type: "button", class: "quiet icon", "aria-label": "Close", onclick: close }, cross()),
  );
}

export const waiting = () => h("p", { class: "muted" }, "Asking…");
export const failed = (error) => h("p", { class: "trouble" }, error.message);

/** A bar of parts of a whole, with what they are in words beside it. */
export function bar(parts, whole) {
  let at = 0;
  return h(
    "div",
    { class: "bar", role: "img", "aria-label": parts.map((one) => `${one.name} ${one.text}`).join(", ") },
    parts.map((one) => {
      const wide = Math.max(0, Math.min((100 * one.value) / Math.max(whole, 1e-9), 100 - at));
      const part = h("i", { class: one.kind ?? "", style: { left: `${at}%`, width: `${wide}%`, background: one.colour ?? "" } });
      at += wide;
      return part;
    }),
  );
}

export function nodePanel(name, at, close) {
  const live = h("div", {});
  const pods = h("div", {}, waiting());
  const room = h("div", {});
  const why = h("div", {});
  const node = store.world.nodes[at];
  const element = h("div", { class: "panel-in" }, head("Node", name, close), node ? [live, pods, room, why] : h("p", { class: "trouble" }, "There is no such node now."));
  if (!node) return { element };
  const show = () => fill(live, figures(node, at));
  let asked = 0;
  const ask = async () => {
    const mine = ++asked;
    try {
      const told = await get("node", { name, frame: store.at });
      if (mine === asked) fill(pods, podTable(told.pods));
    } catch (error) {
      if (mine === asked) fill(pods, failed(error));
    }
  };
  get("node", { name, room: 1 }).then((told) => fill(room, roomOf(told)), (error) => fill(room, failed(error)));
  fill(why, h("h3", {}, "Why best-effort work gets what it gets"), h("button", { type: "button", onclick: () => target(why, name) }, "Ask the policies"));
  show();
  ask();
  let due = null;
  const changed = () => {
    show();
    due ??= setTimeout(() => {
      due = null;
      ask();
    }, 400);
  };
  store.addEventListener("frame", changed);
  return { element, end: () => (clearTimeout(due), (asked = -1), store.removeEventListener("frame", changed)) };
}

function figures(node, at) {
  const value = (name) => store.value(at, name) / 2;
  const services = value("services");
  const best = value("bestEffort");
  const withheld = value("withheld");
  const part = (share) => cores((node.cpu * share) / 100);
  const decides = store.world.kind === "simulated" ? "" : store.revisions[store.value(at, "revision")];
  return [
    h("p", { class: "muted" }, `${cores(node.cpu)} cores, ${size(node.memory)}${Object.hasOwn(node.labels, "pool") ? `, pool ${node.labels.pool}` : ""}`),
    h(
      "div",
      { class: "figure" },
      h("div", { class: "row" }, h("span", {}, "CPU"), h("b", {}, percent(value("used")))),
      bar(
        [
          { name: "services", text: percent(services), value: services, colour: sort("LS") },
          { name: "best effort", text: percent(best), value: best, colour: sort("BE") },
          { name: "withheld", text: percent(withheld), value: withheld, kind: "hatched" },
        ],
        100,
      ),
      h(
        "p",
        { class: "keys" },
        h("span", { class: "key" }, h("i", { style: { background: sort("LS") } }), `services ${part(services)}`),
        h("span", { class: "key" }, h("i", { style: { background: sort("BE") } }), `best effort ${part(best)}`),
        withheld > 0 && h("span", { class: "key" }, h("i", { class: "hatched" }), `withheld ${part(withheld)}`),
      ),
    ),
    h(
      "div",
      { class: "pair" },
      h("div", { class: "figure" }, h("div", { class: "row" }, h("span", {}, "requested"), h("b", {}, percent(value("requested")))), bar([{ name: "requested", text: percent(value("requested")), value: value("requested"), colour: ramp(0.65) }], 100)),
      h("div", { class: "figure" }, h("div", { class: "row" }, h("span", {}, "memory"), h("b", {}, percent(value("memory")))), bar([{ name: "memory", text: percent(value("memory")), value: value("memory"), colour: ramp(0.65) }], 100)),
    ),
    decides && h("p", { class: "muted" }, "Its agent decides by ", h("code", { title: decides }, revision(decides)), "."),
    value("offered") > 0 && h("p", { class: "muted" }, `Offered a second time, to best-effort work: ${part(value("offered"))} cores.`),
  ];
}

function podTable(pods) {
  if (!pods.length) return h("p", { class: "muted" }, "No pods.");
  return [
    h("h3", {}, pods.length === 1 ? "1 pod" : `${pods.length} pods`),
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "pod"), h("th", { scope: "col" }, "class"), h("th", { scope: "col", class: "number" }, "cores"))),
      h(
        "tbody",
        {},
        pods.map((pod) =>
          h(
            "tr",
            {},
            h("td", {}, podLink(pod.pod, pod.pod.replace(/^default\//, ""))),
            h("td", {}, h("span", { class: "key" }, h("i", { style: { background: sort(pod.class) } }), pod.class || "none")),
            h("td", { class: "number" }, cores(pod.cpu)),
          ),
        ),
      ),
    ),
  ];
}

function owners(list, part) {
  if (!list.length) return h("span", { class: "muted" }, "nobody's");
  return list.map((one, at) => [at ? ", " : "", podLink(one.pod, one.pod.replace(/^default\//, "")), ` ${part(one)}`]);
}

function roomOf(told) {
  const parts = [];
  if (told.devices?.length) {
    parts.push(
      h("h3", {}, "Cards"),
      h(
        "table",
        {},
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "card"), h("th", { scope: "col" }, "taken"), h("th", { scope: "col" }, "by"))),
        h("tbody", {}, told.devices.map((one) =>
          h(
            "tr",
            {},
            h("td", {}, `${one.type} ${one.minor}`),
            h("td", {}, one.healthy ? percent(one.usedPercent) : h("span", { class: "trouble" }, "not healthy")),
            h("td", {}, owners(one.owners, (owner) => percent(owner.percent))),
          ),
        )),
      ),
    );
  }
  if (told.zones?.length) {
    parts.push(
      h("h3", {}, "Zones and CPUs"),
      told.zones.map((zone) => h("p", {}, h("b", {}, `zone ${zone.zone} `), `CPUs ${zone.cpus}, ${zone.free} free. `, owners(zone.owners, (owner) => `has ${owner.cpus}`))),
    );
  }
  return parts;
}

async function target(place, name) {
  fill(place, h("h3", {}, "Why best-effort work gets what it gets"), waiting());
  try {
    const told = await get("answer", { decision: "CPUSuppress.target", name });
    fill(place, h("h3", {}, "Why best-effort work gets what it gets"), answer(told));
  } catch (error) {
    fill(place, h("h3", {}, "Why best-effort work gets what it gets"), failed(error));
  }
}

/** An answer with the rules that made it and the facts they read. */
export function answer(told) {
  return [
    h("p", {}, h("code", {}, told.decision), " is ", told.error ? h("span", { class: "trouble" }, told.error) : h("b", {}, said(told.value))),
    rules(told.rules),
    facts(told.facts),
  ];
}
