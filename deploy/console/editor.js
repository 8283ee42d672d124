// An editor of YAML with line numbers, findings, and no styles of its own but those of the page.
import { autocompletion, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { HighlightStyle, bracketMatching, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { forEachDiagnostic, lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { EditorState } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], class: "tok-key" },
  { tag: [tags.string, tags.special(tags.string)], class: "tok-text" },
  { tag: [tags.number, tags.bool, tags.null], class: "tok-number" },
  { tag: tags.comment, class: "tok-comment" },
  { tag: [tags.keyword, tags.typeName, tags.labelName], class: "tok-word" },
]);

/**
 * An editor in `parent`, with a sheet of styles. `changed` is told the text; Escape, then Tab leaves it by keyboard.
 * `complete(text, offset)` gives what could stand at an offset in code points: `{from, to, offers: [{name, sort, detail, page, text}]}`.
 */
export function editor(parent, { label, changed, styles, complete }) {
  // In a shadow tree the library adopts sheets, where in a document it would write style elements, which pages may forbid.
  const root = parent.attachShadow({ mode: "open" });
  const completed = async (context) => {
    const before = context.state.doc.sliceString(0, context.pos);
    const last = before.at(-1) ?? "";
    if (!context.explicit && !/[\w.'"{]/.test(last)) return null;
    const told = await complete(context.state.doc.toString(), [...before].length);
    if (!told?.offers.length || context.aborted) return null;
    const from = [...before].slice(0, told.from).join("").length;
    return {
      from,
      validFor: /^[\w%/-]*$/,
      options: told.offers.map((one) => ({ label: one.name, type: one.sort, detail: one.detail, info: one.page || undefined, apply: one.text })),
    };
  };
  const extensions = [
    lineNumbers(),
    highlightActiveLineGutter(),
    highlightActiveLine(),
    history(),
    drawSelection(),
    bracketMatching(),
    indentUnit.of("  "),
    yaml(),
    syntaxHighlighting(colours),
    search({ top: true }),
    highlightSelectionMatches(),
    lintGutter(),
    autocompletion({ override: [completed], icons: false }),
    EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false", tabindex: "0" }),
    EditorView.updateListener.of((update) => update.docChanged && changed(update.state.doc.toString())),
    keymap.of([...completionKeymap, ...defaultKeymap, ...historyKeymap, ...searchKeymap, ...lintKeymap, indentWithTab]),
  ];
  const view = new EditorView({ parent: root, root, state: EditorState.create({ doc: "", extensions }) });
  root.adoptedStyleSheets = [...root.adoptedStyleSheets, styles];
  const offset = ([line, column]) => {
    const doc = view.state.doc;
    const found = doc.line(Math.min(Math.max(line, 1), doc.lines));
    let at = found.from;
    // Columns count code points, offsets do not.
    for (const letter of [...found.text].slice(0, Math.max(0, column - 1))) at += letter.length;
    return at;
  };
  return {
    view,
    show: (text) => view.setState(EditorState.create({ doc: text, extensions })),
    findings(list) {
      const found = list.map((one) => {
        const from = offset(one.from);
        return { from, to: Math.max(from, offset(one.to)), severity: one.severity === "note" ? "info" : one.severity, message: one.help ? `${one.message}\n${one.help}` : one.message, source: one.code };
      });
      view.dispatch(setDiagnostics(view.state, found));
    },
    count() {
      let number = 0;
      forEachDiagnostic(view.state, () => (number += 1));
      return number;
    },
    go(place) {
      const at = offset(place);
      view.dispatch({ selection: { anchor: at }, effects: EditorView.scrollIntoView(at, { y: "center" }) });
      view.focus();
    },
    end: () => view.destroy(),
  };
}
