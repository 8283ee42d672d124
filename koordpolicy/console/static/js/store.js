// What is known of the world over time: frames as bytes, sums by moment, and which moment is looked at.
import { bytes, get, post } from "./api.js";
import { notice } from "./dom.js";

const EVERY = 500;
const AT_A_TIME = 200;

class Store extends EventTarget {
  world = null;
  clock = {};
  classes = [];
  bands = [];
  revisions = [];
  frames = [];
  series = [];
  at = 0;
  following = true;
  lost = "";
  #generation = -1;
  #replay = null;

  async begin() {
    this.world = await get("world");
    this.width = this.world.columns.length;
    this.column = Object.fromEntries(this.world.columns.map((name, at) => [name, at]));
    await this.look();
    this.#again();
  }

  #again() {
    setTimeout(async () => {
      try {
        if (!document.hidden) await this.look();
        this.#lose("");
      } catch (error) {
        this.#lose(error.message || "no answer");
      }
      this.#again();
    }, this.lost ? 4 * EVERY : EVERY);
  }

  /** Note why the console does not answer; empty where it does. */
  #lose(why) {
    const before = this.lost;
    this.lost = why;
    if (before !== why) this.dispatchEvent(new Event("clock"));
  }

  /** Ask what is new. */
  async look() {
    const told = await get("state", { after: this.series.length });
    if (told.generation !== this.#generation) {
      const anew = this.#generation >= 0;
      this.#generation = told.generation;
      this.frames = [];
      this.series = [];
      if (anew) {
        this.world = await get("world");
        return this.look();
      }
    }
    if (told.digest !== this.world.digest) {
      this.world = await get("world");
      this.dispatchEvent(new Event("policies"));
    }
    this.classes = told.classes;
    this.bands = told.bands;
    this.revisions = told.revisions.map((name) => name || (this.world.kind === "simulated" ? this.world.revision : "not told"));
    const before = JSON.stringify(this.clock);
    this.clock = told.clock;
    this.series.push(...told.series);
    const wanted = this.series.length;
    const row = this.world.nodes.length * this.width;
    while (this.frames.length < wanted) {
      const from = this.frames.length;
      const found = await bytes("frames", { from, to: Math.min(wanted, from + AT_A_TIME) });
      if (!row || found.length < row) break;
      for (let start = 0; start + row <= found.length; start += row) this.frames.push(found.subarray(start, start + row));
      if (from === 0) this.#show();
    }
    if (told.series.length) this.#show();
    else if (before !== JSON.stringify(this.clock)) this.dispatchEvent(new Event("clock"));
  }

  #show() {
    if (this.following) this.at = Math.max(0, this.frames.length - 1);
    this.dispatchEvent(new Event("frame"));
    this.dispatchEvent(new Event("clock"));
  }

  get frame() {
    return this.frames[this.at];
  }

  get sums() {
    return this.series[Math.min(this.at, this.series.length - 1)] ?? {};
  }

  /** When the newest moment was, in seconds since 1970. */
  get latest() {
    return this.series.at(-1)?.time ?? this.clock.start ?? 0;
  }

  get time() {
    return this.sums.time ?? this.clock.start ?? 0;
  }

  /** Look at another moment; the last one follows what comes. */
  go(at) {
    const last = Math.max(0, this.frames.length - 1);
    this.at = Math.min(Math.max(0, at), last);
    this.following = this.at === last;
    this.dispatchEvent(new Event("frame"));
    this.dispatchEvent(new Event("clock"));
  }

  /** Go on or rest: what was recorded is played up to now, and from there on it is the simulation's clock. */
  async toggle() {
    if (this.#replay) return this.rest();
    if (!this.following) return this.replay();
    if (this.clock.steers && !this.clock.over) await this.steer({ paused: !this.clock.paused });
    else if (this.clock.over && this.frames.length > 1) {
      this.go(0);
      this.replay();
    }
  }

  get playing() {
    return Boolean(this.#replay) || (this.following && this.clock.steers && !this.clock.paused && !this.clock.over);
  }

  replay() {
    this.#replay = setInterval(() => {
      this.go(this.at + 1);
      if (this.following) this.rest();
    }, 40);
    this.dispatchEvent(new Event("clock"));
  }

  rest() {
    clearInterval(this.#replay);
    this.#replay = null;
    this.dispatchEvent(new Event("clock"));
  }

  async steer(wanted) {
    try {
      this.clock = await post("clock", wanted);
    } catch (error) {
      notice(error.message);
    }
    this.dispatchEvent(new Event("clock"));
  }

  value(node, name) {
    const frame = this.frame;
    return frame ? frame[node * this.width + this.column[name]] : 0;
  }
}

export const store = new Store();
