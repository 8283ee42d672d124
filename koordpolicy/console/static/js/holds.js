// What holds a pod back on its node, and what it may be let go for: what policy says, by which line, and what is known of it.
import { h } from "./dom.js";
import { store } from "./store.js";
import { cores, number, revision, size } from "./words.js";
import { facts, line, rules, said } from "./source.js";

const of = (list, ...states) => list.filter((one) => states.includes(one.state));

/** What takes CPU from the pod, or slows it down otherwise. */
export function holds(told) {
  const held = of(told.holds, "holds");
  return [
    seen(told.agent),
    h("h4", {}, held.length ? "What it is held to" : "Nothing holds it back for certain"),
    list(held),
    more("It may be held back", of(told.holds, "may", "unknown")),
    folded("Leave it alone", of(told.holds, "spares")),
    folded("Asked for by nobody", of(told.holds, "off")),
  ];
}

/** For what its agent may let it go. */
export function evictions(told) {
  const now = of(told.evictions, "holds");
  const may = of(told.evictions, "may", "unknown");
  return [
    more("Its agent lets it go", now),
    more("Its agent may let it go", may),
    !now.length && !may.length && h("p", {}, "Its agent lets it go for nothing."),
    folded("Evictions of others alone", of(told.evictions, "spares")),
    folded("Evictions that nobody asks for", of(told.evictions, "off")),
  ];
}

const more = (title, found) => found.length > 0 && [h("h4", {}, title), list(found)];

const list = (found) => found.length > 0 && h("ul", { class: "holds" }, found.map(hold));

const folded = (title, found) => found.length > 0 && h("details", {}, h("summary", {}, `${title}: ${found.map((one) => one.title).join(", ")}`), list(found));

/** Text in which names stand between backticks. */
const marked = (text) => text.split("`").map((part, at) => (at % 2 ? h("code", {}, part) : part));

function hold(one) {
  const read = [...new Map(one.answers.flatMap((answer) => answer.facts).map((fact) => [fact.fact, fact])).values()];
  return h(
    "li",
    { "data-hold": one.title },
    h("p", {}, h("b", {}, `${one.title}: `), marked(one.says)),
    one.own && h("p", { class: "small" }, "The pod says so itself: ", h("code", {}, one.own)),
    one.answers.length > 0 &&
      h(
        "ul",
        { class: "rules" },
        one.answers.map((answer) => h("li", {}, h("code", {}, answer.decision), answer.error ? h("span", { class: "trouble" }, answer.error) : h("b", {}, said(answer.value)), answer.rules.map((rule) => line(`${rule.file}:${rule.line}:${rule.column}`)))),
      ),
    rules(one.settings),
    facts(read),
    one.unseen && store.world.kind !== "simulated" && h("p", { class: "muted small" }, "Not known here: ", marked(one.unseen), "."),
  );
}

/** What the cluster shows of the node's agent, and of what comes of all this. */
function seen(agent) {
  if (store.world.kind === "simulated") return h("p", { class: "muted" }, "Of this a simulation works out suppression alone; the rest is what policy says.");
  const used = [
    agent.used !== null && `it used ${cores(agent.used)} cores${agent.usedMemory === null ? "" : ` and ${size(agent.usedMemory)}`}`,
    agent.bestEffortUsed !== null && `all best-effort pods ${cores(agent.bestEffortUsed)} cores`,
    agent.bestEffortAllowed !== null && `these were held to ${cores(agent.bestEffortAllowed)}`,
  ].filter(Boolean);
  return [
    h(
      "p",
      {},
      agent.revision === null
        ? "No agent of koordpolicy says that it acts there: what policy says is not known to be carried out."
        : ["Its agent decides by ", h("code", { title: agent.revision }, revision(agent.revision)), agent.candidate && `, and tries ${revision(agent.candidate)} (${agent.stage})`, agent.same ? ", the policies that answer here." : "; what answers here may be another revision."],
      agent.dryRun && " An agent in a dry run is there, too, which changes nothing.",
    ),
    h("p", { class: "muted small" }, "What the node's kernel is told says ", h("code", {}, "koordpolicy explain node --agent"), "."),
    h("p", { class: "muted" }, agent.reportAgeSeconds === null ? "The node has not reported what is used there." : `By its report of ${number(Math.round(agent.reportAgeSeconds))} s ago, ${used.join(", ") || "nobody knows what pods used"}.`),
  ];
}
