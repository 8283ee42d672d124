// Gangs, and quotas with what they lend: pods that go together, and amounts that go round.
import { h, fill } from "./dom.js";
import { get } from "./api.js";
import { bar, nodeLink, podLink } from "./panel.js";
import { sort } from "./colours.js";
import { line } from "./source.js";
import { amount as shown, number } from "./words.js";

export class GroupsView {
  constructor(route) {
    this.gangs = h("section", {}, h("h2", {}, "Gangs"), h("p", { class: "muted" }, "Asking…"));
    this.quotas = h("section", {}, h("h2", {}, "Quotas"), h("p", { class: "muted" }, "Asking…"));
    this.waiting = h("section", {});
    this.detail = h("aside", { class: "detail", tabindex: "0", role: "region", "aria-label": "What is chosen" }, h("p", { class: "muted" }, "Choose a gang or a quota."));
    this.element = h("div", { class: "groups" }, h("div", { class: "page", tabindex: "0", role: "region", "aria-label": "Lists" }, h("h1", {}, "Gangs and quotas"), this.quotas, this.gangs, this.waiting), this.detail);
    this.#begin(route);
  }

  end() {}

  key() {
    return false;
  }

  async #begin(route) {
    await Promise.all([this.#quotas(), this.#gangs(), this.#waits()]);
    this.go(route);
  }

  async #gangs() {
    try {
      const { gangs, count } = await get("gangs");
      fill(
        this.gangs,
        h("h2", {}, "Gangs"),
        gangs.length
          ? h(
              "table",
              {},
              h("thead", {}, h("tr", {}, ["gang", "on nodes", "waiting", "minimum", "mode"].map((name, at) => h("th", { scope: "col", class: at && at < 4 ? "number" : "" }, name)))),
              h("tbody", {}, gangs.map((one) => h("tr", {}, h("td", {}, h("a", { href: `#/groups/gang/${encodeURIComponent(one.gang)}` }, one.gang)), h("td", { class: "number" }, one.bound), h("td", { class: "number" }, one.pending), h("td", { class: "number" }, one.minimum ?? "not said"), h("td", {}, one.mode ?? "")))),
            )
          : h("p", { class: "muted" }, "No pods go together here."),
        count > gangs.length && h("p", { class: "muted small" }, `${number(gangs.length)} of ${number(count)} gangs; those of which pods wait come first.`),
      );
    } catch (error) {
      fill(this.gangs, h("h2", {}, "Gangs"), h("p", { class: "trouble" }, error.message));
    }
  }

  async #quotas() {
    try {
      this.all = await get("quotas");
      const named = this.all.filter((one) => Object.keys(one.max).length || Object.keys(one.min).length);
      const resources = [...new Set(named.flatMap((one) => Object.keys(one.max)))].filter((one) => named.some((quota) => quota.used[one] || quota.request[one]));
      fill(this.quotas, h("h2", {}, "Quotas"), named.length ? (resources.length ? resources : ["cpu"]).map((resource) => this.#resource(resource, named)) : h("p", { class: "muted" }, "No quotas here."));
    } catch (error) {
      fill(this.quotas, h("h2", {}, "Quotas"), h("p", { class: "trouble" }, error.message));
    }
  }

  /** One resource: who has a guarantee and does not use it, who uses more than that, and from whom. */
  #resource(resource, quotas) {
    const rows = quotas.filter((one) => resource in one.max || resource in one.min);
    const most = Math.max(1, ...rows.map((one) => Math.max(one.used[resource] ?? 0, one.min[resource] ?? 0, Math.min(one.limit[resource] ?? 0, one.max[resource] ?? 0))));
    const parents = new Set(quotas.map((one) => one.parent));
    const names = new Set(quotas.map((one) => one.quota));
    const loans = rows.some((one) => Object.keys(one.lending[resource]?.from ?? {}).length > 0);
    return [
      h("h3", {}, resource),
      h(
        "div",
        { class: "scroll", tabindex: "0", role: "group", "aria-label": `Quotas of ${resource}` },
        h(
          "table",
          { class: "lent" },
          h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "quota"), h("th", { scope: "col" }, "in use"), h("th", { scope: "col", class: "number" }, "used"), h("th", { scope: "col", class: "number" }, "guaranteed"), h("th", { scope: "col", class: "number" }, "may use"), h("th", { scope: "col" }, "lends and borrows"))),
          h("tbody", {}, rows.map((one) => {
            const used = one.used[resource] ?? 0;
            const least = one.min[resource] ?? 0;
            return h(
              "tr",
              { "data-quota": one.quota },
              h("td", { class: one.parent && parents.has(one.quota) ? "group" : "" }, h("a", { href: `#/groups/quota/${encodeURIComponent(one.quota)}` }, one.quota), names.has(one.parent) && h("span", { class: "muted small" }, ` in ${one.parent}`)),
              h("td", { class: "wide" }, bar([
                { name: "guaranteed and used", text: shown(resource, Math.min(used, least)), value: Math.min(used, least), colour: sort("LS") },
                { name: "beyond that", text: shown(resource, Math.max(0, used - least)), value: Math.max(0, used - least), colour: sort("BE") },
                { name: "not used", text: shown(resource, Math.max(0, least - used)), value: Math.max(0, least - used), kind: "hatched" },
              ], most)),
              h("td", { class: "number" }, shown(resource, used)),
              h("td", { class: "number" }, shown(resource, least)),
              h("td", { class: "number" }, one.limit[resource] === undefined ? "no limit" : shown(resource, one.limit[resource])),
              h("td", { class: "small" }, h("ul", { class: "plain" }, loansOf(resource, one.lending[resource]).map((text) => h("li", {}, text)))),
            );
          })),
        ),
      ),
      h(
        "p",
        { class: "keys" },
        h("span", { class: "key" }, h("i", { style: { background: sort("LS") } }), "guaranteed and used"),
        h("span", { class: "key" }, h("i", { style: { background: sort("BE") } }), "beyond that"),
        h("span", { class: "key" }, h("i", { class: "hatched" }), "guaranteed, not used"),
      ),
      loans && h("p", { class: "muted small" }, "What is used beyond a guarantee is first what nobody is guaranteed; only the rest is borrowed. Several lenders lend in proportion to what they do not use, several borrowers have of each in proportion to what they use beyond."),
    ];
  }

  async #waits() {
    try {
      const told = await get("pods");
      fill(this.waiting, h("h2", {}, told.count === 1 ? "1 pod waits" : `${number(told.count)} pods wait`), told.waiting.length > 0 && h("ul", { class: "columns" }, told.waiting.slice(0, 60).map((name) => h("li", {}, podLink(name)))));
    } catch (error) {
      fill(this.waiting, h("p", { class: "trouble" }, error.message));
    }
  }

  async go([what, name]) {
    if (!name) return;
    try {
      if (what === "gang") fill(this.detail, gang(await get("gang", { name })));
      else if (what === "quota") fill(this.detail, quota(await get("quota", { name })));
    } catch (error) {
      fill(this.detail, h("p", { class: "trouble" }, error.message));
    }
  }
}

