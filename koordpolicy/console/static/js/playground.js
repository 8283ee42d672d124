// Policies that are tried: a file in an editor, what the compiler finds, and what changes by it for one node or pod.
import { h, fill, notice } from "./dom.js";
import { get, post } from "./api.js";
import { store } from "./store.js";
import { shownDifferences } from "./diff.js";
import { rules, said } from "./source.js";

const PAUSE = 350;
const KEPT = "koordpolicy-edited";

export class PlaygroundView {
  constructor() {
    this.files = h("ul", { class: "files" });
    this.place = h("div", { class: "editor" });
    this.state = h("p", { class: "check-state", role: "status" }, "");
    this.findings = h("ul", { class: "findings" });
    this.kind = h("select", { "aria-label": "Kind of policy", onchange: () => this.#try() });
    this.name = h("input", { type: "text", list: "playground-names", "aria-label": "Node or pod", placeholder: "node or pod", oninput: () => this.#offer(), onchange: () => this.#try() });
    this.names = h("datalist", { id: "playground-names" });
    this.only = h("input", { type: "checkbox", id: "only-changed", onchange: () => this.#rows() });
    this.rows = h("div", { class: "tried" });
    this.texts = h("div", { class: "texts" });
    this.element = h(
      "div",
      { class: "playground" },
      h("h1", { class: "visually-hidden" }, "Playground"),
      h("aside", { class: "side", "aria-label": "Files" }, this.files, h("div", { class: "side-foot" }, h("button", { type: "button", onclick: () => this.#add() }, "New file"), h("button", { type: "button", onclick: () => this.#reset() }, "Back to live"))),
      h("div", { class: "middle" }, this.place, h("div", { class: "said", tabindex: "0", role: "region", "aria-label": "What the compiler says, and what is edited" }, this.state, this.findings, this.texts)),
      h(
        "div",
        { class: "detail", tabindex: "0", role: "region", "aria-label": "What is decided" },
        h("h2", {}, "What is decided"),
        h("p", { class: "muted" }, "By the live policies, and by those in the editor. Nothing is written to any cluster."),
        h("div", { class: "ask" }, this.kind, this.name, this.names, h("button", { type: "button", class: "primary", onclick: () => this.#try() }, "Ask")),
        h("label", { class: "check" }, this.only, "only what differs"),
        this.rows,
      ),
    );
    this.edited = {};
    this.#begin();
  }

  end() {
    clearTimeout(this.timer);
    this.editor?.end();
  }

  go() {}

  key() {
    return false;
  }

  async #begin() {
    try {
      const [{ editor }, told, sheet] = await Promise.all([import("../vendor/editor.js"), get("files"), fetch("editor.css")]);
      const styles = await new CSSStyleSheet().replace(await sheet.text());
      this.live = told.own;
      this.edited = JSON.parse(sessionStorage.getItem(KEPT) ?? "{}");
      fill(this.kind, told.kinds.map((kind) => h("option", { value: kind, selected: kind === "CPUSuppress" }, kind)));
      this.name.value = store.world.nodes[0]?.name ?? "";
      fill(this.names, store.world.nodes.slice(0, 200).map((node) => h("option", { value: node.name })));
      this.editor = editor(this.place, { label: "Policy", changed: (text) => this.#changed(text), complete: (text, offset) => this.#complete(text, offset), styles });
      const names = Object.keys({ ...this.live, ...this.edited });
      const first = names.find((name) => !/\.test\.ya?ml$|koordpolicy\.ya?ml$/.test(name)) ?? names[0];
      if (first) this.#show(first);
      else this.#add();
    } catch (error) {
      fill(this.findings, h("li", { class: "trouble" }, error.message));
    }
  }

  /** The live policies are others now: what is edited stays, and is compared with them. */
  async policiesChanged() {
    try {
      this.live = (await get("files")).own;
    } catch (error) {
      notice(error.message);
      return;
    }
    for (const [file, text] of Object.entries(this.edited)) if (text === this.live[file]) delete this.edited[file];
    sessionStorage.setItem(KEPT, JSON.stringify(this.edited));
    if (this.file in this.edited || this.text(this.file) === this.shownText) {
      this.#files();
      this.#check();
    } else this.#show(this.file in this.live ? this.file : (Object.keys(this.live)[0] ?? this.file));
  }

  text(file) {
    return this.edited[file] ?? this.live[file] ?? "";
  }

  #show(file) {
    this.file = file;
    this.shownText = this.text(file);
    this.editor.show(this.shownText);
    this.#files();
    this.#check();
  }

  #files() {
    const names = Object.keys({ ...this.live, ...this.edited }).sort();
    fill(this.texts, shownDifferences(this.live, this.edited));
    fill(
      this.files,
      names.map((name) =>
        h("li", {}, h("button", { type: "button", class: "file", "aria-current": name === this.file ? "true" : null, title: name, onclick: () => this.#show(name) }, name.split("/").slice(-1)[0], name in this.edited && this.edited[name] !== this.live[name] && h("span", { class: "tag" }, "edited"))),
      ),
    );
  }

  #changed(text) {
    if (text === this.live[this.file]) delete this.edited[this.file];
    else this.edited[this.file] = text;
    sessionStorage.setItem(KEPT, JSON.stringify(this.edited));
    this.#files();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.#check(), PAUSE);
  }

  async #check() {
    const mine = (this.asked = (this.asked ?? 0) + 1);
    this.state.textContent = "Compiling…";
    try {
      const told = await post("check", { files: this.edited });
      if (mine !== this.asked) return;
      this.editor.findings(told.findings.filter((one) => one.file === this.file));
      const worst = told.findings.filter((one) => one.severity === "error").length;
      this.state.textContent = told.compiles
        ? told.same
          ? "Compiles: the same revision as the live one."
          : `Compiles: another revision, ${told.digest.slice(0, 12)}.`
        : told.problem || `Does not compile: ${worst} error${worst === 1 ? "" : "s"}.`;
      this.state.className = `check-state ${told.compiles ? "fine" : "trouble"}`;
      fill(
        this.findings,
        told.findings.map((one) =>
          h(
            "li",
            { class: one.severity },
            h("button", { type: "button", class: "line", onclick: () => this.#jump(one) }, `${one.file.split("/").at(-1)}:${one.from[0]}`),
            h("span", { class: "code-name" }, one.code),
            h("span", {}, one.message),
            one.help && h("span", { class: "muted" }, one.help),
          ),
        ),
      );
      if (told.compiles) this.#try();
      else {
        // Nor shall an answer that is still on its way, or the box above the last ones, bring a verdict back.
        this.tried = (this.tried ?? 0) + 1;
        this.answers = null;
        this.rows.removeAttribute("aria-busy");
        fill(this.rows, h("p", { class: "muted" }, "What is edited does not compile, so that it decides nothing."));
      }
    } catch (error) {
      this.state.textContent = error.message;
    }
  }

  /** What could stand there; nothing while the server cannot say, which the next check tells of. */
  async #complete(text, offset) {
    try {
      return await post("complete", { file: this.file, text, offset });
    } catch {
      return null;
    }
  }

  /** Nodes and pods whose names have what is typed in them. */
  async #offer() {
    const mine = (this.offered = (this.offered ?? 0) + 1);
    try {
      const found = await get("search", { q: this.name.value.trim() });
      if (mine === this.offered) fill(this.names, found.filter((one) => one.what !== "decision").map((one) => h("option", { value: one.name })));
    } catch {
      // What is typed is asked for all the same.
    }
  }

  #jump(finding) {
    if (finding.file !== this.file && finding.file in { ...this.live, ...this.edited }) this.#show(finding.file);
    this.editor.go(finding.from);
  }

  async #try() {
    const mine = (this.tried = (this.tried ?? 0) + 1);
    if (!this.name.value || !this.kind.value) return;
    this.rows.setAttribute("aria-busy", "true");
    try {
      const told = await post("try", { files: this.edited, kind: this.kind.value, name: this.name.value.trim() });
      if (mine !== this.tried) return;
      this.answers = told.rows;
      this.#rows();
    } catch (error) {
      if (mine === this.tried) fill(this.rows, h("p", { class: "trouble" }, error.message));
    }
    if (mine === this.tried) this.rows.removeAttribute("aria-busy");
  }

  #rows() {
    if (!this.answers) return;
    const rows = this.answers.map((row) => ({ ...row, differs: shown(row.before) !== shown(row.after) }));
    const changed = rows.filter((row) => row.differs).length;
    fill(
      this.rows,
      h("p", { class: "lead" }, changed ? `${changed} of ${rows.length} decisions differ.` : `All ${rows.length} decisions are the same.`),
      rows
        .filter((row) => row.differs || !this.only.checked)
        .sort((one, other) => other.differs - one.differs)
        .map((row) =>
          h(
            "details",
            { class: row.differs ? "differs" : "" },
            h("summary", {}, h("code", {}, row.decision.slice(this.kind.value.length + 1)), row.differs ? [h("del", {}, shown(row.before)), h("ins", {}, shown(row.after))] : h("b", {}, shown(row.after))),
            rules(row.after.rules),
            row.after.facts.length > 0 && h("table", { class: "facts" }, h("tbody", {}, row.after.facts.map((fact) => h("tr", {}, h("th", { scope: "row" }, fact.fact), h("td", { class: "number" }, fact.present ? said(fact.value) : "not there"))))),
          ),
        ),
    );
  }

  #add() {
    const folder = Object.keys(this.live)[0]?.split("/").slice(0, -1).join("/");
    let at = 1;
    const name = () => `${folder ? `${folder}/` : ""}try-${at}.yaml`;
    while (name() in this.edited || name() in this.live) at += 1;
    this.edited[name()] = "apiVersion: koordpolicy.io/v1alpha1\nkind: CPUSuppress\nmetadata: {name: tried}\nspec:\n  parameters:\n    threshold: 60%\n";
    this.#show(name());
  }

  #reset() {
    this.edited = {};
    sessionStorage.removeItem(KEPT);
    const names = Object.keys(this.live);
    if (names.length) this.#show(names.includes(this.file) ? this.file : names[0]);
    notice("The editor shows the live policies again.");
  }
}

const shown = (answer) => (answer.error ? answer.error : said(answer.value));
