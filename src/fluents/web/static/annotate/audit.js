// Who said what when: every decision, newest first.

import { get } from "../api.js";
import { button, counted, explain, h, put } from "../elements.js";
import { answerView } from "./answers.js";
import { kindName, question } from "./forms.js";
import { changeSentence } from "./procedure.js";

export const moment = (seconds) => {
  const date = new Date(seconds * 1000);
  return h("time", { datetime: date.toISOString() }, date.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" }));
};

export async function showAudit(page) {
  const people = new Map((await get("/annotation/people")).map((one) => [one.pseudonym, one.name]));
  const body = h("tbody");
  const more = button("More", () => load(), { kind: "plain" });
  const total = h("p.facts");
  let next = 0;

  async function load() {
    const found = await get("/annotation/audit", { offset: next });
    total.textContent = `${counted(found.total, "entry")}, newest first. Entries are never changed or deleted: correcting or undoing an answer adds a new entry.`;
    body.append(...found.items.map(row));
    next = found.next;
    more.hidden = next === null;
  }
  /** What was asked, when somebody wants to know. */
  function asked(one) {
    const place = h("div.asked");
    return h("details", { ontoggle: async () => {
      if (place.childElementCount) return;
      try {
        const { item } = await get(`/annotation/items/${one.item}`);
        const { procedure, change, step } = item.payload;
        put(place, h("p", {}, question(item)), change ? changeSentence(change) : null, h("p.hint", {}, h("bdi", {}, procedure.goal), change || step ? `, step ${change?.step ?? step}: ${procedure.steps[(change?.step ?? step) - 1]}` : ""));
      } catch (error) {
        explain(error, place);
      }
    } }, h("summary", {}, kindName(one.kind)), place);
  }
  function row(one) {
    const kind = one.undoes ? "undo" : one.adjudicates ? "settled a disagreement" : one.checks ? "expert's check" : "answer";
    return h(`tr${one.undone ? ".undone" : ""}`, {}, h("td", {}, moment(one.time)), h("td", {}, h("bdi", {}, people.get(one.author) ?? one.author), h("small", {}, ` ${one.author}`)),
      h("td", {}, asked(one)), h("td", {}, one.undoes ? h("span.nothing", {}, "undid an earlier answer") : answerView(one.kind, one.answer), one.undone ? h("small", {}, " (undone later)") : null),
      h("td", {}, kind), h("td.number", {}, one.seconds === null ? "—" : `${Math.round(one.seconds)} s`), h("td.number", {}, String(one.guideline)));
  }
  page.append(h("header.lead", {}, h("h1", {}, "Audit log"), total),
    h("div.scroll.audit", { tabindex: 0, role: "region", "aria-label": "Audit log" }, h("table", {}, h("thead", {}, h("tr", {}, ["When", "Who", "Question", "Answer", "Type", "Time taken", "Guideline version"].map((name) => h("th", { scope: "col" }, name)))), body)), more);
  await load();
}
