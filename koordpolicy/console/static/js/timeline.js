// The day as a chart to move in: what services and best-effort work use, what is requested; and the clock.
import { h } from "./dom.js";
import { store } from "./store.js";
import { sort } from "./colours.js";
import { moment } from "./words.js";

const SPEEDS = { 600: "10 min/s", 3600: "1 h/s", 14400: "4 h/s", 0: "fastest" };

export class Timeline {
  constructor() {
    this.canvas = h("canvas", { "aria-hidden": "true" });
    this.range = h("input", { type: "range", min: "0", max: "0", value: "0", step: "1", "aria-label": "Moment" });
    this.range.addEventListener("input", () => store.go(Number(this.range.value)));
    this.play = h("button", { type: "button", class: "round", onclick: () => store.toggle() });
    this.back = h("button", { type: "button", class: "quiet icon", "aria-label": "One moment back", onclick: () => store.go(store.at - 1) }, "‹");
    this.on = h("button", { type: "button", class: "quiet icon", "aria-label": "One moment on", onclick: () => this.step() }, "›");
    this.speed = h("select", { "aria-label": "Speed", onchange: () => store.steer({ speed: Number(this.speed.value) }) });
    this.time = h("output", { class: "time" });
    this.now = h("button", { type: "button", class: "quiet to-now", onclick: () => store.go(store.frames.length) }, "to now");
    this.element = h(
      "section",
      { class: "timeline", "aria-label": "Time" },
      h("div", { class: "controls" }, this.play, this.back, this.on, this.time, this.now, this.speed),
      h("div", { class: "track" }, this.canvas, this.range),
      h(
        "p",
        { class: "keys" },
        h("span", { class: "key" }, h("i", { style: { background: sort("LS") } }), "services use"),
        h("span", { class: "key" }, h("i", { style: { background: sort("BE") } }), "best effort uses"),
        h("span", { class: "key" }, h("i", { class: "dashed" }), "requested"),
      ),
    );
    this.show = () => this.#show();
    store.addEventListener("clock", this.show);
    store.addEventListener("frame", this.show);
    this.observer = new ResizeObserver(() => this.#show());
    this.observer.observe(this.canvas);
    this.#show();
  }

  end() {
    store.removeEventListener("clock", this.show);
    store.removeEventListener("frame", this.show);
    this.observer.disconnect();
  }

  /** One moment on: the next that was recorded, or one more of the simulation. */
  step() {
    if (!store.following) store.go(store.at + 1);
    else if (store.clock.steers && !store.clock.over) store.steer({ step: true });
  }

  #show() {
    const { clock } = store;
    const last = Math.max(0, store.frames.length - 1);
    this.range.max = String(last);
    this.range.value = String(store.at);
    this.range.setAttribute("aria-valuetext", moment(store.time, clock));
    this.time.textContent = moment(store.time, clock);
    const playing = store.playing;
    const label = playing ? "Pause" : "Go on";
    if (this.play.getAttribute("aria-label") !== label) {
      this.play.setAttribute("aria-label", label);
      this.play.textContent = playing ? "❚❚" : "▶";
    }
    this.play.disabled = !clock.steers && store.frames.length < 2;
    this.now.hidden = store.following;
    this.speed.hidden = !clock.steers || clock.over;
    if (clock.speeds && this.speed.options.length === 0) {
      for (const one of clock.speeds) this.speed.append(h("option", { value: one }, SPEEDS[one] ?? `${one}×`));
    }
    if (clock.speed !== undefined && document.activeElement !== this.speed) this.speed.value = String(clock.speed);
    if (!this.waiting) {
      this.waiting = true;
      requestAnimationFrame(() => {
        this.waiting = false;
        this.#paint();
      });
    }
  }

  #paint() {
    const box = this.canvas.getBoundingClientRect();
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    if (!box.width) return;
    this.canvas.width = Math.round(box.width * ratio);
    this.canvas.height = Math.round(box.height * ratio);
    const pen = this.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const style = getComputedStyle(document.documentElement);
    const { clock, series } = store;
    if (!series.length) return;
    const start = series[0].time;
    const span = Math.max(clock.span ?? series.at(-1).time - start, 1);
    const pad = 8;
    const wide = box.width - 2 * pad;
    const high = box.height - 18;
    const across = (time) => pad + (Math.min(Math.max(time - start, 0), span) / span) * wide;
    const most = Math.max(60, ...series.map((one) => one.requested ?? 0).filter((one) => one <= 130));
    const down = (value) => 4 + high - (Math.min(value, most) / most) * high;
    pen.strokeStyle = style.getPropertyValue("--line").trim();
    pen.fillStyle = style.getPropertyValue("--muted").trim();
    pen.font = "11px system-ui, sans-serif";
    pen.textAlign = "center";
    if (clock.span) {
      const every = [3600, 7200, 10800, 21600, 43200, 86400].find((one) => span / one <= Math.max(2, wide / 80)) ?? 172800;
      for (let time = 0; time <= span; time += every) {
        pen.beginPath();
        pen.moveTo(across(start + time), 4);
        pen.lineTo(across(start + time), 4 + high);
        pen.stroke();
        const edge = time === 0 ? "left" : time + every > span ? "right" : "center";
        pen.textAlign = edge;
        pen.fillText(moment(start + time, clock), across(start + time), box.height - 3);
      }
    }
    const area = (value, below, colour) => {
      pen.fillStyle = colour;
      pen.beginPath();
      series.forEach((one, at) => pen[at ? "lineTo" : "moveTo"](across(one.time), down(value(one))));
      for (let at = series.length - 1; at >= 0; at -= 1) pen.lineTo(across(series[at].time), down(below(series[at])));
      pen.fill();
    };
    area((one) => one.services, () => 0, sort("LS"));
    area((one) => one.services + one.bestEffort, (one) => one.services, sort("BE"));
    pen.strokeStyle = style.getPropertyValue("--muted").trim();
    pen.lineWidth = 1.2;
    pen.setLineDash([3, 3]);
    pen.beginPath();
    series.forEach((one, at) => pen[at ? "lineTo" : "moveTo"](across(one.time), down(one.requested)));
    pen.stroke();
    pen.setLineDash([]);
    const here = across(store.time);
    pen.strokeStyle = style.getPropertyValue("--text").trim();
    pen.lineWidth = 1.5;
    pen.beginPath();
    pen.moveTo(here, 0);
    pen.lineTo(here, 4 + high);
    pen.stroke();
    // The slider lies over what has happened so far.
    const done = across(series.at(-1).time);
    this.range.style.setProperty("width", `${Math.max(done - pad, 16) + 16}px`);
  }
}
