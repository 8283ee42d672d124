// A pod's story: what webhooks made of it, where the scheduler puts it, what holds it back, whether it is moved, and what was told of it.
import { h, fill } from "./dom.js";
import { get } from "./api.js";
import { store } from "./store.js";
import { failed, head, nodeLink, podLink, waiting } from "./panel.js";
import { evictions, holds } from "./holds.js";
import { moment, number } from "./words.js";
import { line, rules, said } from "./source.js";

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
  // Whoever asked for the end tells so in an Event; the pod itself knows only that it was asked for.
  const ended = told.ended ?? (last?.outcome ? { outcome: last.outcome, at: last.end } : null);
  const over = !told.on && ended;
  const title = told.on
    ? ["On ", nodeLink(told.on.node), told.on.start ? ` since ${moment(told.on.start, store.clock)}.` : "."]
    : scheduling.unknown
      ? [told.admission && !told.history.length ? "It comes later in this simulation." : told.events.told?.length ? "It is not there now: what was told of it is." : scheduling.unknown]
      : scheduling.gates?.length
        ? [`Held back by ${scheduling.gates.join(", ")}.`]
        : scheduling.node
          ? ["Waits, and would go to ", nodeLink(scheduling.node), " now."]
          : ["Finds no node."];
  return [
    h("p", { class: "lead" }, over ? [`${ENDS[ended.outcome] ?? ended.outcome} at ${moment(ended.at, store.clock)}`, last?.node && [" on ", nodeLink(last.node)], "."] : title),
    h(
      "ol",
      { class: "story" },
      told.admission && chapter("Webhook", admission(told.admission)),
      told.admitted && chapter("Webhook", admitted(told.admitted)),
      !((over || told.admission || told.events.told?.length) && scheduling.unknown) && chapter("Scheduler", schedulingOf(scheduling, told.on)),
      told.holds && chapter("Agent", told.holds.unknown ? h("p", { class: "muted" }, told.holds.unknown) : [holds(told.holds), evictions(told.holds)]),
      told.migration && chapter("Descheduler", migration(told.migration, told.pod)),
      told.history.length > 0 && chapter("So far", history(told.history)),
      (told.events.told || store.world.kind === "live") && chapter("What was told", events(told.events, told.pod)),
    ),
    h("p", { class: "muted small" }, `As of ${moment(told.at, store.clock)}. The scheduler is asked as if the pod came anew.`),
  ];
}

const chapter = (title, ...content) => h("li", {}, h("h3", {}, title), content);

const refused = (told, lead) => [h("p", { class: "trouble" }, lead, told.message), told.violations.map((one) => rules(one.places.map((place) => ({ ...place, decision: one.rule }))))];

const by = (profiles) => (profiles.applied.length ? ` by ${profiles.applied.join(", ")}` : "");

const places = (told) => {
  const count = told.changes.reduce((sum, one) => sum + one.lines.length, 0);
  return count === 1 ? "one place" : `${count} places`;
};

function admission(told) {
  if (told.unknown) return h("p", { class: "muted" }, told.unknown);
  if (told.message) return refused(told, "Refused: ");
  if (!told.changes.length) return h("p", {}, "Admitted as it was submitted.");
  return [h("p", {}, `Admitted, changed in ${places(told)}${by(told.profiles)}.`), changes("What was changed", told.changes)];
}

/** Of a pod that is there: no API server keeps what webhooks changed, so that policies are asked about what was submitted. */
function admitted(told) {
  if (told.unknown) return h("p", { class: "muted" }, told.unknown);
  const whence = told.source
    ? `By ${told.source}: who wrote a field of a pod, no API server keeps.`
    : "Nobody keeps how it was submitted. Policies are asked as if it had come without what they set; its owner may have written the same.";
  if (told.message) return [refused(told, "Created anew, it would be refused: "), h("p", { class: "muted small" }, whence)];
  const lines = told.changes.flatMap((step) => step.lines.filter((one) => one.state !== "there"));
  const strange = told.beside.filter((one) => !one.by);
  const since = told.beside.filter((one) => one.by);
  return [
    h("p", {}, told.changes.length ? `Admission sets ${places(told)} of it${by(told.profiles)}.` : "No policy changes anything of it.", " ", told.same ? h("b", {}, "Admitted today, it would be as it is.") : h("b", {}, "Admitted today, it would be otherwise:")),
    !told.same && h("ul", { class: "plain", "data-differs": "" }, lines.map((one) => h("li", {}, compared(one))), strange.map((one) => h("li", {}, compared(one)))),
    told.violations.length > 0 && h("ul", { class: "plain" }, told.violations.map((one) => h("li", {}, h("b", {}, one.enforcement), ` ${one.reason}: ${one.message}`, rules(one.places.map((place) => ({ ...place, decision: one.rule })))))),
    told.changes.length > 0 && changes("What admission sets", told.changes),
    since.length > 0 && h("details", {}, h("summary", {}, "What was written since"), since.map((one) => h("p", { class: "change" }, h("code", {}, one.path), one.actual !== undefined && h("ins", {}, said(one.actual)), h("span", { class: "muted" }, one.by)))),
    h("p", { class: "muted small" }, whence),
  ];
}

/** What policies would make of a field, and what it is. */
const compared = (one) => [
  h("code", {}, one.path),
  " is ",
  one.state === "missing" || (!one.state && one.actual === undefined) ? "not there" : h("del", {}, said(one.actual)),
  one.value !== undefined ? [", and would be ", h("ins", {}, said(one.value))] : ", and would not be set",
];

function changes(title, steps) {
  return h(
    "details",
    {},
    h("summary", {}, title),
    steps.map((step) => [
      step.lines.map((one) => h("p", { class: "change" }, h("code", {}, one.path), one.old !== undefined && h("del", {}, said(one.old)), one.value !== undefined && h("ins", {}, said(one.value)), one.state && one.state !== "there" && h("span", { class: "tag" }, one.state === "missing" ? "not on the pod" : "otherwise on the pod"))),
      step.places.length ? rules(step.places.map((place) => ({ ...place, decision: step.decision }))) : h("p", { class: "muted small" }, h("code", {}, step.decision), ", an object of the cluster"),
    ]),
  );
}

/** Events, the latest last: those of our components, and of others those that warn; the rest on demand. */
function events(told, pod) {
  if (!told.told) return h("p", { class: "muted" }, `Events cannot be read: ${told.unknown}`);
  const shown = told.told.filter((one) => one.ours || one.warning);
  const rest = told.told.filter((one) => !(one.ours || one.warning));
  return [
    shown.length ? h("ul", { class: "plain told" }, shown.map((one) => event(one, pod))) : h("p", { class: "muted" }, "Nothing by our components: an API server forgets Events, mostly after an hour."),
    rest.length > 0 && h("details", {}, h("summary", {}, rest.length === 1 ? "1 more of others" : `${rest.length} more of others`), h("ul", { class: "plain told" }, rest.map((one) => event(one, pod)))),
    told.unknown && h("p", { class: "muted small" }, told.unknown),
  ];
}

function event(one, pod) {
  return h(
    "li",
    {},
    h("span", { class: "muted" }, one.last ? `${moment(one.last, store.clock)} ` : "", one.by.replace(/^koordpolicy-/, ""), one.about === `Pod ${pod}` ? "" : `, about ${one.about}`, one.earlier ? ", about an earlier pod of this name" : ""),
    " ",
    h("b", { class: one.warning ? "trouble" : "" }, one.reason),
    `: ${one.message}`,
    one.count > 1 && h("span", { class: "tag" }, `${number(one.count)} times`),
    rules(one.rules),
  );
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
