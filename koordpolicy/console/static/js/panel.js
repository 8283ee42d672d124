// What is chosen: a node with its pods, cards and zones; a pod with its story.
import { cross, h, fill } from "./dom.js";
import { get } from "./api.js";
import { store } from "./store.js";
import { ramp, sort } from "./colours.js";
import { cores, moment, number, percent, revision, size } from "./words.js";
import { line, rules, said } from "./source.js";

const link = (view, name, text = name) => h("a", { href: `#/${view}/${encodeURIComponent(name)}` }, text);
export const podLink = (name, text) => link("cluster/pod", name, text);
export const nodeLink = (name, text) => link("cluster/node", name, text);

function head(what, name, close) {
  return h(
    "header",
    { class: "panel-head" },
    h("div", {}, h("p", { class: "eyebrow" }, what), h("h2", {}, name)),
    h("button", { type: "button", class: "quiet icon", "aria-label": "Close", onclick: close }, cross()),
  );
}

const waiting = () => h("p", { class: "muted" }, "Asking…");
const failed = (error) => h("p", { class: "trouble" }, error.message);

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
    told.facts?.length > 0 &&
      h(
        "details",
        {},
        h("summary", {}, `${told.facts.length} facts`),
        h("table", { class: "facts" }, h("tbody", {}, told.facts.map((fact) => h("tr", {}, h("th", { scope: "row" }, fact.fact), h("td", { class: "number" }, fact.present ? said(fact.value) : "not there"))))),
      ),
  ];
}

// --- a pod's story --------------------------------------------------------------------------------

export function podPanel(name, close) {
  const body = h("div", { "aria-busy": "true" }, waiting());
  const element = h("div", { class: "panel-in" }, head("Pod", name.replace(/^default\//, ""), close), body);
  let over = false;
  get("pod", { name }).then(
    (told) => {
      if (over) return;
      body.removeAttribute("aria-busy");
      fill(body, story(told));
    },
    (error) => !over && fill(body, failed(error)),
  );
  return { element, end: () => (over = true) };
}

const ENDS = {
  finished: "Finished",
  preempted: "Preempted for others",
  evicted: "Evicted by its node",
  moved: "Evicted by the descheduler",
  failed: "Failed",
  displaced: "Evicted through the Eviction API",
  gone: "Gone, and nobody says why,",
  lost: "Lost with its node",
};

function story(told) {
  const scheduling = told.scheduling;
  const last = told.history.at(-1);
  const over = !told.on && last?.outcome;
  const title = told.on
    ? ["On ", nodeLink(told.on.node), told.on.start ? ` since ${moment(told.on.start, store.clock)}.` : "."]
    : scheduling.unknown
      ? [told.admission && !told.history.length ? "It comes later in this simulation." : scheduling.unknown]
      : scheduling.gates?.length
        ? [`Held back by ${scheduling.gates.join(", ")}.`]
        : scheduling.node
          ? ["Waits, and would go to ", nodeLink(scheduling.node), " now."]
          : ["Finds no node."];
  return [
    h("p", { class: "lead" }, over ? [`${ENDS[last.outcome] ?? last.outcome} at ${moment(last.end, store.clock)} on `, nodeLink(last.node), "."] : title),
    h(
      "ol",
      { class: "story" },
      told.admission && chapter("Webhook", admission(told.admission)),
      !((over || told.admission) && scheduling.unknown) && chapter("Scheduler", schedulingOf(scheduling, told.on)),
      told.node && chapter("Agent", agent(told)),
      told.migration && chapter("Descheduler", migration(told.migration, told.pod)),
      told.history.length > 0 && chapter("So far", history(told.history)),
    ),
    h("p", { class: "muted small" }, `As of ${moment(told.at, store.clock)}. The scheduler is asked as if the pod came anew.`),
  ];
}

const chapter = (title, ...content) => h("li", {}, h("h3", {}, title), content);

function admission(told) {
  if (told.unknown) return h("p", { class: "muted" }, told.unknown);
  if (told.message) return [h("p", { class: "trouble" }, "Refused: ", told.message), told.violations.map((one) => rules(one.places.map((place) => ({ ...place, decision: one.rule }))))];
  if (!told.changes.length) return h("p", {}, "Admitted as it was submitted.");
  const count = told.changes.reduce((sum, one) => sum + one.lines.length, 0);
  return [
    h("p", {}, `Admitted, changed in ${count === 1 ? "one place" : `${count} places`}${told.profiles.applied.length ? ` by ${told.profiles.applied.join(", ")}` : ""}.`),
    h(
      "details",
      {},
      h("summary", {}, "What was changed"),
      told.changes.map((step) => [
        step.lines.map((one) => h("p", { class: "change" }, h("code", {}, one.path), one.old !== undefined && h("del", {}, said(one.old)), one.value !== undefined && h("ins", {}, said(one.value)))),
        rules(step.places.map((place) => ({ ...place, decision: step.decision }))),
      ]),
    ),
  ];
}

function schedulingOf(told, on) {
  if (told.unknown) return h("p", { class: "muted" }, told.unknown);
  const facts = Object.entries(told.podFacts).map(([name, value]) => `${name} ${value === "" ? "none" : value}`).join(", ");
  const lead = told.node
    ? on && told.node !== on.node
      ? ["Asked anew, it would go to ", nodeLink(told.node), "."]
      : [on ? "It would go there again." : ["It would go to ", nodeLink(told.node), "."]]
    : [told.message ?? "No node takes it."];
  return [
    h("p", {}, lead, ` ${number(told.feasible)} of ${number(told.nodes)} nodes passed the filters.`),
    h("p", { class: "muted" }, `${facts}; profile ${told.profile}`),
    told.refusals.length > 0 &&
      h("ul", { class: "plain" }, told.refusals.map((one) => h("li", {}, h("b", {}, number(one.nodes)), ` ${one.filter}: ${one.reason} `, line(one.rule)))),
    told.advice?.length > 0 && [h("h4", {}, "What would help"), h("ul", {}, told.advice.map((one) => h("li", {}, `${one}.`)))],
    told.preemption && h("p", {}, `Room would be made on ${told.preemption.node}: ${told.preemption.victims.join(", ") || "nobody"} would have to go.`),
    told.best.length > 0 &&
      h(
        "details",
        { open: !on },
        h("summary", {}, "Best nodes, score by score"),
        h(
          "div",
          { class: "scroll", tabindex: "0", role: "group", "aria-label": "Scores" },
          h(
            "table",
            {},
            h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "node"), h("th", { scope: "col", class: "number" }, "total"), told.scores.map((one) => h("th", { scope: "col", class: "number" }, one.name.replace(/NodeResources|Scheduling|Allocation/g, ""))))),
            h("tbody", {}, told.best.map((one) => h("tr", {}, h("td", {}, nodeLink(one.node)), h("td", { class: "number" }, number(one.total)), told.scores.map((score) => h("td", { class: "number" }, number(one.scores[score.name] ?? 0)))))),
          ),
        ),
        rules(told.scores.map((one) => ({ decision: one.name, at: one.rule }))),
      ),
  ];
}

