// At the top of the page: what is looked at, and as long as that is not what there is now, of when it is and why.
import { h, fill } from "./dom.js";
import { store } from "./store.js";
import { moment } from "./words.js";

const LIVE = { true: "live", false: "live, read-only" };

function trouble() {
  const { failure, asOf } = store.clock;
  if (store.lost) return { old: true, text: `What is shown is of ${moment(asOf ?? store.latest, store.clock)} and not newer: the console does not answer (${store.lost}).` };
  if (asOf) return { old: true, text: `What is shown is of ${moment(asOf)} and not newer: ${failure}.` };
  return { old: false, text: failure ? `${failure[0].toUpperCase()}${failure.slice(1)}.` : "" };
}

export function tellTrouble() {
  const { old, text } = trouble();
  const { kind, title, steersRollouts } = store.world;
  const tag = { simulated: "simulated", picture: "picture", live: LIVE[Boolean(steersRollouts)] }[kind];
  const tags = `${old ? "out of date" : tag} ${title}`;
  const heading = document.getElementById("world-title");
  if (heading.dataset.shown !== tags) {
    heading.dataset.shown = tags;
    fill(heading, h("span", { class: old ? "tag strong" : "tag" }, old ? "out of date" : tag), ` ${title}`);
  }
  // Only what changes is read out.
  const place = document.getElementById("trouble");
  if (place.textContent !== text) place.textContent = text;
}
