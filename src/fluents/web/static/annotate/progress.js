// The owner's page: how far the project is, how well its judges agree, who they are, and what comes out of it.

import { address, get, post, replace } from "../api.js";
import { button, confirmed, counted, duration, explain, h, tell } from "../elements.js";
import { accessBox } from "./access.js";
import { moment } from "./audit.js";
import { kindName } from "./forms.js";

/** Seconds between looks at the figures. */
const LOOK = 5;
const EXPORTS = { openpi: "OpenPI", "openpi-c": "OpenPI-C", openpi2: "OpenPI2.0", fluents: "fluents (JSONL)", history: "History of all answers" };

/** What the counts of a stage mean. */
const TALLIES = {
  written: "changes written", with_image: "changes written with pictures", without_image: "changes written without pictures", contradictions: "contradictions between changes",
  changes: "changes before this stage", missing: "missing changes added", indirect: "of these, indirect effects", dimension: "of these, other attributes of a listed entity", rewording: "of these, listed changes in other words", wrong: "of these, doubtful",
  obscure: "called wrong: obscure", "other-step": "called wrong: belongs to another step", mismatch: "called wrong: the attribute does not fit the states", reader: "called wrong: about the reader", factual: "called wrong: not true", "no reason given": "called wrong without a reason",
};
const figure = (value) => (value === null || value === undefined ? "—" : value.toFixed(2).replace("-", "−"));
const percent = (share) => (share === null || share === undefined ? "—" : `${(100 * share).toFixed(0)} %`);
const table = (label, heads, rows) => h("div.scroll.figures", { tabindex: 0, role: "region", "aria-label": label },
  h("table", {}, h("thead", {}, h("tr", {}, heads.map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, rows)));
const cells = (...values) => values.map((value, at) => (at === 0 ? h("th", { scope: "row" }, value) : h("td", {}, value)));

export function showProgress(page, app) {
  const stages = h("div"), agreement = h("div"), outcome = h("div"), people = h("div");
  const access = accessBox(refresh);
  const onwards = nextStage(app, refresh);
  const settled = new Map(); // the agreement in stages that are done does not change
  let timer, isOver = false, latest = [];
  page.append(
    h("header.lead", {}, h("h1", {}, h("bdi", {}, app.me.project.name)), h("p.facts", {}, "Each stage asks one kind of question. Each question is an item, and is decided when enough people have answered it. The numbers are updated every few seconds.")),
    h("section", {}, h("h2", {}, "Stages"), stages, h("p.hint", {}, "All agree: how often all people give the same answer. α: Krippendorff's alpha, 1 if all agree, 0 if they agree no more often than by chance. F1: how many changes two people have in common, from 0 to 1. Same meaning: the wording of changes is ignored."), onwards.element),
    h("section", {}, h("h2", {}, "Agreement"), agreement),
    h("section", {}, h("h2", {}, "Outcome"), outcome),
    h("section", {}, h("h2", {}, "People"), people, access.element),
    h("section", {}, h("h2", {}, "Guideline"), guidelineBox(app)),
    h("section", {}, h("h2", {}, "Export"), exports()));

  async function agreementOf({ number, state }) {
    const found = settled.get(number) ?? (await get("/annotation/agreement", { stage: number }));
    if (state === "done") settled.set(number, found);
    return found;
  }
  /** Each part by itself: if one cannot be had, the others can. */
  async function draw(place, made) {
    try {
      place.replaceChildren(...(await made()));
      place.parentElement.querySelector(":scope > .problem")?.remove();
    } catch (error) {
      explain(error, place);
    }
  }
  async function refresh() {
    const all = await get("/annotation/progress");
    const opened = all.filter((stage) => stage.state !== "waiting");
    const everybody = await get("/annotation/people");
    const names = new Map(everybody.map((one) => [one.pseudonym, one.name]));
    onwards.know(all);
    stages.replaceChildren(stageTable(all, opened, latest)); // how far it is, is known at once; agreement takes longer
    await Promise.all([
      draw(agreement, async () => {
        latest = await Promise.all(opened.map(agreementOf));
        stages.replaceChildren(stageTable(all, opened, latest));
        return agreementTables(opened.at(-1), latest.at(-1), names);
      }),
      draw(outcome, async () => outcomeTables(await get("/annotation/outcome"))),
      draw(people, async () => [peopleTable(everybody, await get("/annotation/pay"))]),
      access.know(everybody),
    ]);
  }
  async function regularly() {
    try {
      if (!document.hidden) await refresh();
    } catch {
      // no connection: again later
    }
    if (!isOver) timer = setTimeout(regularly, LOOK * 1000);
  }
  refresh().catch((error) => explain(error, page)).finally(() => (timer = setTimeout(regularly, LOOK * 1000)));
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}

function stageTable(all, opened, agreed) {
  return table("Stages", ["Stage", "State", "Decided", "All agree", "α", "α, same meaning", "F1, same meaning"], all.map((stage) => {
    const found = agreed[opened.indexOf(stage)];
    const meter = h("meter", { min: 0, max: Math.max(stage.items, 1), value: stage.decided, "aria-hidden": "true" });
    return h("tr", {}, cells(`${stage.number} ${kindName(stage.kind)}`, stage.state, stage.state === "waiting" ? "—" : [meter, ` ${stage.decided} of ${stage.items}`],
      percent(found?.full), figure(found?.alpha), figure(found?.paraphrase?.alpha), figure(found?.paraphrase?.f1)));
  }));
}

function agreementTables(stage, found, names) {
  if (!stage) return [];
  const { expert } = found;
  return [
    h("p.hint", {}, `The first table shows how often each person agrees with the others in stage ${stage.number} (${kindName(stage.kind)}). The second table shows the items with the least agreement.`), byPerson(found, names), byItem(found),
    expert?.items ? h("p", {}, `An expert checked ${counted(expert.items, "item")}, and agreed with the majority on ${percent(expert.share)} of them.`) : null,
  ].filter(Boolean);
}

function byPerson({ by_person: all }, names) {
  if (!all.length) return h("p.nothing", {}, "No item has two answers yet.");
  return table("Agreement by person", ["Person", "Answers", "Agrees with the majority", "F1 with the others, same meaning"], all.map((one) =>
    h("tr", {}, cells(h("bdi", {}, names.get(one.pseudonym) ?? one.pseudonym), String(one.decisions), percent(one.agreement), figure(one.f1)))));
}

function byItem({ by_item: all }) {
  const least = all.filter((one) => one.agreement < 1);
  if (!least.length) return h("p.nothing", {}, "No disagreement so far.");
  return table("Agreement by item", ["Procedure", "Agreement"], least.slice(0, 10).map((one) => h("tr", {}, cells(h("bdi", {}, one.procedure), percent(one.agreement)))));
}

/** What the decisions of a stage leave of the data so far, and why the rest goes. */
function outcomeTables({ stage, kind, before, after, removed, tallies, coverage, anchoring, systems }) {
  const rows = [
    ...["procedures", "steps", "changes"].map((what) => [what, `${before[what]} → ${after[what]}`]),
    ...Object.entries(removed).map(([what, count]) => [what.replace(/^(\w+): /, "removed $1s: "), String(count)]),
    ...Object.entries(tallies).map(([what, count]) => [TALLIES[what] ?? what, String(count)]),
    coverage === null ? null : ["share of all changes that were found before this stage", percent(coverage)],
    anchoring ? ["influence of the draft on the people who corrected it (0 %: none; 100 %: their answers became the same as the draft)", percent(anchoring.moved)] : null,
  ].filter(Boolean);
  return [h("p.hint", {}, `This table shows what stage ${stage} (${kindName(kind)}) has changed so far: the number of procedures, steps and changes before → after the stage, how many of them were removed for each reason, and how often each answer was given.`), table("Outcome", ["What", "Number"], rows.map((row) => h("tr", {}, cells(...row)))), scoreTable(systems)].filter(Boolean);
}

function scoreTable(systems) {
  const rows = Object.entries(systems).flatMap(([system, scores]) => Object.entries(scores).map(([row, columns]) =>
    h("tr", {}, cells(h("bdi", {}, system), row, Object.entries(columns).map(([name, value]) => `${name} ${figure(value)}`).join(", ")))));
  return rows.length ? table("Scores of the systems", ["System", "Measure", "Scores"], rows) : null;
}

function peopleTable(everybody, pay) {
  const paid = new Map(pay.people.map((one) => [one.pseudonym, one]));
  const money = (amount) => (amount === null || amount === undefined ? "—" : `${amount.toFixed(2)} ${pay.currency ?? ""}`);
  return table("People", ["Name and id", "Role", "Answers", "Answers today", "Time worked", "Pay", "Pay per hour", "Last answer"], everybody.map((one) => {
    const { seconds, amount, per_hour: hourly } = paid.get(one.pseudonym) ?? {};
    return h("tr", {}, cells([h("bdi", {}, one.name), h("small", {}, ` ${one.pseudonym}${one.access ? "" : ", no access"}`)], one.role, String(one.done), String(one.today), seconds ? duration(seconds) : "—", money(amount), money(hourly), one.last ? moment(one.last) : "—"));
  }));
}

function nextStage(app, refresh) {
  const open = button("Open the next stage", async () => {
    const all = await get("/annotation/progress");
    const now = all.find((stage) => stage.state === "open");
    const left = now ? now.items - now.decided : 0;
    if (left && !(await confirmed(`Close the stage with ${counted(left, "undecided item")}?`, "Close it", "All answers so far count. Nobody can answer the remaining items later.", "Keep it open"))) return;
    const { stage } = await post("/annotation/stages/open", { force: left > 0, ...(now ? { stage: now.number } : {}) });
    tell(stage ? `Stage ${stage.number}, ${kindName(stage.kind)}, is open: ${counted(stage.items, "item")}.` : "All stages are done.");
    await app.meet();
    await refresh();
  }, { kind: "primary" });
  return {
    element: h("p.actions", {}, open),
    know(all) {
      if (all.every(({ state }) => state === "done")) open.remove();
      else open.textContent = all.some(({ state }) => state === "waiting") ? "Open the next stage" : "Close the last stage";
    },
  };
}

function guidelineBox(app) {
  const { version, text } = app.me.guideline;
  const box = h("textarea", { id: "guideline", rows: 12, value: text, maxlength: 100000 });
  const status = h("p.hint", { role: "status" }, `Version ${version}`);
  return h("div.guideline-edit", {}, h("label.field", { for: "guideline" }, "Instructions, which annotators see beside every question. Begin headings with # and list items with -. ", box), h("p.actions", {}, button("Publish a new version", async () => {
    const kept = await replace("/annotation/guideline", { text: box.value });
    app.me.guideline = kept;
    status.textContent = `Version ${kept.version}. Annotators see it within a minute.`;
  }), status));
}

function exports() {
  const secret = h("input", { type: "checkbox", id: "pseudonymous" });
  const links = Object.entries(EXPORTS).map(([format, name]) => h("a.button", { download: "", "data-format": format, href: "#" }, name));
  const aim = () => links.forEach((one) => (one.href = address("/annotation/export", { format: one.dataset.format, pseudonymous: secret.checked })));
  secret.addEventListener("change", aim);
  aim();
  return h("div", {}, h("p.actions", {}, links), h("p", {}, h("label", {}, secret, " In the history, write ids (A1, A2, …) instead of names")));
}
