// Policies where they stand: links to lines, and the files with the line that is meant.
import { h, dialog, notice } from "./dom.js";
import { get } from "./api.js";
import { place } from "./words.js";

/** A value as policies write it. */
export function said(value) {
  if (value === null || value === undefined) return "nothing";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** A link to a line of a policy: `file:line:column`. */
export function line(at) {
  if (!at) return null;
  const found = place(at);
  return h("button", { type: "button", class: "line", title: at, onclick: () => open(found.file, found.line) }, found.short);
}

/** Rules with the lines that they stand at. */
export function rules(list) {
  if (!list?.length) return null;
  return h(
    "ul",
    { class: "rules" },
    list.map((one) => {
      const at = one.at ?? (one.file ? `${one.file}:${one.line}:${one.column ?? 1}` : "");
      return h("li", {}, one.decision && h("code", {}, one.decision), line(at), one.exception && h("p", { class: "small" }, `exception of ${one.exception.owner} until ${one.exception.expires}: ${one.exception.reason}`), one.text && h("pre", {}, one.text));
    }),
  );
}

/** The facts that rules read, on demand. */
export function facts(list) {
  if (!list?.length) return null;
  return h(
    "details",
    {},
    h("summary", {}, list.length === 1 ? "1 fact" : `${list.length} facts`),
    h("table", { class: "facts" }, h("tbody", {}, list.map((fact) => h("tr", {}, h("th", { scope: "row" }, fact.fact), h("td", { class: "number" }, fact.present ? said(fact.value) : "not there"))))),
  );
}

export async function open(file, at) {
  try {
    const told = await get("source", { file });
    const lines = told.text.split("\n").map((text, index) => {
      const here = index + 1 === at;
      return h("div", { class: here ? "here" : "" }, h("span", { class: "no", "aria-hidden": "true" }, index + 1), h("span", {}, text || " "));
    });
    const box = dialog(place(`${file}:${at}`).short, [h("p", { class: "muted small path" }, file), h("div", { class: "code", tabindex: "0", role: "group", "aria-label": `Text of ${file}` }, lines)], { kind: "wide" });
    box.querySelector(".here")?.scrollIntoView({ block: "center" });
  } catch (error) {
    notice(error.message);
  }
}
