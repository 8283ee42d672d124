// What is edited beside what is live, as text: document by document, the lines that differ with a few around them.
import { h } from "./dom.js";

const AROUND = 3;
const MOST = 1200; // lines that come or go in one document; beyond that all of it is shown as replaced
const OPEN = 60; // lines of differences up to which all documents are open

const NONE = { lines: [], above: 0 };

/** The documents of a text by `Kind/name`, or their number where they do not say: their lines, and how many stand above. */
function documents(text) {
  const found = new Map();
  const all = text.replace(/\n$/, "").split("\n");
  let above = 0;
  all.forEach((one, at) => {
    const last = at === all.length - 1;
    const cut = /^---(\s|$)/.test(one);
    if (!cut && !last) return;
    const lines = all.slice(above, cut ? at : at + 1).map((line) => line.replace(/\r$/, ""));
    if (lines.some((line) => line.trim())) found.set(named(lines, found), { lines, above });
    above = at + 1;
  });
  return found;
}

function named(lines, before) {
  const text = lines.join("\n");
  const kind = /^kind:\s*["']?([\w.-]+)/m.exec(text)?.[1];
  const name = /^metadata:[ ]*(?:\{[^}\n]*?|\n(?:[ ]+.*\n)*?[ ]+)\bname:\s*["']?([^\s,}"']+)/m.exec(text)?.[1];
  const said = kind && name ? `${kind}/${name}` : (kind ?? `document ${before.size + 1}`);
  for (let at = 1; ; at += 1) {
    const tried = at === 1 ? said : `${said} (${at})`;
    if (!before.has(tried)) return tried;
  }
}

/** Lines as they stay (" "), go ("-") and come ("+"), by the shortest way from one text to the other (Myers, 1986). */
export function script(old, now) {
  let first = 0;
  while (first < old.length && first < now.length && old[first] === now[first]) first += 1;
  let last = 0;
  while (last < old.length - first && last < now.length - first && old.at(-1 - last) === now.at(-1 - last)) last += 1;
  const stays = (lines) => lines.map((text) => [" ", text]);
  return [...stays(old.slice(0, first)), ...shortest(old.slice(first, old.length - last), now.slice(first, now.length - last)), ...stays(old.slice(old.length - last))];
}

function shortest(a, b) {
  const replaced = [...a.map((text) => ["-", text]), ...b.map((text) => ["+", text])];
  if (!a.length || !b.length) return replaced;
  const most = Math.min(a.length + b.length, MOST);
  const far = new Int32Array(2 * most + 3);
  const trace = [];
  const middle = most + 1;
  for (let steps = 0; steps <= most; steps += 1) {
    trace.push(far.slice(middle - steps - 1, middle + steps + 2));
    for (let k = -steps; k <= steps; k += 2) {
      const down = k === -steps || (k !== steps && far[middle + k - 1] < far[middle + k + 1]);
      let x = down ? far[middle + k + 1] : far[middle + k - 1] + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x += 1;
      far[middle + k] = x;
      if (x >= a.length && x - k >= b.length) return backwards(a, b, trace);
    }
  }
  return replaced;
}

function backwards(a, b, trace) {
  const found = [];
  let x = a.length;
  let y = b.length;
  for (let steps = trace.length - 1; steps >= 0; steps -= 1) {
    const before = (k) => trace[steps][k + steps + 1];
    const k = x - y;
    const down = k === -steps || (k !== steps && before(k - 1) < before(k + 1));
    const from = down ? k + 1 : k - 1;
    const [px, py] = [before(from), before(from) - from];
    while (x > px && y > py && x > 0 && y > 0) {
      found.push([" ", a[x - 1]]);
      x -= 1;
      y -= 1;
    }
    if (steps === 0) break;
    if (down) found.push(["+", b[(y -= 1)]]);
    else found.push(["-", a[(x -= 1)]]);
  }
  return found.reverse();
}

/** Each document that differs: its file, its name, whether it is new or gone, its lines in hunks. */
export function differences(live, edited) {
  const found = [];
  for (const file of Object.keys(edited).sort()) {
    if (edited[file] === live[file]) continue;
    const old = documents(live[file] ?? "");
    const now = documents(edited[file]);
    for (const name of new Set([...now.keys(), ...old.keys()])) {
      const [before, after] = [old.get(name) ?? NONE, now.get(name) ?? NONE];
      const lines = script(before.lines, after.lines);
      if (lines.some(([sign]) => sign !== " ")) found.push({ file, name, state: !old.has(name) ? "new" : now.has(name) ? "" : "gone", hunks: hunks(lines, before.above, after.above) });
    }
  }
  return found;
}

function hunks(lines, old, now) {
  const near = new Set();
  lines.forEach(([sign], at) => {
    if (sign !== " ") for (let one = at - AROUND; one <= at + AROUND; one += 1) near.add(one);
  });
  const found = [];
  let open = null;
  lines.forEach(([sign, text], at) => {
    if (sign !== "+") old += 1;
    if (sign !== "-") now += 1;
    if (!near.has(at)) open = null;
    else {
      if (!open) found.push((open = []));
      open.push({ sign, text, number: sign === "-" ? old : now });
    }
  });
  return found;
}

const KINDS = { "-": "gone", "+": "come", " ": "stays" };

/** The same as elements. */
export function shownDifferences(live, edited) {
  const all = differences(live, edited);
  if (!all.length) return [];
  const count = all.flatMap((one) => one.hunks.flat()).filter((one) => one.sign !== " ").length;
  return [
    h("h2", {}, `${all.length} document${all.length === 1 ? "" : "s"} differ${all.length === 1 ? "s" : ""} from the live policies.`),
    all.map((one) => {
      const size = (sign) => one.hunks.flat().filter((line) => line.sign === sign).length;
      return h(
        "details",
        { class: "document", open: count <= OPEN },
        h("summary", {}, h("code", {}, one.name), h("span", { class: "muted small" }, `${one.file.split("/").at(-1)}${one.state ? `, ${one.state}` : ""}`), h("span", { class: "counts" }, h("ins", {}, `+${size("+")}`), h("del", {}, `−${size("-")}`))),
        one.hunks.map((lines) =>
          h(
            "div",
            { class: "hunk" },
            lines.map((line) => h(line.sign === "-" ? "del" : line.sign === "+" ? "ins" : "div", { class: KINDS[line.sign] }, h("span", { class: "no", "aria-hidden": "true" }, line.number), h("span", { class: "sign" }, line.sign.replace("-", "−")), h("span", {}, line.text))),
          ),
        ),
      );
    }),
  ];
}
