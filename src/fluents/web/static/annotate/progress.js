// The owner's page: how far the project is, how well its judges agree, who they are, and what comes out of it.

import { address, get, post, replace } from "../api.js";
import { button, capital, confirmed, counted, duration, h, tell } from "../elements.js";
import { moment } from "./audit.js";
import { kindName } from "./forms.js";

/** Seconds between looks at the figures. */
const LOOK = 5;
const EXPORTS = { openpi: "OpenPI", "openpi-c": "OpenPI-C", openpi2: "OpenPI2.0", fluents: "fluents (JSONL)", history: "Full history" };

const figure = (value, digits = 2) => (value === null || value === undefined ? "—" : value.toFixed(digits));
const percent = (share) => (share === null || share === undefined ? "—" : `${(100 * share).toFixed(0)} %`);
const table = (label, heads, rows) => h("div.scroll.figures", { tabindex: 0, role: "region", "aria-label": label },
  h("table", {}, h("thead", {}, h("tr", {}, heads.map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, rows)));
const cells = (...values) => values.map((value, at) => (at === 0 ? h("th", { scope: "row" }, value) : h("td", {}, value)));

export async function showProgress(page, app) {
  const stages = h("div"), agreement = h("div"), people = h("div");
  page.append(
    h("header.lead", {}, h("h1", {}, h("bdi", {}, app.me.project.name)), h("p.facts", {}, "Everything here is counted anew every few seconds.")),
    h("section", {}, h("h2", {}, "Stages"), stages, nextStage(app, refresh)),
    h("section", {}, h("h2", {}, "Agreement"), agreement),
    h("section", {}, h("h2", {}, "People"), people, invitations()),
    h("section", {}, h("h2", {}, "Guideline"), guidelineBox(app)),
    h("section", {}, h("h2", {}, "Export"), exports()));

  async function refresh() {
    const [all, everybody, pay] = await Promise.all([get("/annotation/progress"), get("/annotation/people"), get("/annotation/pay")]);
    const opened = all.filter((stage) => stage.state !== "waiting");
    const agreed = await Promise.all(opened.map((stage) => get("/annotation/agreement", { stage: stage.number })));
    const names = new Map(everybody.map((one) => [one.pseudonym, one.name]));
    stages.replaceChildren(table("Stages", ["Stage", "State", "Decided", "All agree", "α", "α, same meaning", "F1, same meaning"], all.map((stage) => {
      const found = agreed[opened.indexOf(stage)];
      return h("tr", {}, cells(`${stage.number} ${kindName(stage.kind)}`, stage.state, stage.state === "waiting" ? "—" : [h("meter", { min: 0, max: Math.max(stage.items, 1), value: stage.decided, "aria-hidden": "true" }), ` ${stage.decided} of ${stage.items}`],
        percent(found?.full), figure(found?.alpha), figure(found?.paraphrase?.alpha), figure(found?.paraphrase?.f1)));
    })));
    const now = agreed.at(-1);
    agreement.replaceChildren(...(now ? [h("p.hint", {}, `Stage ${opened.at(-1).number}, ${kindName(opened.at(-1).kind)}: by person, and the items on which people agree least.`), byPerson(now, names), byItem(now)] : []));
    people.replaceChildren(peopleTable(everybody, pay));
  }
  const timer = setInterval(() => document.hidden || refresh().catch(() => {}), LOOK * 1000);
  await refresh();
  return () => clearInterval(timer);
}

function byPerson({ by_person: all }, names) {
  if (!all?.length) return h("p.nothing", {}, "Nobody has judged the same item as somebody else yet.");
  return table("Agreement by person", ["Person", "Decisions", "Agrees with the others"], all.map((one) => h("tr", {}, cells(h("bdi", {}, names.get(one.pseudonym) ?? one.pseudonym), String(one.decisions), percent(one.agreement)))));
}

function byItem({ by_item: all }) {
  const least = (all ?? []).filter((one) => one.agreement !== null && one.agreement < 1);
  if (!least.length) return h("p.nothing", {}, "No disagreement so far.");
  return table("Agreement by item", ["Procedure", "Agreement"], least.slice(0, 10).map((one) => h("tr", {}, cells(h("bdi", {}, one.procedure), percent(one.agreement)))));
}

function peopleTable(everybody, pay) {
  const paid = new Map(pay.people.map((one) => [one.pseudonym, one]));
  const money = (amount) => (amount === null || amount === undefined ? "—" : `${amount.toFixed(2)} ${pay.currency ?? ""}`);
  return table("People", ["Name", "Role", "Items", "Today", "Time", "Pay", "Pay an hour", "Last seen"], everybody.map((one) => {
    const { seconds, amount, per_hour: hourly } = paid.get(one.pseudonym) ?? {};
    return h("tr", {}, cells([h("bdi", {}, one.name), h("small", {}, ` ${one.pseudonym}`)], one.role, String(one.done), String(one.today), seconds ? duration(seconds) : "—", money(amount), money(hourly), one.last ? moment(one.last) : "—"));
  }));
}

function nextStage(app, refresh) {
  const open = button("Open the next stage", async () => {
    const all = await get("/annotation/progress");
    const now = all.find((stage) => stage.state === "open");
    const left = now ? now.items - now.decided : 0;
    if (left && !(await confirmed(`Close the stage although ${counted(left, "item")} lack decisions?`, "Close it", "What was decided counts; nobody can decide the rest any more."))) return;
    const { stage } = await post("/annotation/stages/open", { force: left > 0 });
    tell(stage ? `Stage ${stage.number}, ${kindName(stage.kind)}, is open: ${counted(stage.items, "item")}.` : "All stages are done.");
    await app.meet();
    await refresh();
  }, { kind: "primary" });
  return h("p.actions", {}, open);
}

function invitations() {
  const role = h("select", { id: "invited-role" }, ["annotator", "adjudicator", "owner"].map((name) => h("option", { value: name }, capital(name))));
  const uses = h("input", { id: "invited-uses", type: "number", min: 1, max: 1000, value: 1 });
  const made = h("p.made", { role: "status" });
  return h("div.invite", {}, h("p.actions", {}, h("label", { for: "invited-role" }, "Invite an ", role), h("label", { for: "invited-uses" }, "for how many people ", uses),
    button("Make a link", async () => {
      const { link } = await post("/annotation/invitations", { role: role.value, uses: Number(uses.value) });
      made.replaceChildren("Send them this link; it is shown only now: ", h("code.secret", { tabindex: 0 }, link));
    })), made);
}

function guidelineBox(app) {
  const { version, text } = app.me.guideline;
  const box = h("textarea", { id: "guideline", rows: 12, value: text, maxlength: 100000 });
  const status = h("p.hint", { role: "status" }, `Version ${version}`);
  return h("div.guideline-edit", {}, h("label.field", { for: "guideline" }, "Headings begin with #, lists with -. ", box), h("p.actions", {}, button("Publish a new version", async () => {
    const kept = await replace("/annotation/guideline", { text: box.value });
    app.me.guideline = kept;
    status.textContent = `Version ${kept.version}; annotators see it with their next visit`;
  }), status));
}

function exports() {
  const secret = h("input", { type: "checkbox", id: "pseudonymous" });
  const links = Object.entries(EXPORTS).map(([format, name]) => h("a.button", { download: "", "data-format": format, href: "#" }, name));
  const aim = () => links.forEach((one) => (one.href = address("/annotation/export", { format: one.dataset.format, pseudonymous: secret.checked })));
  secret.addEventListener("change", aim);
  aim();
  return h("div", {}, h("p.actions", {}, links), h("p", {}, h("label", {}, secret, " without names: people are A1, A2, …")));
}