/** From whom a quota has what it uses beyond its guarantee, and who has what it does not use, in words. */
function loansOf(resource, lending) {
  if (!lending) return [];
  const some = (value) => shown(resource, value);
  return [
    ...Object.entries(lending.to).map(([name, value]) => `lends ${some(value)} to ${name}`),
    ...Object.entries(lending.from).map(([name, value]) => `borrows ${some(value)} from ${name}`),
    lending.free > 0 && `uses ${some(lending.free)} that nobody is guaranteed`,
    lending.beyond > 0 && `uses ${some(lending.beyond)} more than it may by now`,
  ].filter(Boolean);
}

function gang(told) {
  return [
    h("h2", {}, told.gang),
    h("p", { class: "lead" }, `${number(told.placed)} of ${number(told.count)} have a node or would get one.`),
    told.lacking && h("p", { class: "trouble" }, told.lacking),
    told.noRoom && h("p", {}, told.noRoom),
    told.room && h("p", {}, `Room would be made: ${told.room.victims.map((one) => one.pod).join(", ")} would have to go.`),
    h("p", { class: "muted small" }, `minimum ${told.minimum ?? "not said"}, ${told.mode ?? ""}, ${told.matchPolicy ?? ""}`),
    h("ul", { class: "plain" }, told.members.map((one) => h("li", {}, podLink(one.pod), one.on ? [" on ", nodeLink(one.on)] : one.node ? [" would go to ", nodeLink(one.node)] : ` ${one.message ?? ""}`))),
    told.count > told.members.length && h("p", { class: "muted small" }, `and ${number(told.count - told.members.length)} pods more`),
  ];
}

function quota(told) {
  return [
    h("h2", {}, told.quota),
    h("p", { class: "lead" }, Object.keys(told.limit).length ? `May use ${Object.entries(told.limit).map(([key, value]) => `${shown(key, value)} ${key}`).join(", ")}.` : "Has no limit."),
    told.waiting > 0 && h("p", {}, `${told.waiting} of its pods wait.`),
    told.levels.map((level) => [
      h("h3", {}, `${level.resource}: ${level.parent} shares ${shown(level.resource, level.total ?? 0)}`),
      h(
        "div",
        { class: "scroll", tabindex: "0", role: "group", "aria-label": `Shares of ${level.resource}` },
        h(
          "table",
          {},
          h("thead", {}, h("tr", {}, ["quota", "asks for", "guaranteed", "gets"].map((name, at) => h("th", { scope: "col", class: at ? "number" : "" }, name)))),
          h("tbody", {}, level.shares.map((one) => h("tr", { class: one.quota === told.quota ? "mine" : "" }, h("td", {}, one.quota), h("td", { class: "number" }, shown(level.resource, one.request)), h("td", { class: "number" }, `${shown(level.resource, one.floor)}${one.lends ? "" : ", kept"}`), h("td", { class: "number" }, shown(level.resource, one.runtime))))),
        ),
      ),
      level.lending.loans.length > 0 && h("ul", { class: "plain" }, level.lending.loans.map((one) => h("li", {}, `${one.borrower} borrows ${shown(level.resource, one.amount)} from ${one.lender}`))),
    ]),
    Object.keys(told.rules).length > 0 && [h("h3", {}, "By these lines"), h("ul", { class: "rules" }, Object.entries(told.rules).map(([field, at]) => h("li", {}, h("code", {}, field), line(at))))],
  ];
}
