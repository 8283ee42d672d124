// How a revision goes live: its step, what it would decide otherwise, guards that fail, and what happened.
import { h } from "./dom.js";
import { bar } from "./panel.js";
import { number } from "./words.js";

const KEPT = 12;

export function rollout(told) {
  const here = (told.observations ?? []).filter((one) => one.step === told.stepName);
  return h(
    "section",
    { class: "rollout", "aria-label": "Rollout" },
    h("h3", {}, "Rollout ", h("span", { class: "tag strong" }, told.phase ?? "not begun"), told.stepName && h("span", { class: "tag" }, `step ${told.stepName}`)),
    told.message && h("p", {}, told.message),
    h("p", { class: "muted small" }, [told.startTime && `began ${told.startTime}`, told.stepTime && `this step ${told.stepTime}`, told.previous && `${told.previous} decides until then`].filter(Boolean).join("; ")),
    (told.failing ?? []).map((one) => h("p", { class: "trouble" }, `Guard ${one.guard} fails since ${one.since}.`)),
    differences(here),
    (told.history ?? []).length > 0 &&
      h(
        "details",
        {},
        h("summary", {}, "What happened"),
        h("ol", {}, told.history.slice(-KEPT).map((one) => h("li", {}, h("span", { class: "muted small" }, `${one.time} `), one.message ?? one.event, one.by && h("span", { class: "muted small" }, ` by ${one.by}`)))),
      ),
  );
}

/** Answers of the old and the new revision to the same questions, of all processes together. */
function differences(observations) {
  const kinds = new Map();
  for (const one of observations.flatMap((observation) => observation.kinds ?? [])) {
    const sum = kinds.get(one.kind) ?? { compared: 0, different: 0, failed: 0 };
    for (const name of Object.keys(sum)) sum[name] += one[name] ?? 0;
    kinds.set(one.kind, sum);
  }
  if (!kinds.size) return h("p", { class: "muted" }, "No decision has been compared in this step.");
  const rows = [...kinds].sort(([one], [other]) => one.localeCompare(other));
  const spent = (name) => observations.reduce((sum, one) => sum + (one[name] ?? 0), 0);
  const before = spent("activeMicroseconds");
  return [
    h(
      "table",
      { class: "shadow" },
      h("caption", { class: "small" }, "What the new revision decides otherwise than the one that is live"),
      h("thead", {}, h("tr", {}, ["kind", "compared", "differ", "fail", "share that differs"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, rows.map(([kind, sum]) => {
        const share = sum.compared ? (100 * sum.different) / sum.compared : 0;
        const text = `${Math.round(share * 10) / 10} %`;
        return h(
          "tr",
          {},
          h("th", { scope: "row" }, kind),
          [sum.compared, sum.different, sum.failed].map((value) => h("td", { class: "number" }, number(value))),
          h("td", { class: "wide" }, text, bar([{ name: "differ", text, value: share, colour: "var(--accent)" }], 100)),
        );
      })),
    ),
    before > 0 && h("p", { class: "muted small" }, `It takes ${Math.round((100 * spent("candidateMicroseconds")) / before)} % of the time of the old one for the same inputs.`),
  ];
}
