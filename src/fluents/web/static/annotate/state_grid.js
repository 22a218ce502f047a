// The state grid: entities and their attributes down, steps across. Each cell can be chosen, to write a change there.

import { h } from "../elements.js";
import { before, isContradicted, line, plainly } from "./states.js";

/** A grid that draws itself anew when told. `pick({step, entity, attribute, change})` is called for a chosen cell. */
export function stateGrid(procedure, pick) {
  const body = h("tbody");
  const head = procedure.steps.map((text, at) => h("th", { scope: "col", title: text }, `${at + 1}`));
  const empty = h("p.nothing", {}, "When you write changes, this grid shows the state of each entity after each step.");
  const table = h("table", {}, h("thead", {}, h("tr", {}, h("th.corner", { scope: "col" }, "Entity"), h("th.attribute-head", { scope: "col" }, "Attribute"), head)), body);
  const scroll = h("div.scroll", { tabindex: 0, role: "region", "aria-label": "State grid" }, table);
  const element = h("section.state-grid", {}, h("h3", {}, "State grid"), empty, scroll);
  let at = [0, 0]; // the cell that Tab reaches; arrows move it

  /** `pending` is the change that is being typed: it shows where it will stand. */
  function draw(changes, pending = null) {
    const all = pending?.entity && pending.attribute ? [...changes.filter((one) => one !== pending.own), pending] : changes;
    const rows = new Map();
    for (const { entity, attribute } of all) {
      const key = plainly(entity);
      if (!rows.has(key)) rows.set(key, { entity, attributes: new Map() });
      const { attributes } = rows.get(key);
      if (!attributes.has(plainly(attribute))) attributes.set(plainly(attribute), attribute);
    }
    body.replaceChildren(...[...rows.values()].flatMap(({ entity, attributes }) => [...attributes.values()].map((attribute, row) =>
      h("tr", {}, row === 0 ? h("th.corner", { scope: "rowgroup", rowspan: attributes.size }, h("bdi", {}, entity)) : null,
        h("th.attribute", { scope: "row" }, h("bdi", {}, attribute)),
        procedure.steps.map((_, index) => cell(all, pending, entity, attribute, index + 1))))));
    empty.hidden = rows.size > 0;
    scroll.hidden = rows.size === 0;
    aim();
  }
  function cell(all, pending, entity, attribute, step) {
    const here = line(all, entity, attribute).filter((change) => change.step === step);
    const carried = before(all, { step, entity, attribute })?.after ?? "";
    const conflict = here.some((change) => isContradicted(all, change));
    const words = here.length ? here.map((change) => change.after || "—").join(" · ") : carried;
    const about = `${attribute} of ${entity}, step ${step}: ${here.length ? here.map((change) => `${change.before || "—"} → ${change.after || "—"}`).join("; ") : carried ? `still ${carried}` : "unknown"}${conflict ? ", which contradicts an earlier step" : ""}`;
    const kind = here.length ? (here.includes(pending) ? ".pending" : ".set") : carried ? ".carried" : "";
    return h(`td${kind}${conflict ? ".conflict" : ""}`, {}, h("button", {
      type: "button", tabindex: -1, title: about, "aria-label": about,
      onclick: () => pick({ step, entity, attribute, change: here.find((change) => change !== pending) ?? null }),
    }, conflict ? h("span.mark", { "aria-hidden": "true" }, "≠ ") : null, words || "·"));
  }
  function cells() {
    return [...body.rows].map((row) => [...row.querySelectorAll("td button")]);
  }
  function aim() {
    const all = cells();
    if (!all.length) return;
    at = [Math.min(at[0], all.length - 1), Math.min(at[1], all[0].length - 1)];
    all.flat().forEach((one) => (one.tabIndex = -1));
    all[at[0]][at[1]].tabIndex = 0;
  }
  body.addEventListener("keydown", (event) => {
    const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!by || !event.target.matches("td button")) return;
    event.preventDefault();
    event.stopPropagation();
    at = [Math.max(at[0] + by[0], 0), Math.max(at[1] + by[1], 0)];
    aim();
    cells()[at[0]][at[1]].focus();
  });
  return { element, draw };
}
