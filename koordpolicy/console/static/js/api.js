// What the server is asked. A token, where one is wanted, is asked for once and kept for this tab alone.
import { h, dialog } from "./dom.js";

const KEY = "koordpolicy-token";

class Unanswered extends Error {}

async function asked(path, options = {}) {
  const token = sessionStorage.getItem(KEY);
  const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  const response = await fetch(path, { ...options, headers, cache: "no-store" });
  if (response.status === 401) {
    sessionStorage.setItem(KEY, await tokenFromUser(Boolean(token)));
    return asked(path, options);
  }
  return response;
}

let asking = null;
let refused = false;

function tokenFromUser(wrong) {
  const unknown = () => new Unanswered("This console answers owners of its token alone. Reload the page to be asked for it again.");
  if (refused) throw unknown();
  asking ??= new Promise((resolve, reject) => {
    const input = h("input", { type: "password", id: "token", autocomplete: "off", required: true, autofocus: true });
    const form = h(
      "form",
      { class: "stack" },
      wrong && h("p", {}, "That token is not known here."),
      h("label", { for: "token" }, "Token of the file that this console was started with"),
      input,
      h("button", { class: "primary" }, "Go on"),
    );
    const box = dialog("Who are you?", form);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      asking = null;
      resolve(input.value.trim());
      box.close();
    });
    // Whoever closes it is not asked again and again, and told what to do instead.
    box.addEventListener("close", () => {
      if (!asking) return;
      asking = null;
      refused = true;
      reject(unknown());
    });
  });
  return asking;
}

/** The answer as JSON. Throws an Error with the server's words. */
export async function get(name, query = {}) {
  const text = new URLSearchParams(query).toString();
  return answer(await asked(`/api/${name}${text ? `?${text}` : ""}`));
}

export async function post(name, body) {
  const headers = { "Content-Type": "application/json" };
  return answer(await asked(`/api/${name}`, { method: "POST", headers, body: JSON.stringify(body) }));
}

export async function bytes(name, query) {
  const response = await asked(`/api/${name}?${new URLSearchParams(query)}`);
  if (!response.ok) throw new Unanswered(`the server answers ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}

async function answer(response) {
  const text = await response.text();
  let told;
  try {
    told = JSON.parse(text);
  } catch {
    throw new Unanswered(text.trim() || `the server answers ${response.status}`);
  }
  if (!response.ok) throw new Unanswered(told.error ?? `the server answers ${response.status}`);
  return told;
}
