// Where judges disagree: their answers side by side, and the last word on them. Also an expert's check of a sample.

import { get, post } from "../api.js";
import { button, counted, explain, h, tell } from "../elements.js";
import { answerView } from "./answers.js";
import { formOf, kindName, question } from "./forms.js";
import { DIGITS, isTakenByFocus } from "./keyboard.js";
import { newId } from "./outbox.js";
import { changeSentence, procedureView } from "./procedure.js";

const percent = (share) => (share === null || share === undefined ? "—" : `${Math.round(100 * share)} %`);

export async function showAdjudication(page, app) {
  const { outbox, keyboard } = app;
  const opened = app.me.stages.filter((stage) => stage.state !== "waiting");
  const wanted = Number(new URLSearchParams(location.search).get("stage")) || app.me.stage?.number || opened.at(-1)?.number;
  const stage = opened.find((one) => one.number === wanted);
  if (!stage) {
    page.append(h("h1", {}, "Disagreements"), h("p.nothing", {}, "No stage has been opened yet."));
    return undefined;
  }
  const place = h("div.case-place");
  const ownForm = h("div.ruling-form");
  const bulk = bulkBox();
  let cases = [], at = 0, checks = [], actions = [], form = null;

  page.append(
    h("header.lead", {}, h("h1", {}, "Disagreements"), h("p.facts", {}, `Stage ${stage.number}: ${kindName(stage.kind)}`),
      opened.length > 1 ? h("p.actions", {}, opened.filter((one) => one !== stage).map((one) => h("a", { href: `?adjudicate&stage=${one.number}` }, `Stage ${one.number}: ${kindName(one.kind)}`))) : null),
    place, ownForm, bulk);

  async function load() {
    const [found, sampled] = await Promise.all([get("/annotation/disagreements", { stage: stage.number }), get("/annotation/checks", { stage: stage.number })]);
    cases = found.items;
    checks = sampled.items;
    at = 0;
    draw();
  }
  function rule(item, answer, kind = { adjudicates: true }) {
    const decision = { id: newId(), item: item.id, answer, seconds: null, ...kind };
    const sent = outbox.add({ id: decision.id, path: "/annotation/decisions", body: decision, about: `${kindName(item.kind)} of “${item.payload.procedure.goal}”` });
    if (kind.checks) checks.shift();
    else cases.splice(at, 1);
    at = Math.max(Math.min(at, cases.length - 1), 0);
    draw();
    const isLast = !cases.length && !checks.length;
    sent.catch(() => {}).then(() => isLast && load()).catch((error) => explain(error, page)); // what was refused, the outbox shows
  }
  function draw() {
    ownForm.replaceChildren();
    form = null;
    actions = [];
    const one = cases[at];
    if (!one) {
      place.replaceChildren(h("p.rest", {}, "No disagreements are left."));
      if (checks.length) check(checks[0]);
      return;
    }
    const { item, answers, agreement } = one;
    const columns = answers.map(({ author, answer }, index) => {
      const accept = () => rule(item, answer);
      actions.push({ name: DIGITS[index + 1], label: `Accept the answer of annotator ${author}`, act: accept });
      const key = button("Accept", accept, { "aria-label": `Accept the answer of annotator ${author}` });
      key.prepend(index < 9 ? keyboard.cap(DIGITS[index + 1]) : "", " ");
      return h("section.answer-column", { "aria-label": `Answer of annotator ${author}` }, h("h3", {}, `Annotator ${author}`), answerView(item.kind, answer, item.payload), h("p.actions", {}, key));
    });
    const edit = () => openForm(item, answers[0]?.answer ?? null, {});
    actions.push({ name: "edit", label: "Give another answer", act: edit }, { name: "up", label: "Previous disagreement", act: () => move(-1) }, { name: "down", label: "Next disagreement", act: () => move(1) });
    const other = button("Give another answer", edit, { kind: "plain" });
    other.prepend(keyboard.cap("edit"), " ");
    place.replaceChildren(h("section.case", {}, h("p.hint", { role: "status" }, `Disagreement ${at + 1} of ${cases.length}. Agreement between the annotators: ${percent(agreement)}.`), h("h2", {}, question(item)),
      item.payload.change ? changeSentence(item.payload.change) : null,
      h("details", { open: true }, h("summary", {}, "Procedure"), procedureView(item.payload.procedure, { step: item.payload.change?.step ?? item.payload.step })),
      h("div.answer-columns", {}, columns), h("p.actions", {}, other, button("Previous", () => move(-1), { kind: "plain", disabled: at === 0 }), button("Next", () => move(1), { kind: "plain", disabled: at === cases.length - 1 }))));
  }
  function move(by) {
    at = Math.min(Math.max(at + by, 0), cases.length - 1);
    draw();
  }
  /** A form of one's own, for a ruling or a check. */
  function openForm(item, answer, kind) {
    form = formOf({
      item, payload: item.payload, answer, draft: null, keep: () => {}, cap: (name) => keyboard.cap(name),
      decide: (given) => rule(item, given, kind.checks ? kind : { adjudicates: true }),
      refuse: (what, fix) => explain({ what, fix }, ownForm),
    });
    ownForm.replaceChildren(h("section", {}, h("h2", {}, question(item)), form.element));
    actions = form.actions;
    form.focus?.();
  }
  function check(item) {
    openForm(item, null, { checks: true });
    ownForm.prepend(h("p.coach", {}, `Expert's check: answer this question without seeing the answers of the others. Your answer does not change the results; it is only compared with them. ${counted(checks.length, "question")} left.`));
  }
  function bulkBox() {
    const threshold = h("input", { type: "number", min: 50, max: 100, value: 80, id: "threshold", "aria-label": "Minimum agreement, in percent" });
    return h("section.panel.bulk", {}, h("h2", {}, "Accept many at once"), h("p.actions", {}, h("label", { for: "threshold" }, "Accept the most frequent answer wherever agreement is at least ", threshold, " %"),
      button("Accept", async () => {
        const { accepted } = await post("/annotation/adjudicate/bulk", { stage: stage.number, threshold: Number(threshold.value) / 100 });
        tell(`Settled ${counted(accepted, "disagreement")}.`);
        await load();
      })));
  }
  function pressed(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && form?.finish) return form.finish();
    if (isTakenByFocus(event)) return undefined;
    const name = keyboard.action(event);
    if (name === "help") return keyboard.showHelp(actions, app.saveKeys);
    const found = actions.find((one) => one.name === name);
    if (!found || event.repeat) return undefined;
    event.preventDefault();
    return found.act();
  }
  document.addEventListener("keydown", pressed);
  await load();
  return () => document.removeEventListener("keydown", pressed);
}
