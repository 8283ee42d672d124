// How a revision goes live: its step, what it would decide otherwise, guards that fail, what happened, and what its owner may ask of it.
import { h, dialog, notice } from "./dom.js";
import { post } from "./api.js";
import { bar } from "./panel.js";
import { store } from "./store.js";
import { number } from "./words.js";

const KEPT = 12;

const ACTIONS = {
  pause: { title: "Pause", means: "It stays in the present step until somebody resumes it." },
  resume: { title: "Resume", means: "It goes on where it was paused." },
  abort: { title: "Abort", means: "All processes return to the old revision, for good: this revision cannot go on afterwards." },
};

/** The rollout of a PolicyRevision; `changed` is called once something was asked of it. */
export function rollout(revision, changed) {
  const told = revision.status.rollout;
  const name = revision.metadata.name;
  const here = (told.observations ?? []).filter((one) => one.step === told.stepName);
  return h(
    "section",
    { class: "rollout", "aria-label": `Rollout of ${name}` },
    h("h3", {}, "Rollout ", h("span", { class: "tag strong" }, told.phase ?? "not begun"), told.stepName && h("span", { class: "tag" }, `step ${told.stepName}`)),
    told.message && h("p", {}, told.message),
    h("p", { class: "muted small" }, [told.startTime && `began ${told.startTime}`, told.stepTime && `this step ${told.stepTime}`, told.previous && `${told.previous} decides until then`].filter(Boolean).join("; ")),
    (told.failing ?? []).map((one) => h("p", { class: "trouble" }, `Guard ${one.guard} fails since ${one.since}.`)),
    revision.asked && h("p", { class: "asked" }, `Asked to ${revision.asked.action}${revision.asked.by ? ` by ${revision.asked.by}` : ""}; not obeyed yet.`),
    store.world.steersRollouts &&
      revision.actions?.length > 0 &&
      h("div", { class: "steer", role: "group", "aria-label": `Steer ${name}` }, revision.actions.map((action) => h("button", { type: "button", "data-action": `${name} ${action}`, "aria-haspopup": "dialog", onclick: () => confirm(name, action, changed) }, `${ACTIONS[action].title}…`))),
    differences(here),
    (told.history ?? []).length > 0 &&
      h(
        "details",
        { "data-of": name },
        h("summary", {}, "What happened"),
        h("ol", {}, told.history.slice(-KEPT).map((one) => h("li", {}, h("span", { class: "muted small" }, `${one.time} `), one.message ?? one.event, one.by && h("span", { class: "muted small" }, ` by ${one.by}`)))),
      ),
  );
}

/** Asked once more before it is done: what it means, and for which revision. */
function confirm(name, action, changed) {
  const { title, means } = ACTIONS[action];
  const trouble = h("p", { class: "trouble", role: "alert" });
  const go = h("button", { class: "primary" }, title);
  const form = h(
    "form",
    { class: "stack" },
    h("p", {}, h("code", {}, name)),
    h("p", {}, means),
    trouble,
    h("div", { class: "steer" }, go, h("button", { type: "button", onclick: () => box.close() }, "Leave it as it is")),
  );
  const box = dialog(`${title} this rollout?`, form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    go.disabled = true;
    trouble.textContent = "";
    try {
      const { said } = await post("rollout", { name, action });
      box.close();
      notice(said);
      await changed();
    } catch (error) {
      trouble.textContent = error.message;
      go.disabled = false;
    }
  });
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
