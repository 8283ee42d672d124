// Colours of values: one hue from little to much, and a few that are told apart for classes and bands.
import { store } from "./store.js";
import { revision } from "./words.js";

const RAMP = {
  light: ["#e8edf6", "#cddaf3", "#a9c0ec", "#7d9fe2", "#517cd4", "#2f5bbd", "#1c3f93"],
  dark: ["#1d2430", "#24365a", "#2c4a85", "#3764b3", "#5083da", "#7fa8f2", "#bdd3ff"],
};
const SORTS = {
  light: ["#3f6fd8", "#1f9a83", "#8a63cf", "#c4557c", "#b07a1c", "#6c7683"],
  dark: ["#6f9bf7", "#46c4aa", "#ae8cf0", "#e982a6", "#d9a548", "#8d97a5"],
};
const KNOWN = { LS: 0, BE: 1, LSR: 2, LSE: 3, SYSTEM: 5, "koord-prod": 0, "koord-batch": 1, "koord-mid": 2, "koord-free": 4 };
export const BUCKETS = 41;

export const WAYS = [
  { name: "used", label: "CPU in use" },
  { name: "bestEffort", label: "best-effort CPU" },
  { name: "withheld", label: "CPU withheld" },
  { name: "requested", label: "CPU requested" },
  { name: "offered", label: "CPU offered" },
  { name: "memory", label: "memory in use" },
  { name: "class", label: "class" },
  { name: "band", label: "band" },
  { name: "revision", label: "revision" },
];

export const theme = () => document.documentElement.dataset.theme;

function mixed(one, other, share) {
  const parts = [1, 3, 5].map((at) => {
    const a = parseInt(one.slice(at, at + 2), 16);
    const b = parseInt(other.slice(at, at + 2), 16);
    return Math.round(a + (b - a) * share);
  });
  return `rgb(${parts.join(" ")})`;
}

/** The colour of a share from 0 to 1. */
export function ramp(share) {
  const stops = RAMP[theme()];
  const place = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const at = Math.min(Math.floor(place), stops.length - 2);
  return mixed(stops[at], stops[at + 1], place - at);
}

/** The colour of a class or band by its name. */
export function sort(name) {
  const colours = SORTS[theme()];
  const all = [...store.classes, ...store.bands];
  const at = KNOWN[name] ?? Math.max(0, all.indexOf(name)) + 2;
  return colours[at % colours.length];
}

export const empty = () => (theme() === "dark" ? "#171c24" : "#eff1f4");

const NAMES = { class: () => store.classes, band: () => store.bands, revision: () => store.revisions };
const named = (way, name, at) => (way !== "revision" ? sort(name) : name === "not told" ? empty() : SORTS[theme()][at % 5]);

/** For each node a bucket, and for each bucket its colour. */
export function painted(way, buckets) {
  const { nodes } = store.world;
  const frame = store.frame;
  const { width, column } = store;
  const names = NAMES[way]?.();
  if (names) {
    for (let at = 0; at < nodes.length; at += 1) {
      const code = frame ? frame[at * width + column[way]] : 255;
      buckets[at] = code < names.length ? code : names.length;
    }
    return [...names.map((name, at) => named(way, name, at)), empty()];
  }
  const from = column[way];
  for (let at = 0; at < nodes.length; at += 1) {
    buckets[at] = frame ? Math.min(BUCKETS - 1, Math.round((frame[at * width + from] * (BUCKETS - 1)) / 200)) : 0;
  }
  return Array.from({ length: BUCKETS }, (_, at) => ramp(at / (BUCKETS - 1)));
}

/** What is told apart in a way of colouring, and in which colours; null where it is a share. */
export function legend(way) {
  return NAMES[way]?.().map((name, at) => [way === "revision" ? revision(name) : name || "none", named(way, name, at)]) ?? null;
}