function agent(told) {
  if (told.node.unknown) return h("p", { class: "muted" }, told.node.unknown);
  return [
    h("p", {}, told.heldBack ? "It is best-effort work, which yields to services: all of it together may use what this says." : "It is not best-effort work, so it is not held back. What such work may use beside it:"),
    answer(told.node),
  ];
}

/** Why the pod is moved, where it goes, and what that waits for; or how it came here in place of another. */
function migration(told, pod) {
  if (told.unknown) return h("p", { class: "muted" }, told.unknown);
  const by = told.strategy ? [`${told.strategy}${told.profile ? ` of ${told.profile}` : ""}: ${told.reason ?? "it gives no reason"} `, line(told.rule)] : "a user: no strategy stands in its annotations";
  const kept = told.destination && told.destination !== told.on;
  const came = told.newPod === pod;
  return [
    h("p", {}, came ? ["It came in place of ", podLink(told.pod, told.pod.replace(/^default\//, "")), ", which was moved."] : told.ended ? "It was to be moved, which is over." : "It is being moved.", " ", h("span", { class: "tag" }, told.phase)),
    h("p", {}, "By ", by),
    kept
      ? h("p", {}, came || told.ended ? "Room was kept on " : "It goes to ", nodeLink(told.destination), told.reservation && `, where ${told.reservation} ${told.ended ? "kept" : "keeps"} room`, ".")
      : !told.ended && h("p", {}, told.mode === "EvictDirectly" ? "No room is kept: the scheduler finds a node for the new pod when it comes." : "It has no destination yet: the scheduler gives its Reservation one."),
    told.newPod && !came && h("p", {}, podLink(told.newPod), " has taken the room."),
    told.waitsFor.length > 0 && [
      h("h4", {}, "What it waits for"),
      h("ul", { class: "rules" }, told.waitsFor.map((one) => h("li", {}, one.what, one.decision && [" ", h("code", {}, one.decision), line(one.rule)]))),
    ],
    told.ended && (told.ended.reason || told.ended.message) && h("p", {}, [told.ended.reason, told.ended.message].filter(Boolean).join(": ")),
    !told.ended && told.secondsLeft > 0 && h("p", { class: "muted small" }, `${number(Math.round(told.secondsLeft))} seconds are left of its time (${told.migration}).`),
  ];
}

function history(spans) {
  return h(
    "ul",
    { class: "plain" },
    spans.map((span) => h("li", {}, span.start ? `${moment(span.start, store.clock)} ` : "", span.node ? ["on ", nodeLink(span.node)] : "without a node", span.end ? ` until ${moment(span.end, store.clock)}${span.outcome ? `, ${span.outcome}` : ""}` : ", still there")),
  );
}
