// Numbers and times as people read them.

export const number = (value) => Number(value).toLocaleString("en-US");

export const percent = (value) => `${Math.round(value)} %`;

/** Millicores as cores. */
export function cores(milli) {
  const value = milli / 1000;
  return value >= 100 ? number(Math.round(value)) : String(Math.round(value * 10) / 10);
}

export function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  let value = bytes;
  while (value >= 1024 && at < units.length - 1) {
    value /= 1024;
    at += 1;
  }
  return `${Math.round(value * 10) / 10} ${units[at]}`;
}

/** An amount of a resource: CPU is counted in millicores, memory in bytes. */
export const amount = (resource, value) => (/(^|[-/])cpu$/.test(resource) ? cores(value) : /memory$/.test(resource) ? size(value) : number(value));

/** A revision as short as people say it: of a commit or a digest the beginning. */
export const revision = (name) => name.replace(/^((?:sha256:)?[0-9a-f]{12})[0-9a-f]{8,}$/, "$1");

const two = (value) => String(value).padStart(2, "0");

/** A moment: of a simulation the day and the hour of it, else the clock on the wall. */
export function moment(seconds, clock) {
  if (clock?.span !== undefined) {
    const passed = Math.max(0, Math.round(seconds - clock.start));
    const day = Math.floor(passed / 86400);
    // The end of the only day is its 24:00.
    const hour = passed === 86400 && clock.span <= 86400 ? 24 : Math.floor(passed / 3600) % 24;
    const text = `${two(hour)}:${two(Math.floor(passed / 60) % 60)}`;
    return clock.span > 86400 ? `day ${day + 1}, ${text}` : text;
  }
  return new Date(seconds * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
}

/** `file:line:column` in parts; the file shortened to what tells it from others. */
export function place(text) {
  const match = /^(.*?):(\d+)(?::(\d+))?$/.exec(text ?? "");
  if (!match) return { file: text ?? "", line: 0, short: text ?? "" };
  const file = match[1];
  const parts = file.split("/");
  return { file, line: Number(match[2]), short: `${parts.slice(-2).join("/")}:${match[2]}` };
}
