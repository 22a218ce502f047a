// Two traces of the same steps, side by side: what both say, and what only one does.

import { get } from "./api.js";
import { changeWords, h, link } from "./elements.js";

export async function showComparison(page, ids, app) {
  const [gold, pred] = ids.split(",");
  const corrected = new URLSearchParams(location.search).get("corrected") === "true";
  const found = await get("/compare", { gold, pred, corrected });
  const { goal, steps } = found.gold.procedure;
  app.title(`${found.pred.name} against ${found.gold.name}`);
  const here = (left, right, own) => `/?compare=${left},${right}${own ? "&corrected=true" : ""}`;
  const side = (view) => h("span", {}, link(`/?trace=${view.id}`, h("bdi", {}, view.name)));

  page.append(
    h("header.lead", {}, h("h1", {}, h("bdi", {}, goal || "Comparison")),
      h("p.facts", {}, side(found.pred), " against ", side(found.gold), ", which counts as right"),
      h("p.actions", {}, link(here(pred, gold, corrected), "Swap the sides"),
        link(here(gold, pred, !corrected), corrected ? "In the models' own words" : "With people's corrections"))),
    ...found.warnings.map((words) => h("p.warning", {}, words)),
    scoreTable(found),
    h("ul.legend", { "aria-label": "Legend" }, h("li", {}, h("span.mark.exact", { "aria-hidden": "true" }, "✓"), " counts as the same"),
      h("li", {}, h("span.mark.near", { "aria-hidden": "true" }, "≈"), " similar, but does not count as the same"), h("li", {}, "no sign: only one side has this change")),
    h("ol.steps.pairs", {}, steps.map((text, at) => stepPairs(found, at + 1, text, corrected))),
  );
}

const MEANINGS = { soft: "changes, whatever their wording", entities: "entities", pairs: "entities with attributes" };

function scoreTable({ score, signature }) {
  const rows = Object.entries(score).filter(([name]) => name in MEANINGS);
  if (!rows.length) return h("p.nothing", {}, "There is nothing to score.");
  const columns = Object.keys(rows[0][1]);
  const figure = (value) => (value === null || value === undefined ? "—" : value.toFixed(1));
  return h("div.score", {}, h("table", {}, h("caption", {}, "Agreement, in percent"),
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "of"), columns.map((name) => h("th.number", { scope: "col" }, name === "f1" ? "F1" : name)))),
    h("tbody", {}, rows.map(([name, values]) => h("tr", {}, h("th", { scope: "row" }, MEANINGS[name]), columns.map((column) => h("td.number", {}, figure(values[column]))))))),
  h("details", {}, h("summary", {}, "Signature"), h("code", {}, signature)));
}

function stepPairs(found, number, text, corrected) {
  const now = (change) => (corrected && change.corrected ? { ...change, ...change.corrected } : change);
  const of = (view) => new Map(view.shown.filter((one) => one.step === number && !(corrected && one.verdict === "wrong") && (corrected || one.verdict !== "added")).map((one) => [one.position, now(one)]));
  const gold = of(found.gold), pred = of(found.pred);
  const rows = [];
  const matches = found.matches.filter((one) => one.step === number).sort((a, b) => b.likeness - a.likeness);
  for (const match of matches) {
    const [left, right] = [pred.get(match.pred), gold.get(match.gold)];
    if (!left || !right) continue;
    if (match.right || match.likeness >= 0.5) {
      rows.push(pair(left, right, match));
      pred.delete(match.pred);
      gold.delete(match.gold);
    }
  }
  for (const change of pred.values()) rows.push(pair(change, null));
  for (const change of gold.values()) rows.push(pair(null, change));
  return h("li.step", {}, h("p.what", { dir: "auto" }, text),
    h("div.changes", {}, h("div.pair.heads", {}, h("p.side", {}, h("bdi", {}, found.pred.name)), h("p.side", {}, h("bdi", {}, found.gold.name))),
      rows.length ? rows : h("p.nothing", {}, "no changes on either side")));
}

function pair(left, right, match = null) {
  const kind = match === null ? "alone" : match.right ? "matched" : "near";
  const sign = { matched: ["✓", "counts as the same"], near: ["≈", "similar"], alone: ["", ""] }[kind];
  const cell = (change) => h("div", {}, change ? [h("bdi.name", {}, change.entity), " ", ...changeWords(change)] : h("span.nothing", { "aria-label": "no such change" }, "—"));
  return h(`div.pair.${kind}`, match ? { title: `similarity ${match.likeness.toFixed(2)}` } : {}, cell(left),
    h("span.mark", {}, h("span", { "aria-hidden": "true" }, sign[0]), h("span.unseen", {}, sign[1])), cell(right));
}
